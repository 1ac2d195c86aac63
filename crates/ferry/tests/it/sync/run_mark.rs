//! The mark of a killed run: the content of its files is compared where the page cache of that run is gone, and only there.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ferry_tree::{Node, Tree, make};
use rustix::process::{Pid, Signal, kill_process};

use super::device::Device;
use super::killed::contents;
use super::{said, sync};
use crate::scene::FERRY;

const OLD: &str = "a/old";
const NEW: &str = "b/new";
/// Part of the warning of a run that leaves files in doubt.
const DOUBTS: &str = "files that did not take part in this run may lack bytes";

/// A source and a target on a device. A run has copied [`NEW`] to the target, and was then killed; an earlier run had copied
/// [`OLD`].
struct Scene<'a> {
    place: &'a Path,
    target: PathBuf,
}

impl<'a> Scene<'a> {
    fn new(place: &'a Path, device: &'a Device) -> Self {
        device.make("ext4");
        let scene = Self { place, target: device.path().join("target") };
        let mut source = Tree::new();
        source.insert(OLD.as_bytes(), Node::seeded(20_000, 1).mtime(1_000, 1));
        make::make(&source, &place.join("source")).unwrap();
        scene.sync(&["--fsync"]);
        assert_eq!(scene.hidden(), Vec::<String>::new(), "after a run that has ended");
        // It is far too large for the rate, so the run is still copying it when it is killed.
        source.insert(NEW.as_bytes(), Node::seeded(20_000, 2).mtime(1_000, 2));
        source.insert("c/large".as_bytes(), Node::seeded(50_000_000, 3).mtime(1_000, 3));
        fs::remove_dir_all(place.join("source")).unwrap();
        make::make(&source, &place.join("source")).unwrap();
        let mut command = Command::new(FERRY);
        command.args(["sync", "--bwlimit=1M", "source"]).arg(&scene.target).current_dir(place);
        let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while fs::metadata(scene.target.join(NEW)).map_or(0, |found| found.size()) < 20_000
            || fs::metadata(scene.target.join(NEW)).unwrap().mtime() != 1_000
        {
            assert!(run.try_wait().unwrap().is_none(), "the run has ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        run.kill().unwrap();
        run.wait().unwrap();
        assert_eq!(scene.hidden().iter().filter(|name| name.ends_with(".run")).count(), 1);
        scene
    }

    /// Hidden names in the target's root.
    fn hidden(&self) -> Vec<String> {
        let names = fs::read_dir(&self.target).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).filter(|name| name.starts_with(".ferry-")).collect()
    }

    /// Zeros the bytes of a file and gives it its time back, as if the device had never taken them.
    fn lose(&self, name: &str) {
        let path = self.target.join(name);
        let times = fs::metadata(&path).unwrap();
        fs::write(&path, vec![0; usize::try_from(times.size()).unwrap()]).unwrap();
        let times = fs::FileTimes::new().set_modified(times.modified().unwrap());
        fs::File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
    }

    fn sync(&self, words: &[&str]) -> String {
        let output = sync(self.place, &[words, &["source", self.target.to_str().unwrap()]].concat());
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    }

    fn is_equal(&self) -> bool {
        contents(&self.target) == contents(&self.place.join("source"))
    }
}

#[test]
fn after_a_new_mount_files_of_a_killed_run_are_compared() {
    let test = "sync::run_mark::after_a_new_mount_files_of_a_killed_run_are_compared";
    Device::within(test, |place, device| {
        let scene = Scene::new(place, device);
        let mark = scene.target.join(scene.hidden().iter().find(|name| name.ends_with(".run")).unwrap());
        let changed =
            |path: &Path| fs::metadata(path).map(|found| (found.ctime(), found.ctime_nsec())).unwrap();
        assert!(changed(&scene.target.join(OLD)) < changed(&mark));
        assert!(changed(&scene.target.join(NEW)) >= changed(&mark));
        scene.lose(NEW);
        device.restore();
        // A run of a part of the tree says nothing of the rest.
        let said = scene.sync(&["--exclude", "b"]);
        assert!(said.contains(DOUBTS), "{said}");
        assert_eq!(scene.hidden().len(), 1, "{:?}", scene.hidden());
        assert!(!scene.is_equal());
        let shown = scene.sync(&["--dry-run"]);
        assert!(shown.contains(NEW) && !shown.contains(OLD), "{shown}");
        let said = scene.sync(&[]);
        assert!(!said.contains(DOUBTS), "{said}");
        assert!(scene.is_equal());
        assert_eq!(scene.hidden(), Vec::<String>::new());
    });
}

/// Regression: each part warned of files that other parts compare.
#[test]
fn parts_of_a_plan_compare_them_all() {
    let test = "sync::run_mark::parts_of_a_plan_compare_them_all";
    Device::within(test, |place, device| {
        let scene = Scene::new(place, device);
        scene.lose(NEW);
        device.restore();
        let target = scene.target.to_str().unwrap();
        for words in [
            &["--split", "2", "source", target, "lists"][..],
            &["--open", "lists"],
            &["--part", "1", "lists"],
            &["--part", "2", "lists"],
            &["--close", "lists"],
        ] {
            let output = Command::new(FERRY).arg("plan").args(words).current_dir(place).output().unwrap();
            assert!(
                output.status.success() && !said(&output).contains(DOUBTS),
                "{words:?}: {}",
                said(&output)
            );
        }
        assert!(scene.is_equal());
    });
}

/// Regression: such a file kept its attributes, and was not listed.
#[test]
fn files_that_are_found_equal_get_their_attributes() {
    let test = "sync::run_mark::files_that_are_found_equal_get_their_attributes";
    Device::within(test, |place, device| {
        let scene = Scene::new(place, device);
        let new = scene.target.join(NEW);
        fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).unwrap();
        device.restore();
        scene.sync(&["--size-only", "--manifest", "list"]);
        let mode = |path: &Path| fs::metadata(path).unwrap().mode();
        assert_eq!(mode(&new), mode(&place.join("source").join(NEW)));
        let listed = fs::read_to_string(place.join("list")).unwrap();
        assert!(listed.contains(NEW) && listed.contains(OLD), "{listed}");
        assert!(scene.is_equal());
    });
}

