//! `--max-load`: a run pauses beside a program that reads from the device, and has the lowest priorities.
//!
//! A run with the lowest priorities may get little time on a busy machine. So some tests try several times.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ferry_tree::{Node, Tree};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::events::events;
use super::{Pair, said, struck};
use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, is_installed, is_root, skip, text};

const TRIES: usize = 5;
const BLOCK: u64 = 4096;
const BLOCKS: u64 = 1024;
/// See statfs(2).
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// Direct I/O needs aligned memory.
#[repr(align(4096))]
struct Block([u8; 4096]);

/// A program that reads from the device, one block after another, until it is dropped.
struct Neighbour {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Neighbour {
    /// Begins, unless the filesystem has no direct I/O or the kernel does not count who waits.
    fn begin(folder: &Path) -> Option<Self> {
        if fs::read("/proc/pressure/io").is_err() {
            return skip("the kernel does not count who waits for I/O (/proc/pressure/io)");
        }
        let magic = u64::try_from(rustix::fs::statfs(folder).unwrap().f_type).unwrap();
        if magic == TMPFS_MAGIC {
            return skip("temporary files are in memory");
        }
        let path = folder.join("neighbour");
        fs::write(&path, vec![7; usize::try_from(BLOCK * BLOCKS).unwrap()]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::DIRECT.bits().cast_signed());
        let Ok(file) = options.open(&path) else { return skip("the disk has no direct I/O") };
        let (file, ends) = (Arc::new(file), Arc::new(AtomicBool::new(false)));
        let threads = [0, BLOCKS / 2].map(|first| {
            let (file, ends) = (Arc::clone(&file), Arc::clone(&ends));
            std::thread::spawn(move || read(&file, first, &ends))
        });
        Some(Self { ends, threads: threads.into() })
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

fn read(file: &File, first: u64, ends: &AtomicBool) {
    let mut block = Box::new(Block([0; 4096]));
    let mut at = first;
    while !ends.load(Ordering::Relaxed) {
        file.read_exact_at(&mut block.0, at * BLOCK).unwrap();
        // Not in the order of the file.
        at = (at + 617) % BLOCKS;
    }
}

fn source() -> Tree {
    let files = (0..20).fold(Tree::new(), |tree, number| {
        tree.with(format!("folder/{number}"), Node::seeded(10_000, number).mtime(50, 5))
    });
    files.with("large", Node::seeded(5 << 20, 99).mtime(50, 5))
}

/// Returns the pauses in the events of a run, if it has any figures about them.
fn load(pair: &Pair) -> Option<Value> {
    let events = events(&fs::read(pair.path().join("events")).unwrap());
    events.last().unwrap()["end"].get("load").cloned()
}

fn pauses(pair: &Pair) -> u64 {
    load(pair).unwrap()["pauses"].as_u64().unwrap()
}

/// Starts a run, and returns when it has made its target.
fn started(pair: &Pair, words: &[&str]) -> Child {
    let target = pair.path().join("target");
    ferry_tree::remove::remove(&target).unwrap();
    let mut command = Command::new(FERRY);
    command.arg("sync").args(words).args(["source", "target"]).current_dir(pair.path());
    let child = command.stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !target.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no target was made");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn a_run_pauses_while_another_program_waits_for_the_device() {
    let mut tried = Vec::new();
    for _ in 0..TRIES {
        let pair = Pair::new(&std::env::temp_dir(), 0, &source(), &Tree::new());
        let Some(neighbour) = Neighbour::begin(pair.path()) else { return };
        let begun = Instant::now();
        let output = pair.sync(&["--max-load=1", "--events=events"]);
        let elapsed = begun.elapsed();
        drop(neighbour);
        assert!(output.status.success(), "{}", said(&output));
        pair.assert_equal("source", "target", &output);
        let load = load(&pair).unwrap();
        let paused = Duration::from_secs_f64(load["paused_seconds"].as_f64().unwrap());
        assert!(paused <= elapsed, "{load} of {elapsed:?}");
        let is_told = said(&output).contains(" because other programs waited for I/O\n");
        assert_eq!(is_told, pauses(&pair) > 0, "{load}: {}", said(&output));
        if pauses(&pair) > 0 && !paused.is_zero() {
            return;
        }
        tried.push(load);
    }
    panic!("it never paused: {tried:?}");
}

#[test]
fn a_run_without_neighbours_measures_them() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &source(), &Tree::new());
    let output = pair.sync(&["--max-load=50", "--events=events"]);
    assert!(output.status.success(), "{}", said(&output));
    pair.assert_equal("source", "target", &output);
    let load_of_run = load(&pair).unwrap();
    if fs::read("/proc/pressure/io").is_ok() {
        assert!(load_of_run["measured"].as_u64().unwrap() > 0, "{load_of_run}");
    }
    // Another run does not measure.
    let output = pair.sync(&["--events=events"]);
    assert!(output.status.success() && load(&pair).is_none(), "{}", said(&output));
}

#[test]
fn an_undo_yields_too() {
    let memory = Filesystem::memory();
    let target = Tree::new().with("gone", Node::file("gone"));
    let pair = Pair::new(memory.path(), 0, &source(), &target);
    let output = pair.sync(&["--delete", "--max-load=100"]);
    assert!(output.status.success(), "{}", said(&output));
    let trash = fs::read_dir(pair.path().join("target/.ferry-trash")).unwrap().next().unwrap().unwrap();
    let output = super::sync(
        pair.path(),
        &["--events=events", "--max-load=100", "--undo", trash.path().to_str().unwrap()],
    );
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(fs::read_to_string(pair.path().join("target/gone")).unwrap(), "gone");
    if fs::read("/proc/pressure/io").is_ok() {
        assert!(load(&pair).unwrap()["measured"].as_u64() > Some(0));
    }
}

#[test]
fn all_threads_have_the_lowest_priorities() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &source(), &Tree::new());
    let mut child = started(&pair, &["--max-load=100", "--bwlimit=1"]);
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    let tasks: Vec<String> = tasks.map(|task| task.unwrap().file_name().into_string().unwrap()).collect();
    let nice: Vec<_> = tasks.iter().filter_map(|task| nice(child.id(), task)).collect();
    let classes: Vec<_> = match is_installed("ionice") {
        true => tasks.iter().filter_map(|task| class(task)).collect(),
        false => skip("ionice is not installed").unwrap_or_default(),
    };
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    child.wait().unwrap();
    assert!(!nice.is_empty() && nice.iter().all(|nice| nice == "19"), "{nice:?}");
    assert!(classes.iter().all(|class| class == "idle"), "{classes:?}");
}

