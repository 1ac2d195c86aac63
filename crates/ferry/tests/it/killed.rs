//! A copy killed at any moment and then repeated: the result is that of an undisturbed copy.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ferry_tree::attributes::EntryKind;
use ferry_tree::compare::{Difference, Holes, Mismatch, Options, snapshots};
use ferry_tree::{Node, Snapshot, Tree, capture, make};
use tempfile::TempDir;

use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, OLD, Stage, is_root, scaled, skip, text};

/// Moments at which each command is killed.
fn rounds() -> u32 {
    u32::try_from(scaled(25)).unwrap()
}

/// The mode, which only root may withhold from the owner: others can't copy over their own read-only files again.
fn writable(mode: u32) -> u32 {
    if is_root() { mode } else { mode | 0o200 }
}

/// A tree of all file types with the first `files` small files.
fn source(files: usize) -> Tree {
    let old = |node: Node| node.mtime(OLD, 123_456_789);
    let mut tree = Tree::new().root(old(Node::directory().mode(0o750)));
    for index in 0..files {
        let size = [0, 5, 4096, 70_000, 300_000][index % 5];
        let node = Node::seeded(size, index as u64).mode(writable([0o644, 0o600, 0o444, 0o4755][index % 4]));
        tree = tree.with(format!("d{}/small{index}", index % 4), old(node.xattr("user.color", "blue")));
    }
    for index in 0..3 {
        tree = tree.with(format!("large{index}"), old(Node::seeded(6 << 20, 1000 + index)));
    }
    tree.with("d0", old(Node::directory().mode(writable(0o555))))
        .with("first", old(Node::seeded(200_000, 7).mode(0o640)))
        .with("d1/second", Node::hard_link("first"))
        .with("d2/third", Node::hard_link("first"))
        .with("link", old(Node::symlink("first")))
        .with("pipe", old(Node::fifo().mode(0o620)))
        .with("sparse", old(Node::sparse(4 << 20, 3, [(0, 4096), (2 << 20, 65_536)])))
}

/// An earlier copy: some of the same names with other content.
fn earlier() -> Tree {
    let older = |node: Node| node.mtime(OLD - 1000, 5);
    Tree::new()
        .with("d1/small1", older(Node::file("an older file")))
        .with("d2/small2", older(Node::seeded(500_000, 77)))
        .with("large0", older(Node::seeded(7 << 20, 78)))
        .with("first", older(Node::file("an older first")))
        .with("d1/second", older(Node::file("an older second")))
        .with("link", older(Node::symlink("elsewhere")))
}

/// A source, the target's initial content, and their place.
struct Scene {
    memory: Filesystem,
    before: Option<Tree>,
    expected: Snapshot,
}

impl Scene {
    fn new(source: &Tree, before: Option<Tree>) -> Self {
        let memory = Filesystem::memory();
        make::make(source, &memory.path().join("s")).unwrap();
        let expected = capture::capture(&memory.path().join("s")).unwrap();
        Self { memory, before, expected }
    }

    fn target(&self) -> PathBuf {
        self.memory.path().join("t")
    }

    fn set(&self) {
        if self.target().exists() {
            ferry_tree::remove::remove(&self.target()).unwrap();
        }
        if let Some(before) = &self.before {
            make::make(before, &self.target()).unwrap();
        }
    }

