//! Complete files of other programs that take a target's name during the copy must stay intact or become the
//! copy.
//!
//! The test serves the source over FUSE and renames the other program's file at a chosen call. It keeps a
//! descriptor, so that it can read the file even after its name is gone.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, SystemTime};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::faulty::served::{Call, Files, Mischief, Served};
use crate::interrupted::end_of;
use crate::random::filesystem::within;
use crate::scene::{FERRY, skip, text};

const BACKENDS: [&str; 2] = ["--backend=uring", "--backend=posix"];
const FOREIGN: &str = "a complete file of another program";
const OLD: &str = "what was there";

fn content(size: usize) -> Vec<u8> {
    b"the source's bytes; ".iter().copied().cycle().take(size).collect()
}

/// A directory with the target directory `out`, and an open file `new` of another program.
struct Place {
    path: PathBuf,
    held: File,
}

impl Place {
    fn new(path: PathBuf, before: Option<&str>) -> Self {
        fs::create_dir_all(path.join("out")).unwrap();
        if let Some(before) = before {
            let target = path.join("out/f");
            fs::write(&target, before).unwrap();
            make_old(&target);
        }
        Self { held: foreign(&path.join("new")), path }
    }

    fn target(&self) -> PathBuf {
        self.path.join("out/f")
    }

    /// Current bytes of the other program's file.
    fn held(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.held.seek(SeekFrom::Start(0)).unwrap();
        self.held.read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// Returns another program's rename.
    fn rename(&self) -> impl Fn() + Send + use<> {
        let (new, target) = (self.path.join("new"), self.target());
        move || fs::rename(&new, &target).unwrap()
    }
}

/// Makes another program's file, older than any source.
fn foreign(path: &Path) -> File {
    fs::write(path, FOREIGN).unwrap();
    make_old(path);
    File::open(path).unwrap()
}

fn make_old(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(100_000)).unwrap();
}

/// Runs ferry for at most a minute; stores its process id for the mischief.
fn copy(place: &Path, words: &str, process: &AtomicI32) -> Output {
    let mut command = Command::new(FERRY);
    command.arg("cp").args(words.split_whitespace()).current_dir(place);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    process.store(i32::try_from(child.id()).unwrap(), Ordering::SeqCst);
    end_of(&mut child, words);
    child.wait_with_output().unwrap()
}

