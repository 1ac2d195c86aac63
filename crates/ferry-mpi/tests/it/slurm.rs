//! Jobs of a Slurm cluster that consists of this machine. Each test starts one, with all its state in a temporary folder.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::job::{PROGRAM, end, end_within, expect_equal, make_many, signal, turn};

/// Time after which a daemon or a queued job counts as stuck.
const MOST: Duration = Duration::from_secs(90);
/// Daemons and commands of Slurm, and the daemon by which they trust one another.
const PROGRAMS: [&str; 5] = ["munged", "slurmctld", "slurmd", "srun", "sbatch"];
/// Their scripts are tested as they stand there, with other paths and numbers.
const CLUSTER: &str = include_str!("../../../../docs/cluster.md");
const SPLIT: &str = include_str!("../../../../docs/split.md");

/// A cluster of one node with eight slots. Its daemons are ended on drop.
struct Cluster {
    place: tempfile::TempDir,
    daemons: Vec<Child>,
}

impl Cluster {
    /// Starts one; `None` where Slurm is not installed, or without root.
    fn start() -> Option<Self> {
        let is_there =
            |name: &&str| search_path().split(':').any(|folder| Path::new(folder).join(name).is_file());
        let missing: Vec<_> = PROGRAMS.into_iter().filter(|name| !is_there(name)).collect();
        if !missing.is_empty() {
            println!("SKIP: {missing:?} are missing: install slurmctld, slurmd, slurm-client and munge");
            return None;
        }
        if fs::metadata("/proc/self").unwrap().uid() != 0 {
            println!("SKIP: slurmd needs root");
            return None;
        }
        let mut cluster = Self { place: tempfile::tempdir().unwrap(), daemons: Vec::new() };
        for folder in ["state", "spool"] {
            fs::create_dir(cluster.path(folder)).unwrap();
        }
        fs::write(cluster.path("slurm.conf"), cluster.settings()).unwrap();
        cluster.start_munged();
        cluster.start_daemon("slurmctld", &["-D"]);
        cluster.start_daemon("slurmd", &["-D"]);
        cluster.wait_until("the node is not idle", |cluster| cluster.said("sinfo", &["-ho", "%t"]) == "idle");
        Some(cluster)
    }

    /// The daemon that makes and checks credentials, with a key of its own. It needs no user `munge` for that.
    fn start_munged(&mut self) {
        let mut key = [0; 128];
        std::io::Read::read_exact(&mut File::open("/dev/urandom").unwrap(), &mut key).unwrap();
        fs::write(self.path("key"), key).unwrap();
        let options = [("key-file", "key"), ("socket", "socket"), ("pid-file", "pid"), ("seed-file", "seed")]
            .map(|(option, name)| format!("--{option}={}", self.path(name).display()));
        // The folder is closed to other users, of which munged warns.
        let fixed = ["--foreground", "--force"].map(str::to_owned);
        let options: Vec<_> = fixed.iter().chain(&options).map(String::as_str).collect();
        self.start_daemon("munged", &options);
        self.wait_until("munged does not listen", |cluster| cluster.path("socket").exists());
    }

    fn start_daemon(&mut self, name: &str, options: &[&str]) {
        let log = File::create(self.path(&format!("{name}.out"))).unwrap();
        let mut daemon = self.command(name);
        daemon.args(options).stdout(log.try_clone().unwrap()).stderr(log);
        self.daemons.push(daemon.spawn().unwrap());
    }

