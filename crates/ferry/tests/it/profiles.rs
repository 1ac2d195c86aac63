//! Copies with valid, stale and broken profiles.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ferry_tune::{About, Block, Calls, Can, Depth, Direct, Figure, Place, Profile, VERSION, store};

use crate::scene::{FERRY, is_root, skip, text};

/// Returns a plausible profile of a filesystem.
fn sample(place: &Place) -> Profile {
    let figure = |median: f64| Figure::of(&[median * 0.9, median, median * 1.1]).unwrap();
    let depths = [(1, 10_000.0), (48, 60_000.0)];
    let direct = Direct {
        sequential_read: figure(1500.0),
        sequential_write: figure(1200.0),
        random_read: figure(60_000.0),
        random_write: figure(50_000.0),
        depths: depths.map(|(depth, iops)| Depth { depth, iops: figure(iops) }).to_vec(),
        enough_depth: 48,
        blocks: vec![Block { bytes: 1 << 20, mb_per_s: figure(1500.0) }],
        best_block: 1 << 20,
    };
    let calls = Calls { inline_create: figure(12.0), ring_hand_over: None, pool_hand_over: figure(15.0) };
    let can = Can {
        reflink: false,
        dontcache: false,
        direct_memory_alignment: None,
        direct_offset_alignment: None,
    };
    Profile {
        version: VERSION,
        about: About::here(true),
        place: place.clone(),
        direct: Some(direct),
        calls,
        can,
        handed_over: Default::default(),
    }
}

/// Keeps a profile of this folder's filesystem in `profiles`.
pub(crate) fn keep_sample(folder: &Path, profiles: &Path) {
    let place = Place::of(folder).unwrap();
    fs::create_dir(profiles).unwrap();
    fs::write(profiles.join(store::file_name(&place.identity)), sample(&place).to_toml().unwrap()).unwrap();
}

/// A directory with a source, and one for profiles.
struct Scene {
    folder: tempfile::TempDir,
    place: Place,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("source/inner")).unwrap();
        fs::write(folder.path().join("source/inner/a"), "some bytes").unwrap();
        fs::create_dir(folder.path().join("profiles")).unwrap();
        let place = Place::of(folder.path()).unwrap();
        Self { folder, place }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn stored(&self) -> PathBuf {
        self.at("profiles").join(store::file_name(&self.place.identity))
    }

    fn profile(&self) -> Profile {
        sample(&self.place)
    }

    fn keep(&self, profile: &Profile) {
        fs::write(self.stored(), profile.to_toml().unwrap()).unwrap();
    }

    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        // A run that hangs is killed and fails the test.
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", "60"]).arg(program).args(arguments);
        command.current_dir(self.folder.path()).env("FERRY_PROFILES", self.at("profiles"));
        command
    }

    /// Copies to a new target; must succeed with any profile.
    fn copy(&self, arguments: &[&str]) -> Output {
        let arguments = [&["cp", "-r"], arguments, &["source", "target"]].concat();
        self.copied(&mut self.command(FERRY.as_ref(), &arguments))
    }

    fn copied(&self, command: &mut Command) -> Output {
        fs::remove_dir_all(self.at("target")).ok();
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(fs::read_to_string(self.at("target/inner/a")).unwrap(), "some bytes");
        output
    }

    /// Lines of `--explain` about the profile.
    fn explained(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.copy(&[&["--explain"], arguments].concat());
        assert_eq!(text(&output.stderr), "");
        explained(&output)
    }
}

/// Returns what `--explain` has printed about the profile, in one line.
fn explained(output: &Output) -> Vec<String> {
    let text = text(&output.stdout).replace("\n  ", " ");
    text.lines().filter(|line| line.starts_with("profile ")).map(str::to_owned).collect()
}

#[test]
fn a_profile_in_force_is_used_and_explained() {
    let scene = Scene::new();
    assert_eq!(scene.explained(&[]), [""; 0]);
    scene.keep(&scene.profile());
    let lines = scene.explained(&[]);
    let processors = std::thread::available_parallelism().unwrap().get();
    let words =
        format!("48 reads in flight are enough, so the pool has {} threads", (16 * processors).clamp(32, 48));
    assert!(lines.len() == 1 && lines[0].ends_with(&words), "{lines:?}");
    assert_eq!(scene.explained(&["--profile=none"]), [""; 0]);
    assert_eq!(text(&scene.copy(&[]).stderr), "", "nothing is told unasked");
}

type Change = fn(&mut Profile);

