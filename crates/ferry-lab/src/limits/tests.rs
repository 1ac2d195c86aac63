use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use ferry_tree::compare::{Options, Progress, trees};
use ferry_tree::workload::{Sizes, Workload, make};
use rustix::fs::XattrFlags;

use super::{Calls, Kind, Limit, copy};

/// Every program, with few and many threads.
fn every_limit() -> Vec<Limit> {
    let lists = [Kind::Small, Kind::Large, Kind::One]
        .into_iter()
        .flat_map(|kind| [false, true].map(|is_cold| Limit::all(kind, is_cold, 2)));
    let mut all = lists.flatten().collect::<Vec<_>>();
    all.extend(Calls::ALL.map(|(_, calls)| Limit { calls, threads: 2, block_bytes: 4096, preserves: false }));
    all
}

/// Copies with every program and compares the trees. Direct I/O is not supported everywhere.
#[track_caller]
fn every_limit_copies(place: &Path, source: &Path) {
    for limit in every_limit() {
        let (name, target) = (limit.name(), place.join("copy"));
        match copy(&limit, source, &target) {
            Err(failure) if limit.calls == Calls::Direct => eprintln!("SKIP {name}: {failure}"),
            copied => {
                copied.unwrap();
                let found = trees(source, &target, &Options::plain(), &Progress::new(), &|difference| {
                    eprintln!("{name}: {difference}");
                });
                assert_eq!(found.unwrap().differences, 0, "{name}");
            }
        }
        ferry_tree::remove::remove(&target).unwrap();
    }
}

/// A folder on the tests' disk, and one in memory.
fn places() -> Vec<tempfile::TempDir> {
    let disk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let folders = [disk.as_path(), Path::new("/dev/shm")];
    folders.iter().filter_map(|folder| tempfile::tempdir_in(folder).ok()).collect()
}

#[test]
fn every_limit_program_copies_small_files() {
    for place in places() {
        let source = place.path().join("source");
        let sizes = Sizes::Uniform { least: 0, most: 9000 };
        make(&Workload { sizes, symlink_percent: 20, ..Workload::plain(3, 3, 4, 0, 1) }, &source, 2).unwrap();
        every_limit_copies(place.path(), &source);
    }
}

#[test]
fn every_limit_program_copies_large_files() {
    for place in places() {
        let source = place.path().join("source");
        let sizes = Sizes::Uniform { least: 1 << 20, most: 3 << 20 };
        make(&Workload { sizes, ..Workload::plain(1, 1, 2, 0, 1) }, &source, 2).unwrap();
        every_limit_copies(place.path(), &source);
    }
}

#[test]
fn every_limit_program_copies_one_file() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    for size in [0_usize, 1, 4096, 200_001] {
        std::fs::write(&source, vec![7; size]).unwrap();
        every_limit_copies(place.path(), &source);
    }
}

#[test]
fn every_limit_program_keeps_attributes_on_request() {
    for place in places() {
        let source = place.path().join("source");
        let sizes = Sizes::Uniform { least: 0, most: 9000 };
        make(&Workload { sizes, symlink_percent: 20, ..Workload::plain(2, 2, 6, 0, 1) }, &source, 2).unwrap();
        let entries = std::fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().path());
        let paths: Vec<_> = entries.filter(|path| !path.is_symlink()).collect();
        let file = paths.iter().find(|path| path.is_file()).unwrap();
        if let Err(errno) = rustix::fs::setxattr(file, "user.note", &[5; 700], XattrFlags::empty()) {
            eprintln!("SKIP extended attributes: {errno}");
        }
        for (path, mode) in paths.iter().zip([0o555, 0o4711, 0o600].into_iter().cycle()) {
            if ferry_io::is_superuser() {
                chown(path, Some(7), Some(8)).unwrap();
            }
            // Owners can search their folders, which tests need without root.
            let mode = if path.is_dir() { 0o1750 } else { mode };
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        // Attributes of an unwritable file are refused to all but root.
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o444)).unwrap();
        for limit in every_limit() {
            let (name, target) = (limit.name(), place.path().join("copy"));
            match copy(&Limit { preserves: true, ..limit }, &source, &target) {
                Err(failure) if limit.calls == Calls::Direct => eprintln!("SKIP {name}: {failure}"),
                copied => {
                    copied.unwrap();
                    let found = trees(&source, &target, &Options::all(), &Progress::new(), &|difference| {
                        eprintln!("{name}: {difference}");
                    });
                    assert_eq!(found.unwrap().differences, 0, "{name}");
                }
            }
            ferry_tree::remove::remove(&target).unwrap();
        }
    }
}

#[test]
fn the_first_error_ends_every_limit_program() {
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    make(&Workload::plain(3, 3, 4, 4096, 1), &source, 2).unwrap();
    std::fs::create_dir(&target).unwrap();
    for limit in every_limit() {
        assert!(copy(&limit, &source, &target).unwrap_err().to_string().contains("File exists"));
    }
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
    let socket = source.join("d1/socket");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    for limit in every_limit().into_iter().filter(|limit| limit.calls != Calls::Direct) {
        let said = copy(&limit, &source, &place.path().join(limit.name())).unwrap_err().to_string();
        assert_eq!(said, "cannot copy 'socket': Operation not supported", "{}", limit.name());
        ferry_tree::remove::remove(&place.path().join(limit.name())).unwrap();
    }
}

#[test]
fn names_are_read_as_they_are_written() {
    for limit in every_limit() {
        let found = Limit::named(&limit.name()).unwrap();
        assert_eq!((found.calls, found.threads, found.name()), (limit.calls, limit.threads, limit.name()));
    }
    let named = |name: &str| Limit::named(name).map(|limit| limit.name());
    assert_eq!(named("limit-mapped-2"), Some("limit-mapped-2x64K".to_owned()));
    for wrong in [
        "limit-read-write",
        "limit-read-write-0",
        "limit-read-write-65",
        "limit-read-write-2x5000",
        "limit-read-write-2x0",
        "limit-read-write-2x1G",
        "limit-mapped-3",
        "limit-pipe-1",
        "limit-teleport-1",
        "read-write-1",
    ] {
        assert_eq!(named(wrong), None, "{wrong}");
    }
}

#[test]
fn a_pilot_tries_few_of_all_programs() {
    for kind in [Kind::Small, Kind::Large, Kind::One] {
        for is_cold in [false, true] {
            for processors in [1, 2, 64] {
                let all = Limit::all(kind, is_cold, processors);
                let likely = Limit::likely(kind, is_cold, processors);
                assert!((2..=8).contains(&likely.len()) && likely.len() < all.len());
                let names: std::collections::BTreeSet<String> = all.iter().map(Limit::name).collect();
                assert_eq!(names.len(), all.len(), "none twice");
            }
        }
    }
    assert_eq!(Kind::of(3, 4096), Kind::Small);
    assert_eq!(Kind::of(1, 2 << 30), Kind::One);
    assert_eq!(Kind::of(780, 1 << 20), Kind::Large);
}
