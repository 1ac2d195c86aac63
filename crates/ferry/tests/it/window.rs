//! Permissions of incomplete copies never exceed the final ones, even after a kill at any call.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ferry_tree::acl::ACCESS_XATTR;
use ferry_tree::{Acl, Node, Tree, make};

use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, is_root, skip, text};

const USER: u32 = 1234;
const OTHER: u32 = 1235;
/// User and group that ACLs name and that own nothing.
const NAMED: u32 = 1300;

/// Files that not everyone may read, and set-user-ID and set-group-ID files.
fn source() -> Tree {
    let secret = |mode| Node::file("what only some may read").mode(mode);
    Tree::new()
        .root(Node::directory().mode(0o755))
        .with("f0600", secret(0o600))
        .with("f0400", secret(0o400))
        .with("f0640", secret(0o640).owner(0, USER))
        .with("f4755", secret(0o4755).owner(USER, USER))
        .with("f2755", secret(0o2755).owner(USER, USER))
        .with("f6711", secret(0o6711))
        .with("f0644", secret(0o644).owner(USER, 0))
        .with("named", secret(0o640).owner(0, USER).acl(Acl::from_mode(0o640).user(NAMED, 4)))
        .with("large", Node::seeded(600_000, 5).mode(0o600).owner(USER, 0))
        .with("fifo", Node::fifo().mode(0o600).owner(USER, 0))
        .with("link", Node::symlink("f0600"))
        .with("d", Node::directory().mode(0o700))
        .with("d/f4711", secret(0o4711).owner(USER, USER))
}

/// A directory open to everyone and to a named user.
fn open_folder() -> Tree {
    let acl = Acl { mask: Some(7), ..Acl::from_mode(0o777).user(1000, 7) };
    Tree::new().root(Node::directory().mode(0o777).default_acl(acl))
}

/// An earlier copy with the same names, other owners and more permissive modes.
fn earlier() -> Tree {
    let old = |mode: u32, owner: u32| Node::file(OLD).mode(mode).owner(owner, OTHER);
    // With the source's owner and group, only the ACL permits more.
    let ours = |mode: u32| Node::file(OLD).mode(mode).owner(0, USER);
    Tree::new()
        .root(Node::directory().mode(0o777))
        .with("f0600", old(0o666, 0))
        .with("f0400", old(0o644, OTHER))
        .with("f4755", old(0o4755, 0))
        .with("f2755", old(0o6777, OTHER))
        .with("f6711", old(0o755, OTHER))
        .with("large", old(0o664, USER))
        .with("d/f4711", old(0o4777, OTHER))
        .with("f0640", ours(0o640).acl(Acl::from_mode(0o640).user(NAMED, 4).named_group(NAMED, 4)))
        .with("named", ours(0o660).acl(Acl::from_mode(0o660).user(NAMED, 6).user(NAMED + 1, 4)))
}

const OLD: &str = "what was there";

#[derive(Debug, Clone, PartialEq)]
struct Facts {
    mode: u32,
    uid: u32,
    gid: u32,
    acl: Option<Acl>,
}

impl Facts {
    fn of(path: &Path, found: &fs::Metadata) -> Self {
        let mut bytes = [0; 1024];
        let attribute = OsStr::from_bytes(ACCESS_XATTR);
        let size = rustix::fs::lgetxattr(path, attribute, &mut bytes[..]).unwrap_or_default();
        let acl = Acl::decode(&bytes[..size]);
        Self { mode: found.mode() & 0o7777, uid: found.uid(), gid: found.gid(), acl }
    }

    /// Permissions of a user or group that only an ACL names.
    fn named(&self, of: impl Fn(&Acl) -> &Vec<(u32, u16)>, id: u32) -> u16 {
        let named = self.acl.as_ref().and_then(|acl| {
            let found = of(acl).iter().find(|(named, _)| *named == id);
            found.map(|(_, permissions)| permissions & acl.mask.unwrap_or(7))
        });
        named.unwrap_or(u16::try_from(self.mode & 7).unwrap())
    }

    /// Returns true if an ACL entry permits more than `last`.
    fn names_more_than(&self, last: &Self) -> bool {
        let more = |of: fn(&Acl) -> &Vec<(u32, u16)>| {
            let named = self.acl.iter().flat_map(of);
            named.into_iter().any(|&(id, _)| self.named(of, id) & !last.named(of, id) != 0)
        };
        more(|acl| &acl.users) || more(|acl| &acl.groups)
    }