#[test]
fn a_stale_profile_is_told_by_explain_alone() {
    let scene = Scene::new();
    let changes: [(Change, &str); 3] = [
        (
            |profile| profile.about.kernel = "2.6.32".into(),
            "it was measured with kernel 2.6.32, but this is ",
        ),
        (
            |profile| profile.place.device = "a drum, 8 bytes".into(),
            "it was measured on a drum, 8 bytes, but this is ",
        ),
        (
            |profile| profile.about.tool = "ferry 0.0.1".into(),
            "it was measured by ferry 0.0, but this is ferry ",
        ),
    ];
    for (change, words) in changes {
        let mut profile = scene.profile();
        change(&mut profile);
        scene.keep(&profile);
        let lines = scene.explained(&[]);
        let words = format!(" is not used: {words}");
        assert!(lines.len() == 1 && lines[0].contains(&words), "{lines:?}");
        assert_eq!(text(&scene.copy(&[]).stderr), "");
    }
}

/// The copy's only line on standard error.
fn warned(scene: &Scene) -> String {
    let output = scene.copy(&[]);
    let told = text(&output.stderr);
    assert!(told.starts_with("ferry cp: warning: profile ") && told.lines().count() == 1, "{told:?}");
    assert_eq!(scene.explained_of_bad(), 1);
    told.to_owned()
}

impl Scene {
    /// Number of lines of `--explain`, which must not repeat the warning.
    fn explained_of_bad(&self) -> usize {
        let output = self.copy(&["--explain"]);
        let (out, told) = (text(&output.stdout).replace("\n  ", " "), text(&output.stderr));
        out.lines().chain(told.lines()).filter(|line| line.contains(" is not used: ")).count()
    }
}