    fn settings(&self) -> String {
        let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let name = name.trim().split('.').next().unwrap().to_owned();
        let ports = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [control, node] = ports.map(|port| port.local_addr().unwrap().port());
        let place = self.place.path().display();
        format!(
            "ClusterName=test\nSlurmctldHost={name}(127.0.0.1)\nSlurmctldPort={control}\nSlurmdPort={node}\n\
             NodeName={name} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN\nSlurmdParameters=config_overrides\n\
             PartitionName=all Nodes=ALL Default=YES State=UP\n\
             AuthType=auth/munge\nAuthInfo=socket={place}/socket\nCredType=cred/munge\n\
             SlurmUser=root\nSlurmdUser=root\nStateSaveLocation={place}/state\nSlurmdSpoolDir={place}/spool\n\
             SlurmctldPidFile={place}/slurmctld.pid\nSlurmdPidFile={place}/slurmd.pid\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\n\
             AccountingStorageType=accounting_storage/none\nSwitchType=switch/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n\
             SchedulerParameters=batch_sched_delay=0,sched_interval=1\nMailProg=/bin/true\n\
             MessageTimeout=60\nKillWait=3\nReturnToService=2\n"
        )
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Returns a command of this cluster, with the program `ferry` in its search path.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let ferry = std::env::var("FERRY_PROGRAM").unwrap_or_default();
        let folder = Path::new(&ferry).parent().map(|folder| format!("{}:", folder.display()));
        command.env("PATH", folder.unwrap_or_default() + &search_path());
        command.env("SLURM_CONF", self.path("slurm.conf")).current_dir(&self.place);
        // Reading other processes' memory is forbidden in many containers.
        command.env("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns four processes of a task from `source` to `target`, started by srun.
    fn srun(&self, options: &[&str], task: &[&str]) -> Command {
        let mut srun = self.command("srun");
        // The process number of each rank is known, so that a test can end one.
        let wrapped = "echo $$ > process.$SLURM_PROCID; exec \"$0\" \"$@\"";
        srun.arg("--ntasks=4").args(options).args(["sh", "-c", wrapped, PROGRAM]).args(task);
        srun.args(["--range", "64K", "--lease", "16", "source", "target"]);
        srun
    }

    /// Runs four joined ranks that have to succeed.
    fn run(&self, task: &[&str]) -> Output {
        let output = end(self.srun(&["--mpi=pmix"], task).spawn().unwrap());
        assert!(output.status.success(), "{task:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    fn said(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.command(program).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn wait_until(&self, otherwise: &str, is_so: impl Fn(&Self) -> bool) {
        assert!(within(MOST, || is_so(self)), "{otherwise}");
    }

    /// Waits until no job is queued or running.
    fn wait_for_jobs(&self) {
        self.wait_until("a job does not end", |cluster| {
            let output = cluster.command("squeue").arg("--noheader").output().unwrap();
            output.status.success() && output.stdout.is_empty()
        });
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Without its daemon, a command waits for a minute.
        self.command("timeout").args(["10", "scancel", "--signal=KILL", "--user=root"]).output().ok();
        let queue = |cluster: &Self| cluster.command("timeout").args(["10", "squeue", "-h"]).output().ok();
        let is_empty = |output: Option<Output>| output.is_none_or(|output| output.stdout.is_empty());
        within(Duration::from_secs(10), || is_empty(queue(self)));
        for mut daemon in self.daemons.drain(..).rev() {
            signal(daemon.id(), "TERM");
            if !within(Duration::from_secs(10), || daemon.try_wait().is_ok_and(|ended| ended.is_some())) {
                daemon.kill().ok();
                daemon.wait().ok();
            }
        }
        if std::thread::panicking() {
            for name in ["munged", "slurmctld", "slurmd"] {
                let log = fs::read_to_string(self.path(&format!("{name}.out"))).unwrap_or_default();
                eprintln!("{name}:\n{log}");
            }
        }
    }
}

/// Waits until something is so, and returns false if it was not within the time.
fn within(most: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    while !is_so() {
        if since.elapsed() > most {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Returns PATH with the folder of daemons.
fn search_path() -> String {
    std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin"
}

fn has_four_ranks(stats: &[u8]) -> bool {
    let stats = String::from_utf8_lossy(stats);
    stats.lines().any(|line| line.split_whitespace().eq(["ranks", "4"]))
}

#[test]
fn under_srun_with_pmix_ranks_copy_sync_and_compare() {
    let _turn = turn();
    let Some(cluster) = Cluster::start() else { return };
    let (source, target) = (cluster.path("source"), cluster.path("target"));
    make_many(&source);
    for task in [&["cp", "-aT", "--stats"][..], &["sync", "--stats"]] {
        let output = cluster.run(task);
        assert!(has_four_ranks(&output.stderr), "{task:?}: {}", String::from_utf8_lossy(&output.stderr));
        expect_equal(&source, &target, task[0]);
        let output = cluster.run(&["verify"]);
        assert!(output.stdout.starts_with(b"equal: "), "{}", String::from_utf8_lossy(&output.stdout));
        ferry_tree::remove::remove(&target).unwrap();
    }
    // The value that srun takes for --mpi if the option is not given.
    let output = end(cluster.srun(&[], &["cp", "-aT"]).env("SLURM_MPI_TYPE", "pmix").spawn().unwrap());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    expect_equal(&source, &target, "SLURM_MPI_TYPE");
}

#[test]
fn under_srun_without_pmix_one_line_names_the_option_and_nothing_changes() {
    let _turn = turn();
    let Some(cluster) = Cluster::start() else { return };
    fs::create_dir(cluster.path("source")).unwrap();
    let output = end(cluster.srun(&["--mpi=none"], &["cp", "-aT"]).spawn().unwrap());
    let said = String::from_utf8_lossy(&output.stderr);
    let ours: Vec<_> = said.lines().filter(|line| line.starts_with("ferry-mpi: ")).collect();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(ours.len() == 1 && ours[0].contains("use `srun --mpi=pmix`"), "{said}");
    assert!(!cluster.path("target").exists());
}

/// Returns the script of a document after some text, for the folders `source` and `target` of a test.
fn script(document: &str, after: &str) -> String {
    let (_, rest) = document.split_once(after).unwrap();
    let script = rest.split("```").nth(1).unwrap().split_once('\n').unwrap().1;
    let script = script.replace("/scratch/data", "source").replace("/archive/data", "target");
    script.replace("--split 64", "--split 4").replace("1-64", "1-4").replace("--ntasks=16", "--ntasks=4")
}

#[test]
fn the_documented_job_script_copies_by_all_ranks() {
    let _turn = turn();
    let Some(cluster) = Cluster::start() else { return };
    make_many(&cluster.path("source"));
    let script = script(CLUSTER, "A job script is:\n").replace("ferry-mpi cp -a", "$PROGRAM cp -a --stats");
    fs::write(cluster.path("script"), script).unwrap();
    let mut sbatch = cluster.command("sbatch");
    let output = sbatch.env("PROGRAM", PROGRAM).args(["--output=said", "script"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    cluster.wait_for_jobs();
    let said = fs::read(cluster.path("said")).unwrap();
    assert!(has_four_ranks(&said), "{}", String::from_utf8_lossy(&said));
    expect_equal(&cluster.path("source"), &cluster.path("target"), "the job script");
}

#[test]
fn mpirun_in_a_batch_script_starts_a_rank_for_each_task() {
    let _turn = turn();
    let Some(cluster) = Cluster::start() else { return };
    make_many(&cluster.path("source"));
    let script = format!("--wrap=mpirun '{PROGRAM}' cp -aT --stats source target");
    let output = cluster.command("sbatch").args(["--ntasks=4", "--output=said", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    cluster.wait_for_jobs();
    let said = fs::read(cluster.path("said")).unwrap();
    assert!(has_four_ranks(&said), "{}", String::from_utf8_lossy(&said));
    expect_equal(&cluster.path("source"), &cluster.path("target"), "mpirun in a batch script");
}

#[test]
fn after_a_cancelled_job_or_a_killed_rank_the_same_command_goes_on() {
    let _turn = turn();
    let Some(cluster) = Cluster::start() else { return };
    let (source, target) = (cluster.path("source"), cluster.path("target"));
    make_many(&source);
    for killed in [None, Some(0), Some(3)] {
        let slow = cluster.srun(&["--mpi=pmix"], &["cp", "-aT", "--bwlimit", "1M"]).spawn().unwrap();
        cluster.wait_until("nothing is copied", |_| fs::read_dir(&target).map_or(0, Iterator::count) > 0);
        match killed {
            None => drop(cluster.said("scancel", &["--user=root"])),
            Some(rank) => {
                let process = fs::read_to_string(cluster.path(&format!("process.{rank}"))).unwrap();
                assert!(signal(process.trim().parse().unwrap(), "KILL"), "rank {rank} has ended already");
            }
        }
        let (output, is_stuck) = end_within(slow, Duration::from_secs(60));
        assert!(!is_stuck && !output.status.success(), "{killed:?}");
        cluster.wait_for_jobs();
        assert!(cluster.path(".target.ferry-mpi").exists(), "{killed:?}: the job was over already");
        cluster.run(&["cp", "-aT"]);
        expect_equal(&source, &target, &format!("{killed:?}"));
        assert!(!cluster.path(".target.ferry-mpi").exists(), "{killed:?}");
        ferry_tree::remove::remove(&target).unwrap();
    }
}

#[test]
fn the_documented_array_copies_in_parts_and_closes() {
    let _turn = turn();
    if std::env::var_os("FERRY_PROGRAM").is_none() {
        println!("SKIP: FERRY_PROGRAM does not name the program ferry");
        return;
    }
    let Some(cluster) = Cluster::start() else { return };
    let (source, target) = (cluster.path("source"), cluster.path("target"));
    make_many(&source);
    let script = script(SPLIT, "## With a Slurm array\n");
    let output = cluster.command("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    cluster.wait_for_jobs();
    for part in 1..=4 {
        assert!(cluster.path(&format!("lists/done-{part}")).exists(), "part {part}");
    }
    // Directories get their times in the closing step.
    expect_equal(&source, &target, "an array");
}
