//! Incomplete targets: removed if the run created them, otherwise marked with the oldest time and reported,
//! so that `cp -u` copies them again.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::faulty::served::{Call, Files, Mischief, Served};
use crate::interrupted::end_of;
use crate::random::filesystem::within;
use crate::scene::{FERRY, OLD, skip, text};

const BACKENDS: [&str; 2] = ["--backend=uring", "--backend=posix"];
const COUNT: usize = 12;
/// Size of a block: content that fits into one is written at once.
const BLOCK: usize = 256 << 10;
const OLD_TEXT: &str = "what was there";

/// Content that identifies the file; every third file is large.
fn bytes_of(index: usize) -> Vec<u8> {
    let size = [20_000, 300_000, 1_500_000][index % 3];
    format!("line of f{index}\n").into_bytes().into_iter().cycle().take(size).collect()
}

fn fill(files: &mut Files) {
    files.folder("s");
    for index in 0..COUNT {
        files.file(&format!("s/f{index}"), &bytes_of(index));
    }
}

#[derive(Debug, Clone, Copy)]
enum End {
    Signal(Signal),
    NoSpace,
    ReadErrors,
}

/// Ends the copy at read number `at`; afterwards it does nothing.
fn ends(end: End, at: u32, process: &Arc<AtomicI32>, reads: &Arc<AtomicU32>) -> Mischief {
    let (process, reads) = (Arc::clone(process), Arc::clone(reads));
    Box::new(move |_, call, _| {
        // No copy is running.
        let Some(pid) = Pid::from_raw(process.load(Ordering::SeqCst)) else { return Ok(()) };
        if call != Call::Read {
            return Ok(());
        }
        let number = reads.fetch_add(1, Ordering::SeqCst) + 1;
        match end {
            End::Signal(signal) if number == at => kill_process(pid, signal).unwrap(),
            End::ReadErrors if number >= at && number % 3 == 0 => return Err(Errno::IO),
            End::Signal(_) if number > at => std::thread::sleep(Duration::from_millis(3)),
            End::Signal(_) | End::ReadErrors | End::NoSpace => {}
        }
        Ok(())
    })
}

/// A served source; every second target exists.
struct Place {
    path: PathBuf,
    process: Arc<AtomicI32>,
    reads: Arc<AtomicU32>,
    _served: Served,
}

impl Place {
    fn new(path: PathBuf, end: End, at: u32) -> Option<Self> {
        fs::create_dir(&path).unwrap();
        mount(&path, "size=64m");
        // Set explicitly: each is older than any source.
        fs::create_dir(path.join("t")).unwrap();
        for index in (0..COUNT).filter(|index| index % 2 == 0) {
            let target = path.join(format!("t/f{index}"));
            fs::write(&target, OLD_TEXT).unwrap();
            let time = std::time::UNIX_EPOCH + Duration::from_secs(OLD.unsigned_abs());
            fs::File::options().write(true).open(&target).unwrap().set_modified(time).unwrap();
        }
        if matches!(end, End::NoSpace) {
            mount(&path, &format!("remount,size={}k", 256 + 128 * at));
        }
        let (process, reads) = (Arc::new(AtomicI32::new(0)), Arc::new(AtomicU32::new(0)));
        let served = Served::at(&path.join("served"), fill, ends(end, at, &process, &reads));
        match served {
            Ok(served) => Some(Self { path, process, reads, _served: served }),
            Err(why) => skip(&why),
        }
    }

    /// Copies; ends as planned if `is_disturbed`.
    fn copy(&self, words: &str, is_disturbed: bool) -> Output {
        let mut command = Command::new(FERRY);
        command
            .arg("cp")
            .args(words.split_whitespace())
            .args(["-T", "served/s", "t"])
            .current_dir(&self.path);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let process = if is_disturbed { i32::try_from(child.id()).unwrap() } else { 0 };
        self.process.store(process, Ordering::SeqCst);
        end_of(&mut child, words);
        self.process.store(0, Ordering::SeqCst);
        child.wait_with_output().unwrap()
    }