#[test]
fn in_the_same_mount_files_of_a_killed_run_are_trusted() {
    let test = "sync::run_mark::in_the_same_mount_files_of_a_killed_run_are_trusted";
    Device::within(test, |place, device| {
        let scene = Scene::new(place, device);
        scene.lose(NEW);
        scene.sync(&[]);
        assert!(!scene.is_equal(), "its content was compared");
        assert_eq!(scene.hidden(), Vec::<String>::new());
    });
}

/// Regression: the mark stayed. After the next mount each run compared content, although no crash had come between.
#[test]
fn in_the_same_mount_a_run_of_a_part_removes_the_mark() {
    let test = "sync::run_mark::in_the_same_mount_a_run_of_a_part_removes_the_mark";
    Device::within(test, |place, device| {
        let scene = Scene::new(place, device);
        let said = scene.sync(&["--exclude", "b"]);
        assert!(!said.contains(DOUBTS), "{said}");
        assert_eq!(scene.hidden(), Vec::<String>::new());
    });
}

#[test]
fn the_mark_of_a_run_at_work_stays() {
    Device::within("sync::run_mark::the_mark_of_a_run_at_work_stays", |place, device| {
        let scene = Scene::new(place, device);
        let mark = scene.target.join(&scene.hidden()[0]);
        let lock = fs::File::open(&mark).unwrap();
        lock.try_lock().unwrap();
        scene.sync(&[]);
        assert!(mark.exists());
        drop(lock);
        scene.sync(&[]);
        assert!(!mark.exists());
    });
}

#[test]
fn the_root_keeps_its_time_beside_a_mark() {
    Device::within("sync::run_mark::the_root_keeps_its_time_beside_a_mark", |place, device| {
        let scene = Scene::new(place, device);
        scene.sync(&[]);
        let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        assert_eq!(modified(&scene.target), modified(&place.join("source")));
        // Only an entry beneath the root changes.
        fs::write(place.join("source").join(NEW), "changed").unwrap();
        scene.sync(&[]);
        assert!(scene.is_equal());
        assert_eq!(modified(&scene.target), modified(&place.join("source")));
    });
}

#[test]
fn an_interrupted_run_keeps_its_mark_until_the_next_one() {
    for words in [&[][..], &["--fsync"]] {
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let scene = Scene { place: place.path(), target: place.path().join("target") };
        let mut source = Tree::new();
        source.insert(b"large", Node::seeded(50_000_000, 3));
        make::make(&source, &place.path().join("source")).unwrap();
        fs::create_dir(&scene.target).unwrap();
        let mut command = Command::new(FERRY);
        command.args(["sync", "--bwlimit=1M"]).args(words).arg("source").arg(&scene.target);
        let mut run = command.current_dir(scene.place).stderr(Stdio::null()).spawn().unwrap();
        let has_mark = |scene: &Scene<'_>| scene.hidden().iter().any(|name| name.ends_with(".run"));
        while !has_mark(&scene) {
            assert!(run.try_wait().unwrap().is_none(), "the run has ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        kill_process(Pid::from_child(&run), Signal::INT).unwrap();
        run.wait().unwrap();
        assert!(has_mark(&scene), "{:?}", scene.hidden());
        scene.sync(words);
        assert!(scene.is_equal());
    }
}

/// Regression: such a folder could not be removed, because it was not empty.
#[test]
fn a_folder_with_a_mark_is_deleted() {
    for way in ["--delete", "--delete=now"] {
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let scene = Scene { place: place.path(), target: place.path().join("target") };
        fs::create_dir(place.path().join("source")).unwrap();
        fs::write(place.path().join("source/file"), "stays").unwrap();
        let gone = scene.target.join("gone");
        fs::create_dir_all(&gone).unwrap();
        let inode = fs::metadata(&gone).unwrap().ino();
        fs::write(gone.join(format!(".ferry-{inode:x}-1-1-1-1.run")), "").unwrap();
        scene.sync(&[way]);
        assert!(!gone.exists());
    }
}

#[test]
fn many_marks_are_seen_to_in_several_runs() {
    const MOST: usize = 256;
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let scene = Scene { place: place.path(), target: place.path().join("target") };
    fs::create_dir(place.path().join("source")).unwrap();
    fs::create_dir(&scene.target).unwrap();
    let inode = fs::metadata(&scene.target).unwrap().ino();
    for number in 0..=MOST {
        fs::write(scene.target.join(format!(".ferry-{inode:x}-1-1-1-{number:x}.run")), "").unwrap();
    }
    for left in [1, 0] {
        scene.sync(&[]);
        assert_eq!(scene.hidden().len(), left);
    }
}