    /// Returns true if anyone but root may do more than `last` permits. The group bits limit ACL entries.
    fn allows_more_than(&self, last: &Self) -> bool {
        let group = if self.gid == last.gid { last.mode >> 3 & 7 } else { last.mode & 7 };
        let runs_as_another = self.mode & 0o4000 != 0 && (last.mode & 0o4000 == 0 || self.uid != last.uid)
            || self.mode & 0o2000 != 0 && (last.mode & 0o2000 == 0 || self.gid != last.gid);
        runs_as_another
            || self.names_more_than(last)
            || self.uid != last.uid && self.uid != 0
            || self.mode >> 3 & 7 & !group != 0
            || self.mode & 7 & !last.mode != 0
    }
}

/// A source, and the target's initial content.
struct Scene {
    memory: Filesystem,
    before: Option<Tree>,
    options: &'static str,
}

impl Scene {
    fn new(options: &'static str, before: Option<Tree>) -> Self {
        let memory = Filesystem::memory();
        make::make(&source(), &memory.path().join("source")).unwrap();
        Self { memory, before, options }
    }

    fn target(&self) -> PathBuf {
        self.memory.path().join("target")
    }

    fn set(&self) {
        if self.target().exists() {
            ferry_tree::remove::remove(&self.target()).unwrap();
        }
        if let Some(before) = &self.before {
            make::make(before, &self.target()).unwrap();
        }
    }

    /// Copies under `program`.
    fn copy(&self, program: &str) -> Output {
        self.set();
        let line = format!("umask 000; exec {program} {FERRY} cp {} -T source target", self.options);
        Command::new("sh").args(["-c", &line]).current_dir(self.memory.path()).output().unwrap()
    }

    /// Files of the target with content of the source.
    fn files(&self) -> BTreeMap<PathBuf, Facts> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.target()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                // The file may be gone again.
                let Ok(facts) = entry.path().symlink_metadata() else { continue };
                if facts.is_dir() {
                    folders.push(entry.path());
                } else if facts.is_file() && facts.len() > 0 && !is_old(&entry.path()) {
                    found.insert(entry.path(), Facts::of(&entry.path(), &facts));
                }
            }
        }
        found
    }

    fn check(&self, last: &BTreeMap<PathBuf, Facts>, when: &str) {
        for (path, facts) in self.files() {
            let last = &last[&path];
            assert!(
                !facts.allows_more_than(last),
                "{when}: {}: {facts:?}, in the end {last:?}",
                path.display()
            );
        }
    }
}

fn is_old(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes == OLD.as_bytes())
}

fn scenes() -> [Scene; 5] {
    [
        Scene::new("-a", None),
        Scene::new("-a", Some(open_folder())),
        Scene::new("-a", Some(earlier())),
        Scene::new("-p -r --backend=posix --route=pool", Some(earlier())),
        Scene::new("-r", Some(Tree::new().root(Node::directory().mode(0o777)))),
    ]
}

/// strace kills the copy at the entry of one call after another.
#[test]
fn a_copy_that_is_killed_at_any_call_leaves_nothing_too_open() {
    /// Calls that change something, and some others.
    const CALLS: [&str; 14] = [
        "openat",
        "mkdirat",
        "mknodat",
        "symlinkat",
        "unlinkat",
        "write",
        "pwrite64",
        "copy_file_range",
        "ftruncate",
        "fchmod",
        "fchown",
        "fsetxattr",
        "utimensat",
        "close",
    ];
    if !is_root() {
        skip::<()>("giving files away needs root");
        return;
    }
    if Command::new("strace").arg("--version").output().is_err() {
        skip::<()>("strace is not here");
        return;
    }
    for scene in scenes() {
        let undisturbed = scene.copy("");
        assert!(undisturbed.status.success(), "{}", text(&undisturbed.stderr));
        let last = scene.files();
        assert_eq!(last.len(), 10, "{last:?}");
        let mut kills = 0;
        for call in CALLS {
            // strace counts calls per thread.
            for index in 1.. {
                let inject =
                    format!("strace -f -o log -e trace={call} -e inject={call}:signal=KILL:when={index}");
                let output = scene.copy(&inject);
                scene.check(&last, &format!("{}, killed at {call} number {index}", scene.options));
                if output.status.success() {
                    break;
                }
                // strace ends by its child's signal.
                assert_eq!(output.status.signal(), Some(9), "{output:?}");
                kills += 1;
            }
        }
        assert!(kills > 50, "{}: only {kills} kills", scene.options);
        println!("{}: killed at {kills} calls, nothing too open", scene.options);
    }
}