    /// Modification times, by index, of targets that are neither unchanged nor complete.
    fn unfinished(&self) -> BTreeMap<usize, i64> {
        let mut found = BTreeMap::new();
        for index in 0..COUNT {
            let target = self.path.join(format!("t/f{index}"));
            let Ok(bytes) = fs::read(&target) else { continue };
            let is_old = bytes == OLD_TEXT.as_bytes() && index % 2 == 0;
            if !is_old && bytes != bytes_of(index) {
                found.insert(index, target.metadata().unwrap().mtime());
            }
        }
        found
    }

    fn is_complete(&self) -> bool {
        (0..COUNT).all(|index| {
            fs::read(self.path.join(format!("t/f{index}"))).is_ok_and(|bytes| bytes == bytes_of(index))
        })
    }
}

/// Unmounted with the test's namespace.
fn mount(path: &Path, options: &str) {
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(path).status();
    assert!(mounted.unwrap().success());
}

/// Ends one copy and completes it with `-u`; returns errors and the number of incomplete targets.
fn end_one(path: PathBuf, end: End, at: u32, words: &str) -> (Vec<String>, usize) {
    let Some(place) = Place::new(path, end, at) else { return (Vec::new(), 0) };
    let output = place.copy(&format!("--errors=../errors {words}"), true);
    let says = text(&output.stderr);
    let when = format!("cp {words}, {end:?} at {at}: {says}");
    let mut wrong = Vec::new();
    let may_end_so = match end {
        End::Signal(signal) => output.status.signal() == Some(signal.as_raw()),
        End::NoSpace | End::ReadErrors => output.status.code() == Some(1),
    };
    if !may_end_so && !output.status.success() {
        wrong.push(format!("{when}: it ended with {}", output.status));
    }
    let unfinished = place.unfinished();
    let recorded = fs::read_to_string(place.path.join("../errors")).unwrap_or_default();
    for (index, mtime) in &unfinished {
        if index % 2 == 1 {
            wrong.push(format!("{when}: f{index}, which it made, is left in pieces"));
        }
        if *mtime >= OLD {
            wrong.push(format!("{when}: f{index} is in pieces, and has a time of {mtime}"));
        }
        if !says.contains(&format!("f{index}'")) || !recorded.contains(&format!("f{index}\"")) {
            wrong.push(format!("{when}: f{index} is in pieces, and not named; errors: {recorded}"));
        }
    }
    if matches!(end, End::NoSpace) {
        mount(&place.path, "remount,size=64m");
    }
    let again = place.copy(&format!("-u {words}"), false);
    if !again.status.success() || !place.is_complete() {
        wrong.push(format!("{when}: cp -u does not complete it: {}", text(&again.stderr)));
    }
    (wrong, unfinished.len())
}

#[test]
fn an_unfinished_target_is_named_and_copied_again_by_update() {
    const TEST: &str = "unfinished::an_unfinished_target_is_named_and_copied_again_by_update";
    const ENDS: [End; 5] = [
        End::Signal(Signal::INT),
        End::Signal(Signal::TERM),
        End::Signal(Signal::HUP),
        End::NoSpace,
        End::ReadErrors,
    ];
    within(TEST, "tmpfs", |memory| {
        let (mut number, mut unfinished, mut wrong) = (0, 0, Vec::new());
        for end in ENDS {
            for (at, options) in
                [3, 20].iter().flat_map(|at| ["-r", "-a", "-r --atomic"].map(|options| (*at, options)))
            {
                number += 1;
                let words = format!("{options} {}", BACKENDS[number % 2]);
                let (found, count) = end_one(memory.path().join(number.to_string()), end, at, &words);
                wrong.extend(found);
                unfinished += count;
            }
        }
        println!("{unfinished} targets were not finished in {number} copies");
        assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    });
}

