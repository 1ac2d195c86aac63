//! Random scenes and commands, run by GNU cp and ferry at the same path: same trees, messages and exit codes,
//! except for the differences in `docs/cp-differences.md`.
//!
//! `FERRY_SCENES` sets the number of scenes. `FERRY_SEED` sets the first seed; alone, it runs one scene and
//! prints it.

mod known;
mod scenes;
mod told;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ferry_tree::{Snapshot, capture, make, remove};
use rustix::fs::OFlags;

use self::known::Compared;
use self::scenes::{NOBODY, Scene};
use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, gnu, is_root, place_program, scaled};

const SCENES: u64 = 800;
/// Number of failures after which the test stops.
const TOLD: usize = 25;

pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) lines: BTreeSet<String>,
    pub(crate) messages: BTreeSet<String>,
    pub(crate) before: Snapshot,
    pub(crate) tree: Snapshot,
}

/// A directory in which scenes are set up in turn.
struct Stage<'a> {
    place: PathBuf,
    gnu: &'a Path,
}

impl Stage<'_> {
    fn root(&self) -> PathBuf {
        self.place.join("scene")
    }

    fn run(&self, scene: &Scene, program: &Path) -> Outcome {
        let root = self.root();
        if root.symlink_metadata().is_ok() {
            remove::remove(&root).unwrap();
        }
        make::make(&scene.tree, &root).unwrap();
        let before = capture::capture(&root).unwrap();
        let answers = self.place.join("answers");
        std::fs::write(&answers, &scene.answers).unwrap();
        let mut command = Command::new("sh");
        // An opened FIFO without a peer would block forever.
        command.args(["-c", "umask $0; exec timeout 20 \"$@\"", &scene.umask]).arg(program);
        // GNU cp does not strip slashes if the target is not a directory.
        let arguments = if program == self.gnu { scene.stripped() } else { scene.arguments.clone() };
        command.args(arguments).current_dir(&root).stdin(File::open(&answers).unwrap());
        command.env_clear().env("LC_ALL", "C.UTF-8").env("PATH", std::env::var_os("PATH").unwrap());
        command.envs(scene.environment.iter().copied());
        if scene.is_nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        let fifos: Vec<_> = scene.fifos.iter().map(|fifo| root.join(fifo)).collect();
        let output = while_fed(&fifos, || command.output()).unwrap();
        let text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).replace(&format!("{}: ", program.display()), "cp: ");
            let text = text.replace(&format!("'{} --help'", program.display()), "'cp --help'");
            // Questions share a line; another test checks their order.
            text.replace("? cp: ", "?\ncp: ")
        };
        let lines = |bytes: &[u8]| text(bytes).lines().map(str::to_owned).collect();
        Outcome {
            code: output.status.code(),
            lines: lines(&output.stdout),
            messages: lines(&output.stderr),
            before,
            tree: capture::capture(&root).unwrap(),
        }
    }

    /// Runs both programs and describes unexplained differences.
    fn compare(&self, seed: u64) -> String {
        let scene = scenes::scene(seed, is_root());
        let expected = self.run(&scene, self.gnu);
        let actual = self.run(&scene, &self.place.join("cp"));
        if is_shown() {
            show(&scene, &expected, &actual);
        }
        let differences = Compared::new(&scene, &expected, &actual).unexplained();
        if differences.is_empty() {
            return String::new();
        }
        let mut report = format!("FERRY_SEED={seed}, {scene}\n");
        for difference in differences {
            writeln!(report, "    {difference}").unwrap();
        }
        report
    }
}

/// Runs a program while a thread feeds each FIFO with one word.
fn while_fed<T>(fifos: &[PathBuf], run: impl FnOnce() -> T) -> T {
    let is_over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for fifo in fifos {
            scope.spawn(move || feed(fifo, is_over));
        }
        let result = run();
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

/// Waits for a FIFO's reader until `is_over`.
fn feed(fifo: &Path, is_over: &AtomicBool) {
    let mut writing = File::options();
    // Fails until the FIFO has a reader.
    writing.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    while !is_over.load(Ordering::Relaxed) {
        if writing.open(fifo).is_ok_and(|mut file| file.write_all(b"through").is_ok()) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn is_shown() -> bool {
    number("FERRY_SEED").is_some() && number("FERRY_SCENES").is_none()
}

fn show(scene: &Scene, expected: &Outcome, actual: &Outcome) {
    eprintln!("{scene}");
    for (path, node) in scene.tree.nodes() {
        let (kind, meta) = (&node.kind, &node.meta);
        let others = (meta.uid, meta.default_acl.is_some());
        eprintln!("{:04o} {others:?} {} {kind:?}", meta.mode, String::from_utf8_lossy(path));
    }
    for (who, outcome) in [("GNU cp", expected), ("ferry", actual)] {
        eprintln!("{who} ends with {:?}", outcome.code);
        outcome.lines.iter().chain(&outcome.messages).for_each(|line| eprintln!("    {line}"));
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[test]
fn scenes_end_as_with_gnu_cp() {
    let Some(gnu) = gnu() else { return };
    let first = number("FERRY_SEED").unwrap_or(0);
    let scenes = number("FERRY_SCENES").unwrap_or(if is_shown() { 1 } else { scaled(SCENES) });
    let seeds = first..first + scenes;
    let next = AtomicU64::new(seeds.start);
    let reports = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(4) {
            scope.spawn(|| {
                let filesystem = Filesystem::memory();
                let place = filesystem.path().to_owned();
                std::fs::set_permissions(&place, PermissionsExt::from_mode(0o755)).unwrap();
                // Other users must be able to run it.
                place_program(Path::new(FERRY), &place.join("cp"));
                // Messages begin with the program's name.
                std::fs::create_dir(place.join("gnu")).unwrap();
                let gnu_here = place.join("gnu/cp");
                place_program(&gnu, &gnu_here);
                let stage = Stage { place, gnu: &gnu_here };
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) || reports.lock().unwrap().len() >= TOLD {
                        break;
                    }
                    let report = stage.compare(seed);
                    if !report.is_empty() {
                        reports.lock().unwrap().push(report);
                    }
                }
            });
        }
    });
    let reports = reports.into_inner().unwrap();
    assert!(reports.is_empty(), "{} scenes differ\n{}", reports.len(), reports.concat());
}
