//! `ferry lab limits`: limit programs copy everywhere, and `ferry lab copy` shows the limit beside other copiers.

use std::process::Command;

use ferry_lab::limits::{Calls, Limit};

use crate::measured::{cells, lab, left_in, quick, quick_in};
use crate::random::filesystem::{Filesystem, within};
use crate::scene::{FERRY, ferry, text};

#[test]
fn a_quick_run_finds_a_limit_of_each_tree() {
    let measured = quick("limits", &[]);
    let printed = text(&measured.output.stdout);
    for part in
        ["Limits: speeds of cp and ferry", "huge:4, cold", "small (2 levels fewer), warm", "of the limit"]
    {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let cells = cells(&measured.record);
    for tree in ["small", "huge:4"] {
        let of_tree = |name: &&(&str, Option<&str>)| name.0.starts_with(&format!("{tree}/warm/limit-"));
        assert!(cells.iter().filter(of_tree).count() > 10, "{cells:?}");
    }
    let is_taken = |(name, missing): &(&str, Option<&str>)| !name.contains("/warm/") || missing.is_none();
    assert!(cells.iter().all(is_taken), "{cells:?}");
}

#[test]
fn a_copy_shows_the_best_of_a_pilot() {
    let words = ["--trees=three,huge:4", "--states=warm", "--programs=none", "--dd-size=0", "--limits=auto"];
    let measured = quick("copy", &words);
    for tree in ["three", "huge:4"] {
        let picked: Vec<Limit> = cells(&measured.record)
            .iter()
            .filter_map(|(name, _)| Limit::named(name.strip_prefix(&format!("{tree}/warm/"))?))
            .collect();
        assert_eq!(picked.len(), 2, "{:?}", measured.record["settled"]);
    }
    let printed = text(&measured.output.stdout);
    let mut rows = printed.lines().skip_while(|line| *line != "three, warm");
    let row = rows.find(|line| line.starts_with("ferry ")).unwrap();
    let share = row.split_whitespace().last().unwrap();
    assert!(printed.contains(" of the limit\n") && share.parse::<f64>().is_ok(), "{printed}");
}

/// Copies with every program on a filesystem, and measures there.
fn limits_on(filesystem: &Filesystem, shares_blocks: bool) {
    let root = filesystem.path();
    std::fs::create_dir_all(root.join("source/folder")).unwrap();
    for (name, size) in [("folder/large", 3 << 20), ("folder/odd", 70_001), ("small", 5), ("empty", 0)] {
        let mut content = vec![0; size];
        ferry_tree::fill::fill(9, 0, &mut content);
        std::fs::write(root.join("source").join(name), content).unwrap();
    }
    for (name, calls) in Calls::ALL {
        let target = format!("by-{name}");
        let output = ferry(root, &["lab", "strategy", &format!("{name}-2"), "source", &target]);
        let said = text(&output.stderr);
        if calls == Calls::Direct && said.contains("Invalid argument") {
            eprintln!("SKIP {name}: {said}");
            continue;
        }
        assert_eq!((output.status.code(), said), (Some(0), ""), "{name}");
        let same = Command::new("diff").args(["-r", "source", &target]).current_dir(root).output().unwrap();
        assert!(same.status.success(), "{name}: {same:?}");
        ferry_tree::remove::remove(&root.join(target)).unwrap();
    }
    ferry_tree::remove::remove(&root.join("source")).unwrap();
    let limits = "--limits=limit-copy-range-2,limit-cached-2";
    let words = ["--trees=three", "--states=warm", "--copy-as=plain", limits];
    let measured = quick_in(root, "limits", &words, "record");
    let why = shares_blocks.then_some("copy_file_range(2) shares blocks on this filesystem");
    let expected = [("limit-copy-range-2", why), ("limit-cached-2x64K", None)];
    let found = cells(&measured.record);
    for (name, missing) in expected {
        assert!(found.contains(&(format!("three/warm/{name}").as_str(), missing)), "{found:?}");
    }
    // Where sharing is allowed, and where attributes are kept and compared, every program has a cell.
    for (extent, limit) in [("shared", "limit-copy-range-2"), ("archive", "limit-cached-2x64K")] {
        let extent_option = format!("--copy-as={extent}");
        let words = ["--trees=three", "--states=warm", &extent_option, "--limits", limit];
        let measured = quick_in(root, "limits", &words, extent);
        let found = cells(&measured.record);
        let expected = ["cp", "ferry", limit].map(|tool| format!("three/warm/{tool}"));
        assert_eq!(found, expected.each_ref().map(|name| (name.as_str(), None)), "{extent}");
    }
}

#[test]
fn limits_are_measured_on_ext4() {
    within("lab_limits::limits_are_measured_on_ext4", "ext4", |ext4| limits_on(ext4, false));
}

#[test]
fn limits_are_measured_on_xfs() {
    within("lab_limits::limits_are_measured_on_xfs", "xfs", |xfs| limits_on(xfs, true));
}

#[test]
fn limits_are_measured_on_btrfs() {
    within("lab_limits::limits_are_measured_on_btrfs", "btrfs", |btrfs| limits_on(btrfs, true));
}

#[test]
fn limits_are_measured_on_tmpfs() {
    within("lab_limits::limits_are_measured_on_tmpfs", "tmpfs", |tmpfs| limits_on(tmpfs, false));
}

#[test]
fn what_it_needs_is_checked_first() {
    let place = tempfile::tempdir().unwrap();
    for (experiment, options, code, told) in [
        (
            "limits",
            ["--limits=limit-teleport-2"],
            2,
            "invalid value 'limit-teleport-2' for '--limits'; it must be",
        ),
        ("copy", ["--limits=limit-pipe-3"], 2, "invalid value 'limit-pipe-3' for '--limits'; it must be"),
        ("limits", ["--trees=tiny"], 2, "'tiny' is none of small"),
        ("limits", ["--trees=huge:9000000"], 1, " needs "),
    ] {
        let output = lab(place.path(), &[&[experiment], &options[..]].concat());
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(told), "{}", text(&output.stderr));
        assert!(left_in(place.path()).is_empty());
    }
}