/// Targets in pieces that are not small. A worker writes a small file, whose bytes it has read, in some microseconds, in
/// which a kill may come.
fn larger_ones(unfinished: &BTreeMap<usize, i64>) -> usize {
    unfinished.keys().filter(|index| bytes_of(**index).len() > BLOCK).count()
}

/// GNU cp writes one file at a time. A ferry worker waits for the bytes of one, and may be writing a small one.
#[test]
fn a_kill_leaves_one_awaited_file_in_pieces_for_each_worker() {
    const TEST: &str = "unfinished::a_kill_leaves_one_awaited_file_in_pieces_for_each_worker";
    within(TEST, "tmpfs", |memory| {
        let (mut number, mut wrong) = (0, Vec::new());
        for at in [5, 23] {
            for (options, most) in [("-r --workers=1", 1), ("-a --workers=2", 2), ("-r --atomic", 0)] {
                for backend in BACKENDS {
                    number += 1;
                    let path = memory.path().join(number.to_string());
                    let Some(place) = Place::new(path, End::Signal(Signal::KILL), at) else { return };
                    let output = place.copy(&format!("{options} {backend}"), true);
                    assert_eq!(output.status.signal(), Some(9), "{options}: {}", text(&output.stderr));
                    let unfinished = place.unfinished();
                    if larger_ones(&unfinished) > most || unfinished.len() > 2 * most {
                        let reads = place.reads.load(Ordering::SeqCst);
                        wrong.push(format!("{options} {backend}, read {at} of {reads}: {unfinished:?}"));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{} of {number} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    });
}

/// Large files after a worker's first have no name while they are copied, but their backups exist. One worker copies a
/// large file in each of several directories: all but one of them have no name yet when their reads fail.
#[test]
fn a_backup_gets_its_name_back_when_its_copy_fails() {
    const TEST: &str = "unfinished::a_backup_gets_its_name_back_when_its_copy_fails";
    const FOLDERS: usize = 6;
    within(TEST, "tmpfs", |memory| {
        let sources = |files: &mut Files| {
            files.folder("s");
            for index in 0..FOLDERS {
                files.folder(&format!("s/{index}"));
                files.file(&format!("s/{index}/f"), &vec![7; 3_000_000]);
            }
        };
        for (number, (options, backend)) in
            ["-r -b", "-a -b", "-r -b --atomic"].iter().flat_map(|o| BACKENDS.map(|b| (o, b))).enumerate()
        {
            let path = memory.path().join(number.to_string());
            for index in 0..FOLDERS {
                fs::create_dir_all(path.join(format!("t/{index}"))).unwrap();
                fs::write(path.join(format!("t/{index}/f")), OLD_TEXT).unwrap();
            }
            let mut reads = BTreeMap::<String, u32>::new();
            let fails_late = move |_: &mut Files, call: Call, name: &str| {
                let count = reads.entry(name.to_owned()).or_default();
                *count += u32::from(call == Call::Read);
                if call == Call::Read && *count > 3 { Err(Errno::IO) } else { Ok(()) }
            };
            let served = Served::at(&path.join("served"), sources, Box::new(fails_late));
            let Some(_served) = served.map_or_else(|why| skip(&why), Some) else { return };
            let mut command = Command::new(FERRY);
            command.arg("cp").args(options.split_whitespace()).args([
                backend,
                "--workers=1",
                "-T",
                "served/s",
                "t",
            ]);
            let output = command.current_dir(&path).stdin(Stdio::null()).output().unwrap();
            let says = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{options} {backend}: {says}");
            for index in 0..FOLDERS {
                let left = fs::read(path.join(format!("t/{index}/f"))).unwrap_or_default();
                assert_eq!(left, OLD_TEXT.as_bytes(), "{options} {backend}: t/{index}/f: {says}");
                assert!(!path.join(format!("t/{index}/f~")).exists(), "{options} {backend}: {says}");
            }
        }
    });
}
