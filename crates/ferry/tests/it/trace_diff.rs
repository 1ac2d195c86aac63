//! `ferry trace diff`: real recordings of runs that something slows down, which is to be found.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ferry_io::{Backend, Name, OpenHow, Options, RouteChoice, Tracing, for_each, run};
use serde_json::Value;

use crate::faulty::served::{Call, Files, Mischief, Served};
use crate::random::filesystem::{Filesystem, within};
use crate::scene::{ferry, skip, text};

/// Attempts to record a pair of runs that differ by one cause. Other tests can delay all recordings of a run, which is
/// another cause.
const ATTEMPTS: usize = 2;

/// Recordings of each run. The fastest is the one that other tests have delayed least.
const RECORDINGS: usize = 3;

/// Held by each test of this file, because one of them keeps all processors busy.
static PROCESSORS: Mutex<()> = Mutex::new(());

fn processors() -> MutexGuard<'static, ()> {
    PROCESSORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes small files in `s`.
fn make_files(folder: &Path, files: usize) {
    fs::create_dir(folder.join("s")).unwrap();
    for index in 0..files {
        fs::write(folder.join(format!("s/file {index}")), [7; 3_000]).unwrap();
    }
}

/// Records a run several times by `once`, which gets a path and returns that of the recording, and keeps the fastest as
/// `name`.
#[track_caller]
fn fastest(folder: &Path, name: &str, once: impl Fn(&Path) -> PathBuf) {
    let mut least = u64::MAX;
    for _ in 0..RECORDINGS {
        let recording = once(&folder.join(format!("{name} again")));
        let trace = ferry_trace::read::open(&recording).unwrap();
        let took = ferry_trace::diff::Diff::of(&trace, &trace).unwrap().before.took;
        if took < least {
            fs::rename(&recording, folder.join(name)).unwrap();
            least = took;
        }
    }
}