#[test]
fn a_limit_program_raises_the_limit_of_open_files() {
    let place = tempfile::tempdir().unwrap();
    let mut folder = place.path().join("source");
    for level in 0..40 {
        // A folder stays open while any of its folders is unlisted. Each name leads deeper on some levels, because one of
        // them, which depends on the filesystem, is entered last.
        for name in 0..6 {
            std::fs::create_dir_all(folder.join(name.to_string())).unwrap();
        }
        folder.push((level % 6).to_string());
    }
    let line = format!("ulimit -Sn 50; exec {FERRY} lab strategy limit-read-write-1 source target");
    let output = Command::new("sh").args(["-c", &line]).current_dir(place.path()).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let same =
        Command::new("diff").args(["-r", "source", "target"]).current_dir(place.path()).output().unwrap();
    assert!(same.status.success(), "{same:?}");
}

#[test]
fn a_limit_program_says_which_file_failed() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("source")).unwrap();
    std::fs::write(place.path().join("source/a file"), "").unwrap();
    let run = |target: &str| {
        let output = ferry(place.path(), &["lab", "strategy", "limit-read-write-2", "source", target]);
        (output.status.code(), text(&output.stderr).to_owned())
    };
    assert_eq!(run("target"), (Some(0), String::new()));
    assert_eq!(run("target"), (Some(1), "ferry lab: cannot create 'target': File exists\n".to_owned()));
    drop(std::os::unix::net::UnixListener::bind(place.path().join("source/socket")).unwrap());
    let said = "ferry lab: cannot copy 'socket': Operation not supported\n".to_owned();
    assert_eq!(run("other"), (Some(1), said));
}