/// Returns the nice value of a thread, field 19 of its stat (proc_pid_stat(5)); `None` if it has ended.
fn nice(process: u32, task: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/task/{task}/stat")).ok()?;
    // The second field is a name in parentheses, which may contain spaces.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').nth(16).map(str::to_owned)
}

/// Returns the I/O class of a thread; `None` if it has ended.
fn class(task: &str) -> Option<String> {
    let output = Command::new("ionice").args(["-p", task]).output().unwrap();
    output.status.success().then(|| text(&output.stdout).trim().to_owned())
}

#[test]
fn a_run_that_pauses_is_interrupted_at_once() {
    let mut tried = Vec::new();
    for _ in 0..TRIES {
        let pair = Pair::new(&std::env::temp_dir(), 0, &source(), &Tree::new());
        let Some(neighbour) = Neighbour::begin(pair.path()) else { return };
        let mut child = started(&pair, &["--max-load=1", "--events=events"]);
        // Its pause takes 2 s.
        std::thread::sleep(Duration::from_millis(400));
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let begun = Instant::now();
        let status = child.wait().unwrap();
        let elapsed = begun.elapsed();
        drop(neighbour);
        // A run whose pause was short may have ended before the signal.
        assert!(status.signal() == Some(2) || status.success(), "{status}");
        let pauses = pauses(&pair);
        if status.signal() == Some(2) && pauses > 0 && elapsed < Duration::from_secs(1) {
            return;
        }
        tried.push((status, pauses, elapsed));
    }
    panic!("it did not pause, or did not end at once: {tried:?}");
}