/// Process id that [`copy`] stored.
fn begun(process: &AtomicI32) -> Pid {
    loop {
        if let Some(pid) = Pid::from_raw(process.load(Ordering::SeqCst)) {
            return pid;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn serve(place: &Place, size: usize, mischief: Mischief) -> Option<Served> {
    let fill = |files: &mut Files| files.file("f", &content(size));
    Served::at(&place.path.join("served"), fill, mischief).map_or_else(|why| skip(&why), Some)
}

/// Collects failures, so that a failing test shows every case.
#[derive(Default)]
struct Wrong(Vec<String>);

impl Wrong {
    fn check(&mut self, holds: bool, what: &str) {
        if !holds {
            self.0.push(what.to_owned());
        }
    }

    #[track_caller]
    fn assert_none(&self) {
        assert!(self.0.is_empty(), "{} are wrong:\n{}", self.0.len(), self.0.join("\n"));
    }
}

/// Sizes of one block, of more, and of more than ferry reads at once, with each backend.
fn cases() -> impl Iterator<Item = (usize, &'static str)> {
    let sizes = [10, 5_000, 300_000, 3_000_000].into_iter();
    sizes.flat_map(|size| BACKENDS.map(|backend| (size, backend)))
}

#[test]
fn a_file_that_takes_the_targets_name_before_it_is_opened_becomes_the_copy() {
    const TEST: &str = "foreign::a_file_that_takes_the_targets_name_before_it_is_opened_becomes_the_copy";
    const OPTIONS: [&str; 9] =
        ["", "-f", "-u", "-p", "-a", "--fsync", "--remove-destination", "-b", "--atomic"];
    within(TEST, "tmpfs", |memory| {
        let (mut number, mut wrong) = (0, Wrong::default());
        for (options, (size, backend)) in
            OPTIONS.iter().flat_map(|options| cases().map(move |case| (options, case)))
        {
            number += 1;
            let mut place = Place::new(memory.path().join(number.to_string()), Some(OLD));
            let (rename, mut is_done) = (place.rename(), false);
            // The target was examined, but is not open yet.
            let mischief: Mischief = Box::new(move |_, call, name| {
                if call == Call::Open && name == "f" && !std::mem::replace(&mut is_done, true) {
                    rename();
                }
                Ok(())
            });
            let Some(_served) = serve(&place, size, mischief) else { return };
            let words = format!("{options} {backend} served/f out/f");
            let output = copy(&place.path, &words, &AtomicI32::new(0));
            let (held, when) = (place.held(), format!("cp {words}, {size} bytes: {}", text(&output.stderr)));
            wrong.check(output.status.success(), &format!("{when}: it failed"));
            let is_copied = fs::read(place.target()).is_ok_and(|bytes| bytes == content(size));
            wrong.check(is_copied, &format!("{when}: the target is another file"));
            let is_whole = held == FOREIGN.as_bytes() || held == content(size);
            wrong.check(is_whole, &format!("{when}: {} bytes are left of the other file", held.len()));
        }
        assert_eq!(number, 72);
        wrong.assert_none();
    });
}

#[derive(Debug, Clone, Copy)]
enum End {
    ReadError,
    Signal(Signal),
    NoSpace,
}

/// Replaces the target after the copy starts to read, then makes the copy fail.
fn fails(place: &Place, end: End, waits_for_target: bool, process: &Arc<AtomicI32>) -> Mischief {
    let (rename, target, process) = (place.rename(), place.target(), Arc::clone(process));
    let mut is_done = false;
    Box::new(move |_, call, name| {
        if call != Call::Read || name != "f" {
            return Ok(());
        }
        if !is_done && (!waits_for_target || fs::read(&target).is_ok_and(|bytes| bytes != OLD.as_bytes())) {
            is_done = true;
            rename();
            if let End::Signal(signal) = end {
                kill_process(begun(&process), signal).unwrap();
            }
        }
        match end {
            End::ReadError if is_done => Err(Errno::IO),
            End::ReadError | End::NoSpace => Ok(()),
            End::Signal(_) => {
                std::thread::sleep(Duration::from_millis(3));
                Ok(())
            }
        }
    })
}

/// Makes one copy onto its own filesystem fail; returns the failed checks.
fn fail_one(path: PathBuf, end: End, (options, before): (&str, Option<&str>), backend: &str) -> Wrong {
    fs::create_dir(&path).unwrap();
    let room = if matches!(end, End::NoSpace) { "size=1m" } else { "size=64m" };
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", room, "none"]).arg(&path).status();
    assert!(mounted.unwrap().success());
    let mut place = Place::new(path, before);
    let mut wrong = Wrong::default();
    let process = Arc::new(AtomicI32::new(0));
    let mischief = fails(&place, end, !options.contains("--atomic"), &process);
    if let Some(_served) = serve(&place, 3_000_000, mischief) {
        let words = format!("{options} {backend} served/f out/f");
        let output = copy(&place.path, &words, &process);
        let when = format!("cp {words} ({before:?}), {end:?}: {}", text(&output.stderr));
        let has_failed = match end {
            End::Signal(signal) => output.status.signal() == Some(signal.as_raw()),
            End::ReadError | End::NoSpace => output.status.code() == Some(1),
        };
        wrong.check(has_failed, &format!("{when}: it ended with {}", output.status));
        wrong.check(place.held() == FOREIGN.as_bytes(), &format!("{when}: the file was written to"));
        let is_there = fs::read(place.target()).is_ok_and(|bytes| bytes == FOREIGN.as_bytes());
        wrong.check(is_there, &format!("{when}: the file is gone"));
        let is_kept = !options.contains("-b")
            || options.contains("--atomic")
            || fs::read(place.path.join("out/f~")).is_ok_and(|bytes| bytes == OLD.as_bytes());
        wrong.check(is_kept, &format!("{when}: the backup is gone"));
        let names = fs::read_dir(place.path.join("out")).unwrap();
        let hidden = names.filter(|entry| entry.as_ref().unwrap().file_name().as_encoded_bytes()[0] == b'.');
        wrong.check(hidden.count() == 0, &format!("{when}: a hidden name is left"));
    }
    let path = place.path.clone();
    drop(place);
    assert!(Command::new("umount").arg(path).status().unwrap().success());
    wrong
}

#[test]
fn a_copy_that_fails_leaves_a_file_that_took_its_targets_name() {
    const TEST: &str = "foreign::a_copy_that_fails_leaves_a_file_that_took_its_targets_name";
    /// Options, and the content of an existing target.
    const LINES: [(&str, Option<&str>); 9] = [
        ("", None),
        ("-a", None),
        ("--atomic", None),
        ("-a --atomic", None),
        ("", Some(OLD)),
        ("-a --remove-destination", Some(OLD)),
        ("-b", Some(OLD)),
        ("--atomic", Some(OLD)),
        ("--atomic -b", Some(OLD)),
    ];
    const ENDS: [End; 5] = [
        End::ReadError,
        End::NoSpace,
        End::Signal(Signal::INT),
        End::Signal(Signal::TERM),
        End::Signal(Signal::HUP),
    ];
    within(TEST, "tmpfs", |memory| {
        let mut wrong = Wrong::default();
        for (number, end) in ENDS.into_iter().enumerate() {
            for (index, line) in LINES.into_iter().enumerate() {
                let path = memory.path().join(format!("{number}.{index}"));
                wrong.0.extend(fail_one(path, end, line, BACKENDS[(number + index) % 2]).0);
            }
        }
        wrong.assert_none();
    });
}

/// Replaces a file of the served target before a call on it fails.
fn replaces(failing: Call) -> Mischief {
    let mut is_done = false;
    Box::new(move |files, call, name| {
        if call != failing || name != "f" {
            return Ok(());
        }
        if !std::mem::replace(&mut is_done, true) {
            files.remove("out/f");
            files.file("out/f", FOREIGN.as_bytes());
        }
        Err(Errno::IO)
    })
}

#[test]
fn a_target_that_cannot_be_written_leaves_a_file_that_took_its_name() {
    const TEST: &str = "foreign::a_target_that_cannot_be_written_leaves_a_file_that_took_its_name";
    const LINES: [&str; 3] = ["source/f served/out/f", "-rT source served/out", "-aT source served/out"];
    within(TEST, "tmpfs", |memory| {
        let (mut number, mut wrong) = (0, Wrong::default());
        for (call, line) in [Call::Write, Call::Flush].iter().flat_map(|call| LINES.map(|line| (*call, line)))
        {
            for (size, backend) in cases() {
                number += 1;
                let path = memory.path().join(number.to_string());
                fs::create_dir_all(path.join("source")).unwrap();
                fs::write(path.join("source/f"), content(size)).unwrap();
                let fill = |files: &mut Files| files.folder("out");
                let _served = match Served::at(&path.join("served"), fill, replaces(call)) {
                    Ok(served) => served,
                    Err(why) => {
                        skip::<()>(&why);
                        return;
                    }
                };
                let output = copy(&path, &format!("{backend} {line}"), &AtomicI32::new(0));
                let when = format!("cp {backend} {line}, {call:?}, {size} bytes: {}", text(&output.stderr));
                wrong.check(
                    output.status.code() == Some(1),
                    &format!("{when}: it ended with {}", output.status),
                );
                let is_there =
                    fs::read(path.join("served/out/f")).is_ok_and(|bytes| bytes == FOREIGN.as_bytes());
                wrong.check(is_there, &format!("{when}: the file is gone"));
            }
        }
        assert_eq!(number, 48);
        wrong.assert_none();
    });
}

/// Another program replaced a listed file.
#[test]
fn a_file_that_was_listed_as_something_else_is_not_made_empty() {
    const TEST: &str = "foreign::a_file_that_was_listed_as_something_else_is_not_made_empty";
    const KINDS: [fuser::FileType; 3] =
        [fuser::FileType::NamedPipe, fuser::FileType::Symlink, fuser::FileType::CharDevice];
    within(TEST, "tmpfs", |memory| {
        let mut wrong = Wrong::default();
        for (number, kind) in KINDS.into_iter().enumerate() {
            for (index, options) in ["-r", "-a", "-r --atomic", "-rf"].into_iter().enumerate() {
                let place = Place::new(memory.path().join(format!("{number}.{index}")), Some(OLD));
                let fill = |files: &mut Files| {
                    files.folder("s");
                    files.file("s/f", &content(5_000));
                    files.file("s/new", &content(5_000));
                    files.listed_as = Some(kind);
                };
                let served = Served::at(&place.path.join("served"), fill, Box::new(|_, _, _| Ok(())));
                let _served = match served {
                    Ok(served) => served,
                    Err(why) => {
                        skip::<()>(&why);
                        return;
                    }
                };
                let words = format!("{options} {} -T served/s out", BACKENDS[index % 2]);
                let output = copy(&place.path, &words, &AtomicI32::new(0));
                let when = format!("cp {words}, {kind:?}: {}", text(&output.stderr));
                wrong.check(
                    output.status.code() == Some(1),
                    &format!("{when}: it ended with {}", output.status),
                );
                let is_old = fs::read(place.target()).is_ok_and(|bytes| bytes == OLD.as_bytes());
                wrong.check(is_old, &format!("{when}: the target is something else"));
                let is_made = place.path.join("out/new").symlink_metadata().is_ok();
                wrong.check(!is_made, &format!("{when}: a target is made"));
            }
        }
        wrong.assert_none();
    });
}
