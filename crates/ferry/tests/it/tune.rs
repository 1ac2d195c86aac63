//! `ferry tune`: figures, profiles, and that nothing is left behind.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::measured::left_in;
use crate::no_uring::FILTER;
use crate::random::filesystem::{Filesystem, within};
use crate::scene::{FERRY, is_root, skip, text};

const NOBODY: u32 = 65_534;

fn tune(profiles: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(FERRY);
    command.arg("tune").args(arguments).env("FERRY_PROFILES", profiles);
    command
}

/// Expects a profile, unless the figures vary too much to be kept.
#[track_caller]
fn measured(output: &Output, profiles: &Path) -> Value {
    let said = text(&output.stderr);
    let kept = std::fs::read_dir(profiles).map_or(0, Iterator::count);
    match output.status.code() {
        Some(0) => assert_eq!(kept, 1, "{said}"),
        Some(3) => {
            assert_eq!(kept, 0, "{said}");
            assert!(
                said.contains("ferry tune: the profile is not kept, because its figures are implausible: "),
                "{said}"
            );
        }
        code => panic!("{code:?}: {said}"),
    }
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_quick_one_finds_all_and_leaves_nothing() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let profiles = tempfile::tempdir().unwrap();
    let kept = profiles.path().join("profiles");
    let begun = Instant::now();
    let output = tune(&kept, &["--quick", "--json"]).arg(place.path()).output().unwrap();
    // Alone it takes 20 s of the promised 30; other tests run at the same time.
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
    let profile = measured(&output, &kept);
    assert_eq!(left_in(place.path()), Vec::<String>::new());
    assert_eq!((&profile["version"], &profile["about"]["quick"]), (&1.into(), &true.into()));
    assert!(profile["calls"]["inline_create"]["median"].as_f64().unwrap() > 0.0);
    let direct = &profile["direct"];
    if direct.is_null() {
        skip::<()>("the disk that the tests are on has no direct I/O");
        return;
    }
    let depths: Vec<u64> =
        direct["depths"].as_array().unwrap().iter().map(|one| one["depth"].as_u64().unwrap()).collect();
    assert_eq!(depths, [1, 2, 4, 8, 16, 32, 64, 128]);
    assert!(depths.contains(&direct["enough_depth"].as_u64().unwrap()));
}

#[test]
fn in_memory_there_is_nothing_past_the_page_cache() {
    within("tune::in_memory_there_is_nothing_past_the_page_cache", "tmpfs", |filesystem| {
        let kept = filesystem.beside().join("profiles");
        let folder = filesystem.path().to_str().unwrap();
        let file = filesystem.beside().join("figures.json");
        let json = tune(&kept, &["--quick", folder, "-o"]).arg(&file).output().unwrap();
        assert_eq!(text(&json.stdout), "");
        let profile = measured(&Output { stdout: std::fs::read(&file).unwrap(), ..json }, &kept);
        assert!(profile["direct"].is_null(), "{profile}");
        assert_eq!(profile["place"]["filesystem"], "tmpfs");
        let words = tune(&kept, &["--quick", folder, folder]).output().unwrap();
        let (said, told) = (text(&words.stdout), text(&words.stderr));
        assert!(said.contains("The filesystem does not support O_DIRECT.\n"), "{said}");
        let last = said.trim_end().rsplit_once("\nCopies from this filesystem will ");
        let code = words.status.code();
        let begins = if code == Some(0) { "now run as without a profile: " } else { "run as before" };
        assert!(last.is_some_and(|(_, last)| last.starts_with(begins)), "{code:?} {said}");
        assert!(told.contains("is on the same filesystem as"), "{told}");
        assert_eq!(left_in(filesystem.path()), Vec::<String>::new());
    });
}