    fn command(&self, program: &Path, options: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.memory.path()).args(options).args(["-T", "s", "t"]);
        command.stdin(Stdio::null());
        command
    }

    /// Named entries of the target, and the number of hidden ones.
    fn found(&self) -> (Snapshot, usize) {
        let Ok(mut found) = capture::capture(&self.target()) else { return (Snapshot::default(), 0) };
        let all = found.entries.len();
        found.entries.retain(|path, _| !is_hidden(path));
        let hidden = all - found.entries.len();
        (found, hidden)
    }

    /// Names with incomplete content after a kill.
    fn not_whole(&self, found: &Snapshot) -> Vec<String> {
        let before = self.before.as_ref().map(|tree| {
            let place = TempDir::new().unwrap();
            make::make(tree, &place.path().join("t")).unwrap();
            capture::capture(&place.path().join("t")).unwrap()
        });
        let differences = |from: &Snapshot| {
            let mut by_path: BTreeMap<Vec<u8>, Vec<Difference>> = BTreeMap::new();
            for difference in snapshots(from, found, &comparison()).into_iter().filter(is_of_content) {
                by_path.entry(difference.path.clone()).or_default().push(difference);
            }
            by_path
        };
        let new = differences(&self.expected);
        let old = before.as_ref().map(differences).unwrap_or_default();
        let is_old = |path: &Vec<u8>| {
            before.as_ref().is_some_and(|before| before.entries.contains_key(path)) && !old.contains_key(path)
        };
        let is_folder = |path: &Vec<u8>| {
            found.entries.get(path).is_some_and(|facts| facts.attributes.kind == EntryKind::Directory)
        };
        let wrong = new.iter().filter(|(path, _)| !is_folder(path) && !is_old(path));
        wrong.flat_map(|(_, differences)| differences.iter().map(ToString::to_string)).collect()
    }

    /// Differences from the source's tree.
    fn differences(&self) -> Vec<Difference> {
        let found = capture::capture(&self.target()).unwrap();
        snapshots(&self.expected, &found, &comparison())
    }
}

fn comparison() -> Options {
    Options { threads: 1, holes: Holes::Ignore, ..Options::all() }
}

fn is_hidden(path: &[u8]) -> bool {
    path.rsplit(|&byte| byte == b'/').next().is_some_and(|name| name.starts_with(b".ferry-"))
}

/// Returns true if the difference is not a missing entry or link.
fn is_of_content(difference: &Difference) -> bool {
    !matches!(difference.mismatch, Mismatch::MissingInTarget(_) | Mismatch::HardLink { .. })
}

/// Distinct moments spread over a command's duration.
fn moments(of: Duration) -> impl Iterator<Item = Duration> {
    let rounds = rounds();
    (0..rounds).map(move |round| of * (2 * round + 1) / (2 * rounds))
}

/// Duration of the undisturbed command, which must succeed.
fn undisturbed(scene: &Scene, options: &[&str]) -> Duration {
    scene.set();
    let begun = Instant::now();
    let output = scene.command(FERRY.as_ref(), options).output().unwrap();
    let took = begun.elapsed();
    assert!(output.status.success(), "{options:?}: {}", text(&output.stderr));
    let differences = scene.differences();
    assert!(differences.is_empty(), "{options:?}: {differences:#?}");
    took
}

/// Kills the command at many moments, judges the remains, and repeats it.
fn kill_at_many_moments(before: Option<Tree>, options: &[&str], judge: impl Fn(&Scene, &Snapshot)) {
    let scene = Scene::new(&source(60), before);
    // On a busy machine the first may take far longer than those to be killed.
    let took = undisturbed(&scene, options).min(undisturbed(&scene, options));
    let mut killed = 0;
    for moment in moments(took) {
        scene.set();
        let mut command = scene.command(FERRY.as_ref(), options);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(moment);
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().code().is_none());
        let (found, _) = scene.found();
        judge(&scene, &found);
        let output = scene.command(FERRY.as_ref(), options).output().unwrap();
        assert!(output.status.success(), "{options:?} after {moment:?}: {}", text(&output.stderr));
        let mut differences = scene.differences();
        if !options.contains(&"--atomic") {
            // The hidden name of a link that was about to replace an entry: only `--atomic` removes those of killed runs.
            differences.retain(|difference| !is_hidden(&difference.path));
        }
        assert!(differences.is_empty(), "{options:?} after {moment:?}: {differences:#?}");
    }
    let rounds = rounds();
    assert!(killed > rounds / 4, "{options:?}: only {killed} of {rounds} were killed before they ended");
}