#[test]
fn whatever_stands_in_a_profiles_place_is_one_line_and_the_copy_goes_on() {
    let scene = Scene::new();
    let good = scene.profile().to_toml().unwrap();
    for end in (0..good.len()).step_by(61) {
        fs::write(scene.stored(), &good[..end]).unwrap();
        warned(&scene);
    }
    let mut implausible = scene.profile();
    implausible.direct.as_mut().unwrap().enough_depth = 7;
    let mut foreign = scene.profile();
    foreign.place.identity = "another".into();
    let texts: [(Vec<u8>, &str); 5] = [
        (b"\xff\xfe\0\n".to_vec(), "it is not UTF-8"),
        (b"version = 99\n".to_vec(), "it has format version 99; this program reads version 1"),
        (
            implausible.to_toml().unwrap().into(),
            "it is not plausible: enough_depth 7 is not one of the depths",
        ),
        (foreign.to_toml().unwrap().into(), "it belongs to another filesystem: another"),
        (vec![b'\n'; 70_000], "it has more than 65536 bytes"),
    ];
    for (bytes, why) in texts {
        fs::write(scene.stored(), bytes).unwrap();
        assert!(warned(&scene).trim_end().ends_with(why), "{why}");
    }
    fs::write(scene.stored(), &good).unwrap();
    fs::set_permissions(scene.stored(), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(warned(&scene).contains("others may write to it"));
    let scripts = [("mkfifo", "it is not a regular file"), ("mkdir", "it is not a regular file")];
    for (maker, why) in scripts {
        let stored = scene.stored();
        fs::remove_file(&stored).unwrap();
        assert!(Command::new(maker).arg(&stored).status().unwrap().success());
        assert!(warned(&scene).contains(why), "{maker}");
        if maker == "mkdir" {
            fs::remove_dir(&stored).unwrap();
        }
    }
    fs::write(scene.at("elsewhere"), &good).unwrap();
    symlink(scene.at("elsewhere"), scene.stored()).unwrap();
    assert!(warned(&scene).contains("symbolic links"));
}

#[test]
fn called_as_cp_nothing_is_said_of_profiles() {
    let scene = Scene::new();
    fs::write(scene.stored(), "x").unwrap();
    let cp = scene.at("cp");
    symlink(FERRY, &cp).unwrap();
    let output = scene.copied(&mut scene.command(&cp, &["-r", "source", "target"]));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_profile_is_not_looked_for_where_it_would_not_matter() {
    let scene = Scene::new();
    fs::write(scene.stored(), "x").unwrap();
    let output = scene.command(FERRY.as_ref(), &["cp", "source/inner/a", "copy"]).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

#[test]
fn a_profile_that_may_not_be_read_is_one_line() {
    if !is_root() {
        return skip("only root can copy as somebody else").unwrap_or(());
    }
    let scene = Scene::new();
    scene.keep(&scene.profile());
    let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    open(scene.folder.path(), 0o777);
    let run = || {
        let mut command = scene.command(FERRY.as_ref(), &["cp", "-r", "source", "target"]);
        let output = scene.copied(command.uid(65_534).gid(65_534));
        text(&output.stderr).to_owned()
    };
    assert_eq!(run(), "", "root's profile is believed by all");
    open(&scene.stored(), 0o600);
    assert!(run().ends_with("is not used: Permission denied\n"));
    open(&scene.stored(), 0o644);
    open(&scene.at("profiles"), 0o700);
    assert_eq!(run(), "", "nobody knows that there is one");
    fs::remove_dir_all(scene.at("profiles")).unwrap();
    fs::write(scene.at("profiles"), "").unwrap();
    assert_eq!(run(), "");
}

#[test]
fn root_believes_no_profile_of_somebody_elses() {
    if !is_root() {
        return skip("only root can give files away").unwrap_or(());
    }
    let scene = Scene::new();
    scene.keep(&scene.profile());
    std::os::unix::fs::chown(scene.stored(), Some(65_534), None).unwrap();
    assert!(warned(&scene).contains("it is owned by another user"));
}

fn tune(scene: &Scene, arguments: &[&str]) -> (Option<i32>, String, String) {
    let arguments = [&["tune"], arguments].concat();
    let output = scene.command(FERRY.as_ref(), &arguments).output().unwrap();
    (output.status.code(), text(&output.stdout).to_owned(), text(&output.stderr).to_owned())
}

#[test]
fn profiles_are_shown_with_their_age_and_whether_they_are_in_force() {
    let scene = Scene::new();
    let none = "There are no profiles. `ferry tune PATH` makes one.\n";
    assert_eq!(tune(&scene, &["--show"]), (Some(0), none.into(), String::new()));
    let (code, _, told) = tune(&scene, &["--show", "."]);
    assert!(code == Some(1) && told.contains("there is no profile of the filesystem with '.', "), "{told}");
    assert!(told.ends_with("; `ferry tune '.'` measures it\n"), "{told}");
    scene.keep(&scene.profile());
    for arguments in [&["--show"][..], &["--show", "source"]] {
        let (code, said, told) = tune(&scene, arguments);
        assert!(code == Some(0) && told.is_empty(), "{told}");
        let first = said.lines().next().unwrap();
        assert!(first.starts_with("Copies from ") && !first.contains("do not use"), "{said}");
        for words in
            ["\n  measured ", " ago (", " --quick,", "\n  a depth of 48 is the most", "\n  kept in '"]
        {
            assert!(said.contains(words), "{words:?} is not in {said}");
        }
    }
    let mut older = scene.profile();
    older.about.kernel = "2.6.32".into();
    scene.keep(&older);
    let (code, said, _) = tune(&scene, &["--show"]);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code == Some(0) && said.starts_with("Copies from "), "{said}");
    let why = " do not use the profile: it was measured with kernel 2.6.32, but this is ";
    assert!(said.contains(why) && !said.contains("in flight"), "{said}");
    fs::write(scene.stored(), "x").unwrap();
    let (code, said, told) = tune(&scene, &["--show"]);
    assert!(code == Some(1) && said.is_empty() && told.contains("is not used: it is truncated"), "{told}");
}

#[test]
fn a_check_compares_copies_and_leaves_nothing() {
    let scene = Scene::new();
    let (code, _, told) = tune(&scene, &["--check", "."]);
    assert!(code == Some(1) && told.contains("there is no profile of the filesystem with '.'"), "{told}");
    scene.keep(&scene.profile());
    let before = names(&scene);
    let (code, said, told) = tune(&scene, &["--check", "--quick", "."]);
    // On a busy machine copies may be slower (3); a failure has another code.
    assert!(matches!(code, Some(0 | 3)), "{told}");
    for words in
        ["7 pairs of copies of 2,920 files", "\nwith the profile ", "\nwithout it ", "\nThe profile "]
    {
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
    assert_eq!(code == Some(3), said.contains("\nThe profile harms: "), "{said}{told}");
    assert_eq!(names(&scene), before);
    let mut older = scene.profile();
    older.about.kernel = "2.6.32".into();
    scene.keep(&older);
    let (code, _, told) = tune(&scene, &["--check", "."]);
    assert!(
        code == Some(1) && told.contains("is not in force: it was measured with kernel 2.6.32"),
        "{told}"
    );
}

#[test]
fn an_interrupted_check_leaves_nothing() {
    let scene = Scene::new();
    scene.keep(&scene.profile());
    let before = names(&scene);
    // Interrupts while the tree is made, and while it is copied.
    for after in ["0.3", "2"] {
        let mut command = Command::new("timeout");
        command.args([
            "--signal=INT",
            "--kill-after=30",
            "--preserve-status",
            after,
            FERRY,
            "tune",
            "--check",
            ".",
        ]);
        let output =
            command.current_dir(scene.folder.path()).env("FERRY_PROFILES", scene.at("profiles")).output();
        assert_eq!(output.unwrap().status.code(), Some(130));
        assert_eq!(names(&scene), before);
    }
}

fn names(scene: &Scene) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        fs::read_dir(scene.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn options_of_tune_that_exclude_each_other_are_refused() {
    let scene = Scene::new();
    for arguments in [&["--show", "--check", "."][..], &["--show", "--quick"], &["--check", "--json", "."]] {
        let (code, _, told) = tune(&scene, arguments);
        assert!(
            code == Some(2) && told.contains("--show can't be combined with other options"),
            "{arguments:?}: {told}"
        );
    }
}