/// Records a copy of `source` as `name`.
#[track_caller]
fn record(folder: &Path, name: &str, source: &str, options: &[&str]) {
    fastest(folder, name, |path| {
        let (trace, target) = (format!("--trace={}", path.display()), format!("target of {name}"));
        let output = ferry(folder, &[&["cp", "-r", &trace], options, &[source, &target]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        fs::remove_dir_all(folder.join(target)).unwrap();
        path.to_owned()
    });
}

#[track_caller]
fn compare(folder: &Path) -> Value {
    let output = ferry(folder, &["trace", "diff", "--json", "a", "b"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns true if B took at least 1.3 times as long as A.
fn is_slower(diff: &Value) -> bool {
    diff["difference_ns"].as_i64().unwrap() * 10 >= diff["a"]["took_ns"].as_i64().unwrap() * 3
}

/// Returns true if at least 90 % of the difference, and not much more than all of it, has this cause.
fn is_caused_by(cause: &str, diff: &Value) -> bool {
    let causes = diff["causes"].as_array().unwrap();
    let its = causes.iter().find(|its| its["cause"] == cause).unwrap();
    is_slower(diff) && (0.9..=1.1).contains(&its["share"].as_f64().unwrap())
}

/// Records pairs until one differs by this cause, and returns the difference; `None` if they can't be recorded.
#[track_caller]
fn caused_by(cause: &str, folder: &Path, record_pair: impl Fn() -> Option<()>) -> Option<Value> {
    let mut diff = Value::Null;
    for _ in 0..ATTEMPTS {
        record_pair()?;
        diff = compare(folder);
        if is_caused_by(cause, &diff) {
            return Some(diff);
        }
    }
    panic!("{cause}: {diff:#}");
}

/// Mounts a filesystem with small files.
fn serve(path: &Path, files: usize, read_takes: Duration, mischief: Mischief) -> Option<Served> {
    let fill = |served: &mut Files| {
        served.read_takes = read_takes;
        (0..files).for_each(|index| served.file(&index.to_string(), &[7; 3_000]));
    };
    Served::at(path, fill, mischief).map_or_else(|why| skip(&why), Some)
}

#[test]
fn a_slower_device_is_found() {
    let _alone = processors();
    within("trace_diff::a_slower_device_is_found", "tmpfs", |memory| {
        caused_by("device wait", memory.path(), || {
            for (name, milliseconds) in [("a", 2), ("b", 40)] {
                let mischief: Mischief = Box::new(move |_, call, _| {
                    if call == Call::Read {
                        std::thread::sleep(Duration::from_millis(milliseconds));
                    }
                    Ok(())
                });
                let _served = serve(&memory.path().join("served"), 30, Duration::ZERO, mischief)?;
                record(memory.path(), name, "served", &[]);
            }
            Some(())
        });
    });
}

#[test]
fn a_slower_route_is_found() {
    let _alone = processors();
    let memory = Filesystem::memory();
    make_files(memory.path(), 3_000);
    record(memory.path(), "warm", "s", &[]);
    let diff = caused_by("route", memory.path(), || {
        record(memory.path(), "a", "s", &[]);
        record(memory.path(), "b", "s", &["--route=pool"]);
        Some(())
    });
    let diff = diff.unwrap();
    let moves = diff["moves"].as_array().unwrap();
    let is_load = |its: &&Value| its["kind"] == "load" && its["after"] == "pool";
    let load = moves.iter().find(is_load).unwrap_or_else(|| panic!("{diff:#}"));
    assert!(load["before"] == "inline" && load["operations"].as_u64() > Some(2_700), "{diff:#}");
    let output = ferry(memory.path(), &["trace", "diff", "a", "b"]);
    let first = text(&output.stdout).lines().next().unwrap();
    assert!(first.starts_with("B took ") && first.contains(" longer than A. "), "{first}");
}

/// Reads files with up to 12 operations in flight, on a pool of so many threads, and returns the recording's path: runs
/// of one process record to names of their own.
fn read_files(folder: &Path, files: usize, pool_threads: usize, trace: &Path) -> PathBuf {
    let options = Options {
        backend: Backend::Posix,
        route: RouteChoice::Pool,
        workers: NonZeroUsize::MIN,
        pool_threads,
        trace: Some(Tracing::to(trace)),
        ..Options::default()
    };
    let done = run(&options, async |io| {
        let folder = io.open_dir(folder)?;
        for_each(12, 0..files, async |index| {
            let name = Name::new(index.to_string().as_bytes()).expect("a component");
            let file = folder.open(&name, OpenHow::read()).await?;
            file.read_at(io.block().await?, 0).await.1.map(drop)
        })
        .await
    });
    let (read, stats) = done.unwrap();
    read.unwrap();
    stats.trace.unwrap().file
}

#[test]
fn delayed_hand_overs_are_found() {
    let _alone = processors();
    within("trace_diff::delayed_hand_overs_are_found", "tmpfs", |memory| {
        caused_by("hand-overs", memory.path(), || {
            // With one thread, an operation waits for the others. Reads take long beside the times in which threads are
            // ready to run, because other tests run, too.
            for (name, pool_threads) in [("a", 16), ("b", 1)] {
                let path = memory.path().join("served");
                let _served = serve(&path, 24, Duration::from_millis(40), Box::new(|_, _, _| Ok(())))?;
                fastest(memory.path(), name, |trace| read_files(&path, 24, pool_threads, trace));
            }
            Some(())
        });
    });
}

/// Busy processes, which end with the test.
struct Busy(Vec<Child>);

impl Busy {
    fn start(count: usize) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        Self((0..count).map(|_| command.spawn().unwrap()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

#[test]
fn busy_processors_are_found() {
    let _alone = processors();
    let memory = Filesystem::memory();
    make_files(memory.path(), 2_000);
    record(memory.path(), "warm", "s", &[]);
    record(memory.path(), "a", "s", &[]);
    record(memory.path(), "b", "s", &[]);
    if compare(memory.path())["basis"] != "kernel" {
        skip::<()>("the kernel can't be traced: preempted calls look as if they slept");
        return;
    }
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    caused_by("processor time", memory.path(), || {
        record(memory.path(), "a", "s", &[]);
        let _busy = Busy::start(3 * processors);
        record(memory.path(), "b", "s", &[]);
        Some(())
    });
}

#[test]
fn two_recordings_are_asked_for() {
    let memory = Filesystem::memory();
    make_files(memory.path(), 3);
    record(memory.path(), "a", "s", &[]);
    for (arguments, code, line) in [
        (&[][..], 2, "ferry trace diff: missing operands"),
        (&["a"], 2, "ferry trace diff: missing operand after 'a'"),
        (&["a", "a", "a"], 2, "ferry trace diff: extra operand 'a'"),
        (&["a", "missing"], 1, "ferry trace diff: cannot read 'missing': No such file or directory"),
    ] {
        let output = ferry(memory.path(), &[&["trace", "diff"], arguments].concat());
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(code), ""), "{arguments:?}");
        assert_eq!(text(&output.stderr).lines().next(), Some(line));
    }
    let output = ferry(memory.path(), &["trace", "diff", "a", "a"]);
    let printed = text(&output.stdout);
    assert!(printed.contains(", as long as A.\n"), "{printed}");
    let written = |name: &str| {
        let output = ferry(memory.path(), &["trace", "diff", "a", "a", "-o", name]);
        assert_eq!((output.status.code(), text(&output.stdout), text(&output.stderr)), (Some(0), "", ""));
        std::fs::read_to_string(memory.path().join(name)).unwrap()
    };
    assert_eq!(written("diff.txt"), printed);
    serde_json::from_str::<serde_json::Value>(&written("diff.json")).unwrap();
    let output = ferry(memory.path(), &["trace", "diff", "a", "a", "-o", "a"]);
    let refusal = "ferry trace diff: cannot write 'a': it is one of the recordings\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), refusal));
}
