//! Options that rsync has as well, on random pairs of trees: both programs leave equal targets.
//!
//! Each pair takes options at random (`beside/drawn.rs`), on either backend, as root or as a normal user.
//! docs/sync.md says in what the two programs differ. `cargo xtask acceptance-sync pairs` runs thousands of pairs.

mod drawn;
mod judge;
mod scene;
mod shown;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use ferry_tree::random::{Knobs, tree};

use super::user::{NOBODY, give_to_user};
use super::{Pair, knobs, said, seeds};
use crate::random::filesystem::{self, Filesystem};
use crate::scene::{FERRY, is_root, place_program, skip};
use drawn::Drawn;
use judge::Judge;
use scene::Mounted;
use shown::Actions;

/// Name of the figure of cases in which rsync does not end.
const HANGS: &str = "rsync_hangs";

/// One pair of trees, and the options for it.
struct Case<'a> {
    pair: Pair,
    drawn: Drawn,
    backend: &'static str,
    /// A normal user's ferry.
    user: Option<&'a Path>,
}

fn check(filesystem: &Filesystem, count: u64) {
    if Command::new("rsync").arg("--version").output().is_err() {
        skip::<()>("rsync is not installed");
        return;
    }
    let program = filesystem.beside().join("ferry");
    place_program(Path::new(FERRY), &program);
    let mut figures = BTreeMap::new();
    for seed in seeds(count) {
        let user = (is_root() && seed / 2 % 2 == 1).then_some(program.as_path());
        let case = Case::new(filesystem, seed, user);
        let mut names =
            vec!["pairs", case.backend, if user.is_some() || !is_root() { "user" } else { "root" }];
        names.extend(case.drawn.names.iter().copied());
        names.push(case.compare());
        for name in names {
            *figures.entry(name).or_insert(0) += 1;
        }
    }
    let line: Vec<String> = figures.iter().map(|(name, count)| format!("{name}={count}")).collect();
    eprintln!("SEEDS: {} {}={}", line.join(" "), filesystem.kind(), figures["pairs"]);
    let is_single = std::env::var_os("FERRY_SEED").is_some();
    assert!(figures.contains_key("compared") || is_single, "rsync failed in each case");
}

impl<'a> Case<'a> {
    fn new(filesystem: &Filesystem, seed: u64, user: Option<&'a Path>) -> Self {
        let mut knobs = knobs(filesystem.path(), seed);
        if user.is_some() {
            knobs =
                Knobs { unreadable: false, devices: false, owners: false, trusted_xattrs: false, ..knobs };
        }
        let source = tree(seed, &knobs);
        let (pair, target) = Pair::random(filesystem.path(), seed, &knobs);
        scene::relink(&pair.path().join("source"), &source, seed);
        scene::relink(&pair.path().join("target"), &target, seed + 1);
        let drawn = drawn::drawn(seed, &source, &target);
        for (name, bytes) in &drawn.files {
            std::fs::write(pair.path().join(name), bytes).unwrap();
        }
        if user.is_some() {
            give_to_user(&pair);
            scene::restrict(&pair.path().join("source"), &source, seed, true);
            // rsync fails in many of these. With --inplace, it alone overwrites read-only files.
            if (seed / 4).is_multiple_of(4) && !drawn.has("inplace") {
                scene::restrict(&pair.path().join("target"), &target, seed + 1, false);
            }
        }
        std::fs::create_dir(pair.path().join("empty")).unwrap();
        // With the same times where no time is described.
        let same = Command::new("cp").args(["-a", "target", "other"]).current_dir(pair.path()).status();
        assert!(same.unwrap().success());
        let backend = ["uring", "posix"][usize::try_from(seed % 2).unwrap()];
        Self { pair, drawn, backend, user }
    }

    fn path(&self) -> &Path {
        self.pair.path()
    }

