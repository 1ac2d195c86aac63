//! Names that change their type during the copy: nothing outside the trees is read or written, and nothing
//! hangs.
//!
//! A thread exchanges names of a tree with entries that lead out of it, until enough exchanges were detected
//! and refused. Copies may fail, and may contain the links, but not what they lead to. Another user owns the
//! exchanged entries, as an attacker would. Each test fails without confinement; `cargo xtask
//! check-confinement` shows that.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use tempfile::TempDir;

use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, is_root, scaled, skip, text};

/// Number of refusals to reach with each backend, scaled by `FERRY_SEEDS`.
const REFUSED: u64 = 150;
const TIME: Duration = Duration::from_secs(240);
const COPY_SECONDS: &str = "10";
const NAMES: usize = 24;
const SECRET: &str = "what lies outside";
const NOBODY: u32 = 65_534;

/// A race's directories: `source`, `target`, `outside`, and `decoys` to exchange.
struct Arena {
    place: TempDir,
}

impl Arena {
    /// On a disk, because a tmpfs may forbid devices.
    fn new() -> Self {
        let arena = Self { place: tempfile::tempdir().unwrap() };
        fs::set_permissions(arena.place.path(), PermissionsExt::from_mode(0o755)).unwrap();
        for folder in ["source", "outside", "decoys"] {
            fs::create_dir(arena.at(folder)).unwrap();
        }
        fs::write(arena.at("outside/x"), SECRET).unwrap();
        fs::set_permissions(arena.at("outside/x"), PermissionsExt::from_mode(0o604)).unwrap();
        arena
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Everything outside that could be changed.
    fn outside(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let found = fs::metadata(self.at("outside/x")).unwrap();
        let count = fs::read_dir(self.at("outside")).unwrap().count();
        let facts = (found.mode(), found.uid(), found.mtime(), found.mtime_nsec(), found.nlink());
        (fs::read_to_string(self.at("outside/x")).unwrap(), facts, count)
    }

    /// Makes files that contain their own name, in `source` or each in its own directory.
    fn fill(&self, in_folders: bool) {
        for index in 0..NAMES {
            let name = if in_folders { format!("source/{index}/x") } else { format!("source/{index}") };
            fs::create_dir_all(self.at(&name).parent().unwrap()).unwrap();
            fs::write(self.at(&name), "within").unwrap();
        }
    }

    fn decoy(&self, decoy: &Decoy, index: usize) {
        let path = self.at(&format!("decoys/{index}"));
        clear(&path);
        match decoy {
            Decoy::Link(says) => symlink(says, &path).unwrap(),
            Decoy::Fifo => mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap(),
            Decoy::Device(number) => {
                mknodat(CWD, &path, FileType::BlockDevice, Mode::from_raw_mode(0o644), *number).unwrap();
            }
        }
        if is_root() {
            std::os::unix::fs::lchown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// Expects each file of the target to hold its source's content; names may be links.
    fn check(&self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                self.check(&entry.path());
            } else if kind.is_file() {
                let bytes = fs::read(entry.path()).unwrap();
                let is_within = bytes.is_empty() || bytes == b"within";
                assert!(is_within, "{}: {}", entry.path().display(), String::from_utf8_lossy(&bytes));
            }
        }
    }
}

/// Entry that takes a name's place.
enum Decoy {
    Link(&'static str),
    Fifo,
    /// A block device by its number.
    Device(u64),
}

struct Race {
    /// Tree with the exchanged names.
    tree: &'static str,
    decoy: Decoy,
    /// True if the target exists before each copy.
    is_there: bool,
    /// Messages that refuse an exchange.
    said: &'static [&'static str],
}

impl Race {
    fn run(&self, class: &str, arena: &Arena) {
        let before = arena.outside();
        for backend in [&["--backend=posix"][..], &["--backend=uring"], &["--backend=uring", "--route=ring"]]
        {
            let (ended, exchanged) = (AtomicBool::new(false), AtomicU64::new(0));
            let (mut refused, mut copies) = (0, 0);
            let start = Instant::now();
            while refused < scaled(REFUSED) {
                assert!(start.elapsed() < TIME, "{class}, {backend:?}: {refused} refused in {copies} copies");
                self.prepare(arena);
                ended.store(false, Ordering::Relaxed);
                let output = std::thread::scope(|scope| {
                    scope.spawn(|| self.exchange(arena, &ended, &exchanged));
                    let mut command = Command::new("timeout");
                    command.args(["--signal=KILL", COPY_SECONDS, FERRY, "cp", "-a", "-T"]).args(backend);
                    command.args(["source", "target"]).current_dir(arena.place.path());
                    let output = command.stdin(Stdio::null()).output();
                    ended.store(true, Ordering::Relaxed);
                    output.unwrap()
                });
                let said = text(&output.stderr);
                assert!(output.status.code().is_some_and(|code| code < 2), "{class}: {output:?}");
                assert_eq!(arena.outside(), before, "{class}, {backend:?}: outside was changed; {said}");
                arena.check(&arena.at("target"));
                let is_refusal = |line: &&str| self.said.iter().any(|said| line.contains(said));
                refused += said.lines().filter(is_refusal).count() as u64;
                copies += 1;
            }
            let exchanged = exchanged.into_inner();
            println!(
                "{class}, {backend:?}: {exchanged} exchanges, {refused} met and refused in {copies} copies, {:?}",
                start.elapsed()
            );
        }
    }