/// Checks the filesystem's features and how the kernel runs operations; timings don't matter.
fn on(filesystem: &Filesystem) {
    let kept = filesystem.beside().join("profiles");
    let output = tune(&kept, &["--quick", "--json"]).arg(filesystem.path()).output().unwrap();
    let profile = measured(&output, &kept);
    let kind = filesystem.kind();
    assert_eq!(profile["place"]["filesystem"], kind);
    assert_eq!(profile["can"]["reflink"], kind != "ext4", "{profile}");
    assert!(profile["direct"]["sequential_write"]["median"].as_f64().unwrap() > 0.0);
    let how = &profile["handed_over"];
    if how["mkdir"].is_string() {
        assert_eq!((&how["mkdir"], &how["open"]), (&"worker".into(), &"ring".into()));
        assert_eq!(how["buffered_write"], if kind == "xfs" { "ring" } else { "worker, one at a time" });
    } else {
        skip::<()>("there is no io_uring, or its requests may not be traced");
    }
    let left: Vec<String> =
        left_in(filesystem.path()).into_iter().filter(|name| name != "lost+found").collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn ext4_is_measured() {
    within("tune::ext4_is_measured", "ext4", on);
}

#[test]
fn xfs_is_measured() {
    within("tune::xfs_is_measured", "xfs", on);
}

#[test]
fn btrfs_is_measured() {
    within("tune::btrfs_is_measured", "btrfs", on);
}

#[test]
fn without_io_uring_the_pool_is_measured() {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let kept = place.path().join("profiles");
    let mut command = Command::new("perl");
    command.args(["-e", FILTER, FERRY, "tune", "--quick", "--json"]).arg(place.path());
    let output = match command.env("FERRY_PROFILES", &kept).output() {
        Ok(output) if output.status.code() == Some(99) => {
            skip::<()>("no seccomp filter can be set");
            return;
        }
        Ok(output) => output,
        Err(_) => {
            skip::<()>("there is no perl to set a seccomp filter");
            return;
        }
    };
    let profile = measured(&output, &kept);
    assert!(profile["calls"]["ring_hand_over"].is_null(), "{profile}");
    assert_eq!(profile["handed_over"], serde_json::json!({}));
    assert!(profile["calls"]["pool_hand_over"]["median"].as_f64().unwrap() > 0.0);
    assert!(text(&output.stderr).contains("note: without io_uring"), "{}", text(&output.stderr));
}

/// Waits until it works in `folder`; returns its directory there.
#[track_caller]
fn wait_for_work(folder: &Path, child: &mut Child, earlier: Option<&str>) -> String {
    let begun = Instant::now();
    loop {
        let mut names = left_in(folder).into_iter().filter(|name| name.starts_with(".ferry-tune-"));
        if let Some(name) = names.find(|name| Some(name.as_str()) != earlier) {
            return name;
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        assert!(begun.elapsed() < Duration::from_secs(60), "it has not begun in a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn interrupted_or_killed_it_leaves_nothing() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let profiles = tempfile::tempdir().unwrap();
    let begin = || {
        let mut command = tune(profiles.path(), &[]);
        command.arg(place.path()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut killed = begin();
    let left = wait_for_work(place.path(), &mut killed, None);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(left_in(place.path()), std::slice::from_ref(&left));
    // The next run removes the remains, killed while writing the file and while loading the device.
    for pause in [100, 4000] {
        let mut child = begin();
        wait_for_work(place.path(), &mut child, Some(&left));
        std::thread::sleep(Duration::from_millis(pause));
        let asked = Instant::now();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        // One second is promised; other tests run at the same time.
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        assert!(text(&output.stderr).ends_with("ferry tune: interrupted\n"), "{}", text(&output.stderr));
        assert_eq!(left_in(place.path()), Vec::<String>::new());
    }
    assert_eq!(left_in(profiles.path()), Vec::<String>::new());
}

/// Message and exit code if it can't measure.
#[track_caller]
fn refused(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    assert_eq!(text(&output.stdout), "");
    (output.status.code(), text(&output.stderr).to_owned())
}

#[test]
fn what_cannot_be_measured_is_told_in_a_line() {
    let place = tempfile::tempdir().unwrap();
    let kept = place.path().join("profiles");
    let hint = "Try 'ferry tune --help' for more information.\n";
    let refusal = refused(&mut tune(&kept, &["--quick"]));
    assert_eq!(refusal, (Some(2), format!("ferry tune: missing operand\n{hint}")));
    let missing = "ferry tune: cannot open '/nowhere': No such file or directory\n".to_owned();
    assert_eq!(refused(&mut tune(&kept, &["/nowhere"])), (Some(1), missing));
    let (code, said) = refused(&mut tune(&kept, &["--quick", "/proc/self"]));
    assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
    if !is_root() {
        skip::<()>("becoming another user needs root");
        return;
    }
    let closed = place.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let mut command = tune(&kept, &["--quick"]);
    let said = format!("ferry tune: cannot work in '{}': Permission denied\n", closed.display());
    assert_eq!(refused(command.arg(&closed).uid(NOBODY).gid(NOBODY)), (Some(1), said));
    let mut command = tune(&kept, &["--quick"]);
    command.arg(&closed).uid(NOBODY).gid(NOBODY);
    command.env_remove("FERRY_PROFILES").env_remove("XDG_CONFIG_HOME").env_remove("HOME");
    let said = "ferry tune: there is no folder for profiles: HOME is not set\n".to_owned();
    assert_eq!(refused(&mut command), (Some(1), said));
    assert!(!kept.exists());
}

#[test]
fn a_folder_is_made_to_be_opened_whatever_the_umask() {
    if !is_root() {
        skip::<()>("becoming another user needs root");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "umask 0777; exec \"$0\" tune --quick .", FERRY]).current_dir(place.path());
    command.env("FERRY_PROFILES", place.path().join("profiles")).uid(NOBODY).gid(NOBODY);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let made = wait_for_work(place.path(), &mut child, None);
    let mode = std::fs::metadata(place.path().join(&made)).unwrap().permissions().mode();
    std::thread::sleep(Duration::from_millis(500));
    let names = left_in(place.path());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((mode & 0o777, names), (0o700, vec![made]));
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert_eq!(left_in(place.path()), Vec::<String>::new());
}

#[test]
fn what_is_buffered_or_in_memory_is_not_taken_for_the_device() {
    within("tune::what_is_buffered_or_in_memory_is_not_taken_for_the_device", "tmpfs", |filesystem| {
        // Both have enough space for the file; the second is an overlay on tmpfs.
        let scenes = [
            "truncate -s 256M image && mkfs.ext4 -q image && mkdir a && mount -o loop,data=journal image a",
            "mkdir l u w a && mount -t overlay -o lowerdir=l,upperdir=u,workdir=w overlay a",
        ];
        for words in scenes {
            let mut command = Command::new("sh");
            if !command.args(["-c", words]).current_dir(filesystem.path()).status().unwrap().success() {
                skip::<()>("no such mount can be made here");
                continue;
            }
            let kept = tempfile::tempdir().unwrap();
            let folder = filesystem.path().join("a");
            let output = tune(kept.path(), &["--quick", "--json"]).arg(&folder).output().unwrap();
            let profile: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert!(profile["direct"].is_null(), "{words}: {profile}");
            let mut command = Command::new("sh");
            let words = "umount a && rm -rf a image";
            assert!(command.args(["-c", words]).current_dir(filesystem.path()).status().unwrap().success());
        }
    });
}

#[test]
fn small_and_read_only_mounts_are_told_in_a_line() {
    within("tune::small_and_read_only_mounts_are_told_in_a_line", "ext4", |filesystem| {
        let kept = filesystem.beside().join("profiles");
        let succeed = |words: &str| {
            let folder = filesystem.path();
            let mut command = Command::new("sh");
            assert!(command.args(["-c", words]).current_dir(folder).status().unwrap().success(), "{words}");
        };
        let path = filesystem.path().to_str().unwrap().to_owned();
        succeed("mkdir small && mount -t tmpfs -o size=32m none small");
        let (code, said) = refused(&mut tune(&kept, &["--quick", &format!("{path}/small")]));
        assert_eq!(code, Some(1));
        let begin = format!("ferry tune: measuring needs 67.1 MB and '{path}/small' has 33.6 MB free\n");
        assert_eq!(said, begin);
        succeed("umount small && mount -t tmpfs -o size=256m,nr_inodes=100 none small");
        let (code, said) = refused(&mut tune(&kept, &["--quick", &format!("{path}/small")]));
        assert_eq!(code, Some(1));
        let files = format!("ferry tune: measuring needs 328 files and '{path}/small' has ");
        assert!(said.starts_with(&files), "{said}");
        succeed("umount small && mount -o remount,ro .");
        let (code, said) = refused(&mut tune(&kept, &["--quick", &path]));
        assert_eq!(
            (code, said),
            (Some(1), format!("ferry tune: cannot work in '{path}': Read-only file system\n"))
        );
        assert!(!kept.exists());
    });
}