    /// Runs both programs. Returns the name of the figure that the case counts for.
    fn compare(&self) -> &'static str {
        let _mounted = self.mounted();
        let Some(part) = self.part() else { return HANGS };
        let judge = Judge::new(self.path(), part, self.drawn.given());
        let announced = self.drawn.plans.then(|| self.announced());
        let rsync = self.rsync(&[], &[&self.drawn.theirs, &self.drawn.their_acts], "other/");
        let succeeded = rsync.status.success();
        let words = ["sync", "--backend", self.backend];
        let ours = self.ferry(&words, &[&self.drawn.ours, &self.drawn.our_acts]);
        // A folder with an entry that takes no part can't give way to a file: both programs report that.
        let is_right = ours.status.success() || !succeeded && ours.status.code() == Some(1);
        assert!(is_right, "{}: {}{}", self.title(), said(&ours), said(&rsync));
        if !succeeded {
            return if is_killed(&rsync) { HANGS } else { "rsync_failed" };
        }
        let mut report = judge.differences(self.path());
        if self.drawn.keeps && !self.drawn.has("inplace") {
            report.extend(judge.lost(self.path()));
        }
        if let Some((ours, theirs)) = announced.flatten() {
            report.extend(judge.announced(&ours, &theirs));
        }
        assert!(report.is_empty(), "{}: {report:#?}", self.title());
        "compared"
    }

    /// Filesystems in the source, and in entries that only the target has.
    fn mounted(&self) -> Vec<Option<Mounted>> {
        if !self.drawn.has("one_file_system") {
            return Vec::new();
        }
        ["source/mounted", "target/held/mounted", "other/held/mounted"]
            .map(|path| Mounted::at(self.path().join(path)))
            .into()
    }

    /// Returns the entries that take part: rsync would copy them into an empty folder. `None` if it hangs.
    fn part(&self) -> Option<BTreeSet<Vec<u8>>> {
        let selects = |word: &&String| !word.starts_with("--delete") && *word != "--update";
        let selection: Vec<String> = self.drawn.theirs.iter().filter(selects).cloned().collect();
        let output = self.rsync(&["--dry-run", "--out-format=%n"], &[&selection], "empty/");
        let names = || output.stdout.split(|&byte| byte == b'\n').map(shown::named).collect();
        (!is_killed(&output)).then(names)
    }

    /// Returns the actions that ferry and rsync announce; `None` if rsync fails.
    fn announced(&self) -> Option<(Actions, Actions)> {
        let delete: &[String] = if self.drawn.deletes { &["--delete".to_owned()] } else { &[] };
        let plan = self.ferry(&["sync", "--plan=plan"], &[&self.drawn.ours, delete]);
        assert!(plan.status.code().is_some_and(|code| code < 2), "{}: {}", self.title(), said(&plan));
        let rsync = self.rsync(&["--dry-run", "--out-format=%i %n"], &[&self.drawn.theirs], "other/");
        let plan = Actions::of_plan(&self.path().join("plan"));
        rsync.status.success().then(|| (plan, Actions::of_rsync(&rsync.stdout)))
    }

    fn ferry(&self, words: &[&str], options: &[&[String]]) -> Output {
        self.run(self.user.unwrap_or(Path::new(FERRY)), words, options, &["source", "target"])
    }

    /// Runs rsync, and kills it if it hangs, as it does with some hard links.
    fn rsync(&self, words: &[&str], options: &[&[String]], target: &str) -> Output {
        let always = ["--signal=KILL", "2", "rsync", "-aHAX", "--modify-window=-1"];
        self.run(Path::new("timeout"), &[&always, words].concat(), options, &["source/", target])
    }

    fn run(&self, program: &Path, words: &[&str], options: &[&[String]], trees: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(words).args(options.concat()).args(trees);
        command.current_dir(self.path()).env("LC_ALL", "C.UTF-8");
        if self.user.is_some() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output().unwrap()
    }

    fn title(&self) -> String {
        let Drawn { ours, our_acts, theirs, their_acts, .. } = &self.drawn;
        let who = if self.user.is_some() { "user" } else { "root" };
        format!(
            "FERRY_SEED={} {who}, {}: ferry {ours:?} {our_acts:?}, rsync {theirs:?} {their_acts:?}",
            self.pair.seed, self.backend
        )
    }
}

/// Returns true for the output of a program that timeout(1) has killed.
fn is_killed(output: &Output) -> bool {
    output.status.code().is_none() || output.status.code() == Some(137)
}

#[test]
fn on_tmpfs() {
    check(&Filesystem::memory(), 35);
}

#[test]
fn on_ext4() {
    within("ext4");
}

#[test]
fn on_xfs() {
    within("xfs");
}

#[test]
fn on_btrfs() {
    within("btrfs");
}

fn within(kind: &'static str) {
    let name = format!("sync::beside::on_{kind}");
    filesystem::within(&name, kind, |filesystem| check(filesystem, 12));
}