/// A file like the user's own needs no call for its mode or owner. Others are private until they have both.
#[test]
fn a_plain_file_is_created_with_its_final_mode() {
    if !is_root() {
        skip::<()>("giving files away needs root");
        return;
    }
    let file = |mode| Node::file("text").mode(mode);
    let cases = [
        ("plain", file(0o644), "0644"),
        ("unwritable", file(0o400), "0400"),
        ("program", file(0o755), "0755"),
        ("empty", Node::file("").mode(0o604), "0604"),
        ("wide", file(0o666), "0600"),
        ("setuid", file(0o4755), "0600"),
        ("owned", file(0o644).owner(USER, 0), "0600"),
        ("grouped", file(0o644).owner(0, USER), "0600"),
        ("named", file(0o640).acl(Acl::from_mode(0o640).user(NAMED, 4)), "0600"),
    ];
    let tree = cases.iter().fold(Tree::new().root(Node::directory().mode(0o755)), |tree, (name, node, _)| {
        tree.with(*name, node.clone())
    });
    let inherited = Acl { mask: Some(7), ..Acl::from_mode(0o777).user(1000, 7) };
    let folder = || Node::directory().mode(0o755);
    let above = [
        (folder(), true),
        (folder().default_acl(inherited), false),
        // New files get its group.
        (folder().mode(0o2755).owner(0, USER), false),
    ];
    // Stored by the request that reads the source, and created after it.
    let routes = ["auto", "pool"];
    for ((above, gives_mode), route) in above.iter().flat_map(|case| routes.map(|route| (case, route))) {
        let memory = Filesystem::memory();
        make::make(&Tree::new().root(above.clone()), &memory.path().join("above")).unwrap();
        make::make(&tree, &memory.path().join("source")).unwrap();
        let program = "strace -f -o log -e trace=openat,openat2";
        let line = format!("umask 022; exec {program} {FERRY} cp -a --route={route} -T source above/target");
        let output = Command::new("sh").args(["-c", &line]).current_dir(memory.path()).output().unwrap();
        if output.status.code() == Some(127) {
            skip::<()>("strace is not here");
            return;
        }
        assert!(output.status.success(), "{}", text(&output.stderr));
        let log = fs::read_to_string(memory.path().join("log")).unwrap();
        for (name, node, mode) in &cases {
            let quoted = format!("\"{name}\"");
            let creates = |line: &&str| line.contains(&quoted) && line.contains("O_CREAT");
            let created: Vec<_> = log.lines().filter(creates).collect();
            let mode = if *gives_mode { mode } else { "0600" };
            // openat(2) has it last, openat2(2) in a structure. A call during which another thread calls is unfinished.
            let forms = [") ", " <unfinished"].map(|end| format!(", {mode}{end}"));
            let is_made = |line: &str| {
                line.contains(&format!("mode={mode}")) || forms.iter().any(|form| line.contains(form))
            };
            assert!(created.len() == 1 && is_made(created[0]), "{name}: {created:?}, not {mode}");
            let of = |tree| {
                let path = memory.path().join(tree).join(name);
                Facts::of(&path, &path.symlink_metadata().unwrap())
            };
            assert_eq!(of("above/target"), of("source"), "{node:?}");
        }
    }
}

/// A thread polls the target.
#[test]
fn nothing_is_too_open_while_it_is_copied() {
    const TIME: Duration = Duration::from_millis(400);
    if !is_root() {
        skip::<()>("giving files away needs root");
        return;
    }
    for scene in scenes() {
        scene.copy("");
        let last = scene.files();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let (mut looks, mut seen) = (0_u64, 0);
                while !ended.load(Ordering::Relaxed) {
                    looks += 1;
                    for (path, facts) in scene.files() {
                        // An existing target may be replaced between the two looks.
                        if scene.before.as_ref().is_none_or(|before| before.nodes().count() == 1) {
                            let last = &last[&path];
                            assert!(!facts.allows_more_than(last), "{}: {facts:?}, {last:?}", path.display());
                        }
                        seen += u64::from(facts != last[&path]);
                    }
                }
                (looks, seen)
            });
            let start = Instant::now();
            let mut copies = 0;
            while start.elapsed() < TIME && !watcher.is_finished() {
                assert!(scene.copy("").status.success());
                copies += 1;
            }
            ended.store(true, Ordering::Relaxed);
            let (looks, seen) = watcher.join().unwrap();
            println!(
                "{}: {looks} looks at {copies} copies, {seen} at files not yet as in the end",
                scene.options
            );
            assert!(looks > 20, "{looks} looks");
        });
    }
}