#[test]
fn the_time_limit_ends_a_pause() {
    let pair = Pair::new(&std::env::temp_dir(), 0, &source(), &Tree::new());
    let Some(_neighbour) = Neighbour::begin(pair.path()) else { return };
    // The rate alone would have it last for minutes.
    let output = pair.sync(&["--max-load=1", "--time-limit=700ms", "--bwlimit=10K"]);
    assert_eq!(output.status.code(), Some(124), "{}", said(&output));
    assert!(said(&output).contains("stopped by --time-limit after "), "{}", said(&output));
}

/// Runs a script in which `$0` is ferry, in a mount namespace; `None` if nothing can be mounted.
fn mounted(pair: &Pair, script: &str) -> Option<Output> {
    if !is_root() {
        return skip("mounting needs root");
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, FERRY]).current_dir(pair.path()).env("LC_ALL", "C.UTF-8");
    let output = command.output().unwrap();
    if output.status.code() == Some(99) {
        return skip("nothing can be mounted over /proc/pressure");
    }
    Some(output)
}

#[test]
fn a_kernel_that_does_not_count_who_waits_is_reported() {
    let memory = Filesystem::memory();
    for (mount, why) in [
        ("mount --bind /dev/null /proc/pressure/io", "it has no total of 'some'"),
        // Without an end.
        ("mount --bind /dev/zero /proc/pressure/io", "it has no total of 'some'"),
        ("mount -t tmpfs none /proc/pressure", "No such file or directory"),
    ] {
        let pair = Pair::new(memory.path(), 0, &source(), &Tree::new());
        let run = "exec \"$0\" sync --max-load=5 --events=events source target";
        let script = format!("{mount} || exit 99; {run}");
        let Some(output) = mounted(&pair, &script) else { return };
        assert!(output.status.success(), "{}", said(&output));
        pair.assert_equal("source", "target", &output);
        let warning = format!(
            "ferry sync: warning: cannot read '/proc/pressure/io': {why}; --max-load only lowers the priorities"
        );
        let warnings: Vec<_> = text(&output.stderr).lines().filter(|line| line.contains("warning")).collect();
        assert_eq!(warnings, [warning.as_str()]);
        assert_eq!(load(&pair).unwrap()["measured"].as_u64(), Some(0));
    }
}

#[test]
fn a_refused_priority_is_reported() {
    let memory = Filesystem::memory();
    for (call, what) in [("setpriority", "processor"), ("ioprio_set", "I/O")] {
        let pair = Pair::new(memory.path(), 0, &source(), &Tree::new());
        let inject = format!("inject={call}:error=EPERM");
        let words = ["--max-load=5", "source", "target"];
        let Some(output) = struck(pair.path(), &inject, &words) else { return };
        assert!(output.status.success(), "{}", said(&output));
        pair.assert_equal("source", "target", &output);
        let warning =
            format!("ferry sync: warning: cannot lower the {what} priority: Operation not permitted\n");
        assert!(said(&output).contains(&warning), "{}", said(&output));
    }
}

#[test]
fn a_load_that_is_none_is_refused() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &source(), &Tree::new());
    for value in ["0", "101", "abc", ""] {
        let output = pair.sync(&[format!("--max-load={value}").as_str()]);
        let start = format!("ferry sync: invalid percentage '{value}' for '--max-load': ");
        assert!(output.status.code() == Some(2) && said(&output).starts_with(&start), "{}", said(&output));
        assert!(!pair.path().join("target/large").exists());
    }
}
