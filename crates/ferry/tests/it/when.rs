//! `ferry lab when`: everything outside its directory is removed, however it ends.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::measured::{left_in, quick, unwrapped};
use crate::scene::{FERRY, is_root, skip, text};

/// Mounts, loop devices and cgroups of a lab in `folder`.
fn traces(folder: &Path, process: u32) -> Vec<String> {
    let folder = folder.canonicalize().unwrap();
    let folder = folder.to_str().unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut found: Vec<String> =
        mounts.lines().filter(|line| line.contains(folder)).map(str::to_owned).collect();
    for device in std::fs::read_dir("/sys/block").unwrap() {
        let file = device.unwrap().path().join("loop/backing_file");
        found.extend(std::fs::read_to_string(file).ok().filter(|image| image.contains(folder)));
    }
    let groups = mounts.lines().filter(|line| line.contains(" - cgroup"));
    for point in groups.filter_map(|line| line.split(' ').nth(4)) {
        let group = format!("ferry-lab-{process}");
        found.extend(group_below(Path::new(point), &group, 3));
    }
    found
}

fn group_below(folder: &Path, name: &str, levels: usize) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found = Vec::new();
    for entry in folders {
        if entry.file_name() == name {
            found.push(entry.path().display().to_string());
        } else if levels > 0 {
            found.extend(group_below(&entry.path(), name, levels - 1));
        }
    }
    found
}

/// Waits until such traces exist, or none do.
fn wait_for(child: &mut Child, folder: &Path, wanted: bool) -> bool {
    let end = Instant::now() + Duration::from_secs(60);
    while traces(folder, child.id()).is_empty() == wanted {
        let has_ended = wanted && child.try_wait().unwrap().is_some();
        if has_ended || Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn begun(folder: &Path, case: &str) -> Child {
    let mut command = Command::new(FERRY);
    command.args(["lab", "when", "--quick", "--runs=50", "--size=8M", "--seed=7", "--cases", case]);
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn a_quick_run_measures_every_case_that_it_can() {
    let measured = quick("when", &["--size=16M", "--files=20"]);
    let said = text(&measured.output.stdout);
    for case in
        ["buffered", "two-devices", "small-memory", "durable", "latency", "beside-read", "beside-sync"]
    {
        assert!(said.contains(&format!("\n{case}\n")), "{said}");
    }
    let cells = measured.record["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 31, "{said}");
    for cell in cells {
        let is_measured = cell["runs"].as_array().unwrap().len() == 2;
        assert!(is_measured || cell["missing"].is_string(), "{cell}");
    }
    for cell in cells.iter().filter(|cell| cell["parameters"]["case"] == "latency") {
        for run in cell["runs"].as_array().unwrap() {
            assert!(run["figures"]["reads"].as_f64().unwrap() >= 200.0, "{cell}");
        }
    }
    let said = unwrapped(said);
    assert!(said.contains("the latency case takes the 99th percentile of only 200 reads a run; "), "{said}");
    let is_control = |cell: &&serde_json::Value| cell["name"] == "buffered/inline";
    assert!(cells.iter().find(is_control).unwrap()["missing"].is_null());
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    if !is_root() {
        skip::<()>("mounts and cgroups need root");
        return;
    }
    for case in ["two-devices", "small-memory"] {
        let place = tempfile::tempdir().unwrap();
        let mut child = begun(place.path(), case);
        if !wait_for(&mut child, place.path(), true) {
            child.wait().unwrap();
            skip::<()>(&format!("{case} can't be had here"));
            continue;
        }
        signal(&child, Signal::INT);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{case}");
        assert_eq!(traces(place.path(), child.id()), Vec::<String>::new(), "{case}");
        let left = left_in(place.path());
        assert!(left.iter().all(|name| name == "ferry-lab-when-7.json"), "{case}: {left:?}");
    }
}

#[test]
fn even_when_it_is_killed_mounts_and_cgroups_go() {
    if !is_root() {
        skip::<()>("mounts and cgroups need root");
        return;
    }
    for case in ["two-devices", "small-memory"] {
        let place = tempfile::tempdir().unwrap();
        let mut child = begun(place.path(), case);
        if !wait_for(&mut child, place.path(), true) {
            child.wait().unwrap();
            skip::<()>(&format!("{case} can't be had here"));
            continue;
        }
        signal(&child, Signal::KILL);
        child.wait().unwrap();
        assert!(wait_for(&mut child, place.path(), false), "{:?}", traces(place.path(), child.id()));
    }
}