/// A file with the source's time must equal its source.
fn judge_times(scene: &Scene, found: &Snapshot) {
    for difference in snapshots(&scene.expected, found, &comparison()) {
        let is_partial = matches!(difference.mismatch, Mismatch::Size { .. } | Mismatch::Content { .. });
        let mtime = |snapshot: &Snapshot| snapshot.entries[&difference.path].attributes.mtime;
        let says_whole = is_partial && mtime(found) == mtime(&scene.expected);
        assert!(!says_whole, "it has its source's time, but: {difference}");
    }
}

/// Every name holds its earlier content or a complete copy with all attributes.
fn judge_whole(scene: &Scene, found: &Snapshot) {
    let wrong = scene.not_whole(found);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

const BACKENDS: [&str; 2] = ["--backend=uring", "--backend=posix"];

#[test]
fn a_killed_copy_is_completed_by_the_same_command() {
    for backend in BACKENDS {
        kill_at_many_moments(None, &["cp", "-a", backend], judge_times);
        kill_at_many_moments(Some(earlier()), &["cp", "-a", backend], judge_times);
    }
}

#[test]
fn a_killed_atomic_copy_has_no_file_that_is_not_whole() {
    for backend in BACKENDS {
        for options in [&["cp", "-a", "--atomic", backend][..], &["cp", "-a", "-u", "--atomic", backend]] {
            kill_at_many_moments(None, options, judge_whole);
            kill_at_many_moments(Some(earlier()), options, judge_whole);
        }
    }
}

/// Kills at the entry of each changing system call in turn.
#[test]
fn an_atomic_copy_may_be_killed_at_each_of_its_calls() {
    const CALLS: [&str; 15] = [
        "linkat",
        "renameat2",
        "unlinkat",
        "symlinkat",
        "mknodat",
        "mkdirat",
        "fchmod",
        "?fchmodat2",
        "fchown",
        "utimensat",
        "fsetxattr",
        "pwrite64",
        "copy_file_range",
        "ftruncate",
        "flock",
    ];
    if Command::new("strace").arg("--version").output().is_err() {
        skip::<()>("strace is not here");
        return;
    }
    let scene = Scene::new(&source(5), Some(earlier()));
    let options = ["cp", "-a", "-u", "--atomic", "--backend=posix", "--workers=1"];
    undisturbed(&scene, &options);
    let (mut rounds, mut left) = (0, 0);
    for call in CALLS {
        for when in 1.. {
            scene.set();
            let inject = format!("inject={call}:signal=KILL:when={when}");
            let traced =
                ["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject, FERRY];
            let output =
                scene.command("strace".as_ref(), &[&traced[..], &options].concat()).output().unwrap();
            let said = text(&output.stderr);
            assert!(!said.contains("invalid system call"), "{said}");
            if said.contains("Operation not permitted") {
                skip::<()>("nothing may be traced");
                return;
            }
            let (found, hidden) = scene.found();
            left += hidden;
            judge_whole(&scene, &found);
            let again = scene.command(FERRY.as_ref(), &options).output().unwrap();
            assert!(again.status.success(), "at {call} {when}: {}", text(&again.stderr));
            let differences = scene.differences();
            assert!(differences.is_empty(), "at {call} {when}: {differences:#?}");
            if output.status.success() {
                break;
            }
            rounds += 1;
            assert!(when < 200, "it does not end");
        }
    }
    assert!(rounds > 60, "only {rounds} calls were met");
    assert!(left > 0, "no kill has left a hidden name: nothing shows that they are removed");
}

#[test]
fn an_atomic_copy_needs_no_proc() {
    if !is_root() {
        skip::<()>("covering /proc needs root");
        return;
    }
    let stage = Stage::new();
    // Before Linux 6.10, only root may link an open file by descriptor; others use its path in /proc.
    let old = "strace -f -qq -o log -e trace=linkat -e inject=linkat:error=ENOENT setarch --uname-2.6";
    for (kernel, made) in [("", "made-here"), (old, "made-by-an-old-kernel")] {
        stage.set();
        let script = format!(
            "chmod 777 .; chmod 644 f; mount -t tmpfs none /proc
             exec setpriv --reuid=65534 --regid=65534 --clear-groups {kernel} \"$0\" --atomic f {made}"
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]).arg(stage.ferry()).current_dir(stage.root());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{made}: {}", text(&output.stderr));
        assert_eq!(fs::read_to_string(stage.root().join(made)).unwrap(), "f's text");
    }
}

#[test]
fn only_what_ferry_has_left_is_removed() {
    let memory = Filesystem::memory();
    let (source, target) = (memory.path().join("s"), memory.path().join("t"));
    fs::create_dir_all(source.join("d")).unwrap();
    fs::write(source.join("d/f"), "text").unwrap();
    fs::create_dir_all(target.join("d")).unwrap();
    let inode = target.join("d").metadata().unwrap().ino();
    let left = format!(".ferry-{inode:x}-7f-0");
    let kept = [
        format!(".ferry-{:x}-7f-0", inode + 1),
        format!(".ferry-{inode:x}-7f"),
        format!(".ferry-{inode:x}-7f-0.bak"),
        format!(".ferry-{inode:X}-notes-0"),
        "ferry".to_owned(),
    ];
    let copy = || {
        let mut command = Command::new(FERRY);
        command.current_dir(memory.path()).args(["cp", "-r", "--atomic", "-T", "s", "t"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    for name in kept.iter().chain([&left]) {
        fs::write(target.join("d").join(name), "left").unwrap();
    }
    let folder = format!(".ferry-{inode:x}-7f-1");
    fs::create_dir(target.join("d").join(&folder)).unwrap();
    // An open directory may be in use.
    let opened = fs::File::open(target.join("d")).unwrap();
    rustix::fs::flock(&opened, rustix::fs::FlockOperation::LockShared).unwrap();
    copy();
    assert!(target.join("d").join(&left).exists());
    drop(opened);
    copy();
    assert!(!target.join("d").join(&left).exists());
    for name in kept.iter().chain([&folder]) {
        assert!(target.join("d").join(name).exists(), "{name}");
    }
    assert_eq!(fs::read(target.join("d/f")).unwrap(), b"text");
}

#[test]
fn an_atomic_copy_replaces_files_and_writes_to_streams() {
    let memory = Filesystem::memory();
    let path = |name: &str| memory.path().join(name);
    fs::write(path("new"), "new").unwrap();
    fs::write(path("old"), "old").unwrap();
    fs::hard_link(path("old"), path("other")).unwrap();
    let copy = |target: &str| {
        let mut command = Command::new(FERRY);
        let output =
            command.current_dir(memory.path()).args(["cp", "--atomic", "new", target]).output().unwrap();
        assert!(output.status.success(), "{target}: {}", text(&output.stderr));
    };
    copy("old");
    assert_eq!(fs::read(path("old")).unwrap(), b"new");
    assert_eq!(fs::read(path("other")).unwrap(), b"old");
    std::os::unix::fs::symlink("other", path("link")).unwrap();
    copy("link");
    assert!(path("link").symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read(path("other")).unwrap(), b"old");
    if is_root() {
        let device = rustix::fs::makedev(1, 3);
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        let kind = rustix::fs::FileType::CharacterDevice;
        match rustix::fs::mknodat(rustix::fs::CWD, path("null"), kind, mode, device) {
            Ok(()) => {
                copy("null");
                assert!(!path("null").symlink_metadata().unwrap().is_file());
            }
            Err(errno) => {
                skip::<()>(&format!("no device can be made: {errno}"));
            }
        }
    }
    for (target, kept) in [("old", "new"), ("other", "old")] {
        let mut command = Command::new(FERRY);
        command.current_dir(memory.path()).args(["cp", "--atomic", "-P", "--backup=simple", "new", target]);
        assert!(command.status().unwrap().success());
        assert_eq!(fs::read_to_string(path(&format!("{target}~"))).unwrap(), kept);
        assert_eq!(fs::read(path(target)).unwrap(), b"new");
    }
    let names = fs::read_dir(memory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !is_hidden(name.as_encoded_bytes())));
}