    fn prepare(&self, arena: &Arena) {
        clear(&arena.at("target"));
        for index in 0..NAMES {
            let (name, decoy) = (arena.at(&format!("source/{index}")), arena.at(&format!("decoys/{index}")));
            let is_own = |found: fs::Metadata| found.is_file() || found.is_dir();
            if !name.symlink_metadata().is_ok_and(is_own) {
                renameat_with(CWD, &name, CWD, &decoy, RenameFlags::EXCHANGE).unwrap();
            }
            arena.decoy(&self.decoy, index);
        }
        if self.is_there {
            let mut copy = Command::new("cp");
            copy.args(["-r", "source", "target"]).current_dir(arena.place.path());
            assert!(copy.status().unwrap().success());
        }
    }

    fn exchange(&self, arena: &Arena, ended: &AtomicBool, exchanged: &AtomicU64) {
        let pairs: Vec<_> = (0..NAMES)
            .map(|index| (arena.at(&format!("{}/{index}", self.tree)), arena.at(&format!("decoys/{index}"))))
            .collect();
        while !ended.load(Ordering::Relaxed) {
            for (name, decoy) in &pairs {
                let done = renameat_with(CWD, name, CWD, decoy, RenameFlags::EXCHANGE).is_ok();
                exchanged.fetch_add(u64::from(done), Ordering::Relaxed);
            }
        }
    }
}

pub(crate) fn clear(path: &Path) {
    while let Ok(found) = path.symlink_metadata() {
        // An entry exchanged meanwhile is removed in the next pass.
        if found.is_dir() {
            fs::remove_dir_all(path).ok()
        } else {
            fs::remove_file(path).ok()
        };
    }
}

const REPLACED: &str = "as it was replaced while being copied";
const LOOP: &str = "Too many levels of symbolic links";

#[test]
fn a_source_that_becomes_a_link_is_not_followed() {
    let arena = Arena::new();
    arena.fill(false);
    let decoy = Decoy::Link("../outside/x");
    let race = Race { tree: "source", decoy, is_there: false, said: &[REPLACED, LOOP] };
    race.run("a source's leaf", &arena);
}

#[test]
fn a_folder_of_the_source_that_becomes_a_link_is_not_entered() {
    let arena = Arena::new();
    arena.fill(true);
    let decoy = Decoy::Link("../outside");
    let said = &["cannot access 'source", LOOP];
    Race { tree: "source", decoy, is_there: false, said }.run("a source's folder", &arena);
}

#[test]
fn a_target_that_becomes_a_link_is_not_written_through() {
    if !is_root() {
        skip::<()>("links of another user need root");
        return;
    }
    let arena = Arena::new();
    arena.fill(false);
    let decoy = Decoy::Link("../outside/x");
    let said = &[LOOP, "Stale file handle"];
    Race { tree: "target", decoy, is_there: true, said }.run("a target's leaf", &arena);
}

#[test]
fn a_folder_of_the_target_that_becomes_a_link_is_not_filled() {
    let arena = Arena::new();
    arena.fill(true);
    let decoy = Decoy::Link("../outside");
    let said = &["cannot create directory 'target", "cannot overwrite non-directory 'target"];
    Race { tree: "target", decoy, is_there: true, said }.run("a target's folder", &arena);
}

#[test]
fn a_source_that_becomes_a_fifo_is_not_waited_for() {
    let arena = Arena::new();
    arena.fill(false);
    Race { tree: "source", decoy: Decoy::Fifo, is_there: false, said: &[REPLACED] }.run("a FIFO", &arena);
}

/// A loop device with content from outside; detached on drop.
struct Device(PathBuf);

impl Device {
    fn of(file: &Path) -> Option<Self> {
        fs::File::options().write(true).open(file).unwrap().set_len(4096).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(file).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(Self(PathBuf::from(text(&output.stdout).trim())))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        assert!(Command::new("losetup").arg("--detach").arg(&self.0).status().unwrap().success());
    }
}

#[test]
fn a_source_that_becomes_a_device_is_not_read() {
    let arena = Arena::new();
    arena.fill(false);
    let Some(device) = Device::of(&arena.at("outside/x")) else {
        skip::<()>("there are no loop devices");
        return;
    };
    let decoy = Decoy::Device(fs::metadata(&device.0).unwrap().rdev());
    arena.decoy(&decoy, 0);
    let Ok(mut node) = fs::File::open(arena.at("decoys/0")) else {
        skip::<()>("no device can be opened here");
        return;
    };
    let mut held = String::new();
    std::io::Read::read_to_string(&mut node, &mut held).unwrap();
    assert!(held.starts_with(SECRET));
    Race { tree: "source", decoy, is_there: false, said: &[REPLACED] }.run("a device", &arena);
}

/// Maximum number of files that another program renames over a target during a copy.
const WRITTEN: usize = 200;
/// Number of copies per backend and set of options.
const COPIES: usize = 40;

/// Another program that renames complete files over a target, as an editor does.
struct Writer {
    target: PathBuf,
    new: PathBuf,
    /// Linked to every third file, and then renamed over the target.
    linked: Option<PathBuf>,
}

impl Writer {
    /// Renames files into place until `ended`; returns each open file with its text.
    fn run(&self, ended: &AtomicBool) -> Vec<(fs::File, String)> {
        let mut written = Vec::new();
        for number in 0.. {
            if ended.load(Ordering::Relaxed) {
                break;
            }
            match &self.linked {
                Some(source) if number % 3 == 0 => {
                    fs::hard_link(source, &self.new).unwrap();
                }
                _ if written.len() < WRITTEN => {
                    let complete = format!("the complete file {number}, ").repeat(40);
                    fs::write(&self.new, &complete).unwrap();
                    written.push((fs::File::open(&self.new).unwrap(), complete));
                }
                _ => continue,
            }
            fs::rename(&self.new, &self.target).unwrap();
            // If both names are the same file, rename(2) does nothing.
            fs::remove_file(&self.new).ok();
            std::thread::sleep(Duration::from_micros(10));
        }
        written
    }
}

/// Copies beside such a writer; no file may be incomplete, and no source changed.
fn copy_beside_writer(with_links: bool, may_say: &[&str]) {
    let place = Filesystem::memory();
    let at = |name: &str| place.path().join(name);
    let bytes: String = (0..4_000).map(|number| format!("the source's line {number}\n")).collect();
    let (mut copies, mut written, mut said) = (0, 0, 0);
    let mut wrong = Vec::new();
    for options in [&["cp"][..], &["cp", "-f"], &["cp", "-p"], &["cp", "--fsync"]] {
        for backend in ["--backend=posix", "--backend=uring"] {
            for _ in 0..COPIES {
                fs::write(at("source"), &bytes).unwrap();
                clear(&at("target"));
                fs::write(at("target"), "what was there").unwrap();
                let linked = with_links.then(|| at("source"));
                let writer = Writer { target: at("target"), new: at("new"), linked };
                let ended = AtomicBool::new(false);
                let (output, files) = std::thread::scope(|scope| {
                    let files = scope.spawn(|| writer.run(&ended));
                    let mut command = Command::new(FERRY);
                    let words = [backend, "source", "target"];
                    let output = command.args(options).args(words).current_dir(place.path()).output();
                    ended.store(true, Ordering::Relaxed);
                    (output.unwrap(), files.join().unwrap())
                });
                let (when, says) = (format!("{options:?} {backend}"), text(&output.stderr));
                let is_said = may_say.iter().any(|may| says.contains(may));
                if !output.status.success() && !is_said {
                    wrong.push(format!("{when}: {says}"));
                }
                if fs::read(at("source")).unwrap() != bytes.as_bytes() {
                    wrong.push(format!("{when}: the source is changed; {says}"));
                }
                for (mut file, complete) in files {
                    let mut held = String::new();
                    std::io::Read::read_to_string(&mut file, &mut held).unwrap();
                    if held != complete && held != bytes {
                        wrong
                            .push(format!("{when}: of {complete:.22} {} bytes are left; {says}", held.len()));
                    }
                    written += 1;
                }
                said += usize::from(is_said);
                copies += 1;
            }
        }
    }
    println!("{copies} copies beside {written} files, {said} refused");
    assert!(wrong.is_empty(), "{} are wrong in {copies} copies:\n{}", wrong.len(), wrong.join("\n"));
    assert!(written > copies, "only {written} files in {copies} copies");
}

#[test]
fn a_target_that_is_replaced_again_and_again_is_copied_each_time() {
    copy_beside_writer(false, &[]);
}

#[test]
fn a_target_that_becomes_another_name_of_its_source_costs_no_bytes() {
    copy_beside_writer(true, &["are the same file"]);
}
