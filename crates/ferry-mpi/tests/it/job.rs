//! Jobs: mpirun with its ranks, and trees to copy.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ferry_tree::compare::{Holes, Options, Progress, trees};
use ferry_tree::make::make;
use ferry_tree::random::{Knobs, tree};
use ferry_tree::{Node, Tree};

/// Time after which a job counts as stuck.
const MOST: Duration = Duration::from_secs(120);

/// Held by each test: their processes would disturb one another.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a job of `cp -aT`, not started yet.
pub(crate) fn job(ranks: u32, options: &[&str], source: &Path, target: &Path) -> Command {
    let mut command = job_of(ranks, "-aT");
    command.args(options).arg(source).arg(target);
    command
}

/// Returns a job of `cp` with these flags, and without paths.
pub(crate) fn job_of(ranks: u32, flags: &str) -> Command {
    let mut command = mpirun(ranks);
    command.arg(PROGRAM).args(["cp", flags]);
    command
}

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_ferry-mpi");

/// Returns a job of this number of processes, without their program.
pub(crate) fn mpirun(ranks: u32) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["-np", &ranks.to_string(), "--oversubscribe", "--allow-run-as-root"]);
    // Reading other processes' memory is forbidden in many containers.
    command.args(["--mca", "btl_vader_single_copy_mechanism", "none"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Awaits a job's end.
pub(crate) fn end(child: Child) -> Output {
    let (output, is_stuck) = end_within(child, MOST);
    assert!(!is_stuck, "the job is stuck: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Awaits a job's end for some time, and then kills its processes. Also returns true in that case.
pub(crate) fn end_within(mut child: Child, most: Duration) -> (Output, bool) {
    let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let since = Instant::now();
    let mut is_stuck = false;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if !is_stuck && since.elapsed() > most {
            is_stuck = true;
            for rank in ranks(child.id()) {
                signal(rank, "KILL");
            }
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    (Output { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }, is_stuck)
}

/// Reads a pipe to its end. A job that fills one would wait.
fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(|| {
        let mut bytes = Vec::new();
        pipe.map(|mut pipe| pipe.read_to_end(&mut bytes).unwrap());
        bytes
    })
}

/// Runs a job to its end.
pub(crate) fn run(ranks: u32, options: &[&str], source: &Path, target: &Path) -> Output {
    end(job(ranks, options, source, target).spawn().unwrap())
}

/// Runs a job that has to succeed.
pub(crate) fn copy(ranks: u32, options: &[&str], source: &Path, target: &Path) {
    let output = run(ranks, options, source, target);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Copies by the single program.
pub(crate) fn copy_alone(source: &Path, target: &Path) {
    let mut command = match std::env::var_os("FERRY_PROGRAM") {
        Some(ferry) => {
            let mut command = Command::new(ferry);
            command.arg("cp");
            command
        }
        None => Command::new("cp"),
    };
    assert!(command.arg("-aT").arg(source).arg(target).status().unwrap().success());
}

/// Expects two trees to be equal.
pub(crate) fn expect_equal(source: &Path, target: &Path, what: &str) {
    let options = Options { threads: 1, holes: Holes::Same, ..Options::all() };
    let found = Mutex::new(Vec::new());
    let note = |difference| found.lock().unwrap().push(format!("{difference}"));
    let compared = trees(source, target, &options, &Progress::new(), &note).unwrap();
    let found = found.into_inner().unwrap();
    assert_eq!(found, Vec::<String>::new(), "{what}: {} entries", compared.entries);
}

/// Returns the names in a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Paths of the files beneath a folder, links not followed.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            match path.symlink_metadata() {
                Ok(stat) if stat.is_dir() => folders.push(path),
                Ok(stat) if stat.is_file() => files.push(path),
                _ => {}
            }
        }
    }
    files
}

/// Makes a random tree with all that the filesystem keeps, and files that are copied in ranges of 64 KiB.
pub(crate) fn make_random(place: &Path, seed: u64, source: &Path) {
    let knobs = Knobs { entries: 80, ..Knobs::possible_in(place) };
    for lacking in knobs.without() {
        println!("SKIP: no {lacking} on this filesystem");
    }
    make(&tree(seed, &knobs), source).unwrap();
    let large = Tree::new()
        .with("large/file", Node::seeded(1_000_003, seed))
        .with("large/holes", Node::sparse(3 << 20, seed, [(70_000, 300_000), (2 << 20, 4_096)]).mode(0o640))
        .with("large/hole", Node::sparse(1 << 20, seed, []))
        .with("large/again", Node::hard_link("large/file"));
    let inner = source.join("zz");
    make(&large, &inner).unwrap();
}

/// Makes a tree of many small files, a wide folder, links and a large file.
pub(crate) fn make_many(source: &Path) {
    let mut tree = Tree::new();
    for folder in 0..40 {
        for file in 0..25 {
            let size = (folder * 31 + file * 17) % 3_000;
            tree = tree.with(format!("d{}/e{folder}/f{file}", folder % 7), Node::seeded(size, folder + file));
        }
    }
    for file in 0..3_000 {
        tree = tree.with(format!("wide/f{file}"), Node::seeded(file % 50, file));
    }
    for link in 0..30 {
        tree = tree.with(format!("links/{}/l{link}", link % 5), Node::hard_link(format!("wide/f{link}")));
    }
    tree = tree.with("big", Node::seeded(8 << 20, 1)).with("holes", Node::sparse(4 << 20, 2, [(0, 100)]));
    make(&tree, source).unwrap();
}

/// Returns the processes of this job's ranks, by rank. Those that have not begun may be missing.
pub(crate) fn ranks(mpirun: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((_, rest)) = stat.rsplit_once(')') else { continue };
        let parent = rest.split_whitespace().nth(1).and_then(|parent| parent.parse::<u32>().ok());
        let is_rank = fs::read_link(entry.path().join("exe"))
            .is_ok_and(|program| program.file_name() == Some(OsStr::new("ferry-mpi")));
        if parent == Some(mpirun) && is_rank {
            let variables = fs::read(entry.path().join("environ")).unwrap_or_default();
            let rank = variables.split(|byte| *byte == 0).find_map(|variable| {
                let value = variable.strip_prefix(b"OMPI_COMM_WORLD_RANK=")?;
                std::str::from_utf8(value).ok()?.parse::<u32>().ok()
            });
            found.extend(rank.map(|rank| (rank, process)));
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, process)| process).collect()
}

/// Sends a signal to a process.
pub(crate) fn signal(process: u32, signal: &str) -> bool {
    let mut kill = Command::new("kill");
    kill.args([&format!("-{signal}"), &process.to_string()]).stderr(Stdio::null());
    kill.status().unwrap().success()
}
