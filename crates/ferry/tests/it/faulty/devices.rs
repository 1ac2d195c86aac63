//! Devices that fail (EIO), on either side.

use rustix::io::Errno;

use super::served::{Call, Files};
use super::table::assert_told;
use super::{
    BACKENDS, assert_holds_all_but, assert_is_empty, copy, failing, make_source, serve_source, shell, told,
    with_served,
};
use crate::random::filesystem::within;
use crate::scene::skip;

/// Options that change how bytes are copied; the messages must be the same.
const WAYS: [&[&str]; 5] = [
    &[],
    &["--route=pool"],
    &["--sparse=always"],
    &["--reflink=never", "--sparse=never"],
    &["--fsync", "--block-size=4K"],
];

/// Copies from a served source on which one call fails.
#[track_caller]
fn reading(test: &str, (call, name): (Call, &'static str), lost: &[&str]) {
    within(test, "tmpfs", |memory| {
        let mischief = || failing(call, name, Errno::IO);
        with_served(memory, serve_source, mischief, |place, _, backend| {
            for way in WAYS {
                let output = copy(place, &[&["-r", backend], way, &["served", "target"]].concat());
                assert_told(test, 0, told(&output));
                assert_holds_all_but(&place.join("target"), lost);
                if call == Call::List {
                    assert_is_empty(&place.join("target").join(name));
                }
                std::fs::remove_dir_all(place.join("target")).unwrap();
            }
        });
    });
}

/// Copies to a served target on which one call fails.
#[track_caller]
fn writing(test: &str, (call, name): (Call, &'static str), lost: &[&str]) {
    within(test, "tmpfs", |memory| {
        let mischief = || failing(call, name, Errno::IO);
        with_served(
            memory,
            |_: &mut Files| {},
            mischief,
            |place, _, backend| {
                make_source(place);
                for way in WAYS {
                    let output = copy(place, &[&["-r", backend], way, &["source", "served/target"]].concat());
                    assert_told(test, 0, told(&output));
                    assert_holds_all_but(&place.join("served/target"), lost);
                    std::fs::remove_dir_all(place.join("served/target")).unwrap();
                }
            },
        );
    });
}

#[test]
fn a_file_that_cannot_be_read() {
    reading("faulty::devices::a_file_that_cannot_be_read", (Call::Read, "b"), &["b"]);
}

#[test]
fn a_large_file_that_cannot_be_read() {
    reading("faulty::devices::a_large_file_that_cannot_be_read", (Call::Read, "c"), &["c"]);
}

#[test]
fn a_file_that_cannot_be_looked_at() {
    reading("faulty::devices::a_file_that_cannot_be_looked_at", (Call::Lookup, "d"), &["folder/d"]);
}

#[test]
fn a_folder_that_cannot_be_listed() {
    reading("faulty::devices::a_folder_that_cannot_be_listed", (Call::List, "folder"), &["folder"]);
}

#[test]
fn a_file_that_cannot_be_written() {
    writing("faulty::devices::a_file_that_cannot_be_written", (Call::Write, "b"), &["b"]);
}

#[test]
fn a_large_file_that_cannot_be_written() {
    writing("faulty::devices::a_large_file_that_cannot_be_written", (Call::Write, "c"), &["c"]);
}

#[test]
fn a_file_that_cannot_be_made() {
    writing("faulty::devices::a_file_that_cannot_be_made", (Call::Make, "e"), &["folder/e"]);
}

#[test]
fn a_folder_that_cannot_be_made() {
    writing("faulty::devices::a_folder_that_cannot_be_made", (Call::Make, "folder"), &["folder"]);
}

#[test]
fn a_file_that_fails_as_it_is_closed() {
    writing("faulty::devices::a_file_that_fails_as_it_is_closed", (Call::Flush, "d"), &["folder/d"]);
}

#[test]
fn a_file_that_can_neither_be_written_nor_removed() {
    const TEST: &str = "faulty::devices::a_file_that_can_neither_be_written_nor_removed";
    within(TEST, "tmpfs", |memory| {
        let mischief = || -> super::Mischief {
            Box::new(|_, call, name| {
                let fails = name == "b" && matches!(call, Call::Write | Call::Remove);
                if fails { Err(Errno::IO) } else { Ok(()) }
            })
        };
        with_served(
            memory,
            |_: &mut Files| {},
            mischief,
            |place, _, backend| {
                make_source(place);
                let output = copy(place, &["-a", backend, "source", "served/target"]);
                assert_told(TEST, 0, told(&output));
                let left = place.join("served/target/b");
                let left = left.metadata().unwrap();
                assert_eq!(left.len(), 0, "nothing of it was written");
                let source = place.join("source/b").metadata().unwrap();
                assert_ne!(
                    left.modified().unwrap(),
                    source.modified().unwrap(),
                    "it is not taken for a copy"
                );
            },
        );
    });
}

/// Copies a tree with `--fsync` to a served target on which one name can't be synced.
#[track_caller]
fn syncing(test: &str, name: &'static str, lost: &[&str]) {
    within(test, "tmpfs", |memory| {
        let mischief = || failing(Call::Sync, name, Errno::IO);
        with_served(
            memory,
            |_: &mut Files| {},
            mischief,
            |place, _, backend| {
                make_source(place);
                let output = copy(place, &["-r", "--fsync", backend, "source", "served/target"]);
                assert_told(test, 0, told(&output));
                assert_holds_all_but(&place.join("served/target"), lost);
            },
        );
    });
}

#[test]
fn a_file_of_a_tree_that_cannot_be_synced() {
    syncing("faulty::devices::a_file_of_a_tree_that_cannot_be_synced", "d", &["folder/d"]);
}

#[test]
fn a_folder_of_a_tree_that_cannot_be_synced() {
    syncing("faulty::devices::a_folder_of_a_tree_that_cannot_be_synced", "folder", &[]);
}

#[test]
fn a_disk_that_loses_what_is_written_to_it() {
    const TEST: &str = "faulty::devices::a_disk_that_loses_what_is_written_to_it";
    // A disk of 200 MB on a tmpfs with 30 MB: writeback of the rest fails.
    const DISK: &str = "mkdir back small; mount -t tmpfs -o size=30m none back; truncate -s 200M back/image
        mkfs.ext4 -q -O ^has_journal -E nodiscard,lazy_itable_init=1 back/image; mount -o loop back/image small";
    within(TEST, "tmpfs", |memory| {
        let place = memory.path();
        std::fs::create_dir(place.join("source")).unwrap();
        for number in 0..16_u8 {
            std::fs::write(place.join(format!("source/{number}")), vec![number; 4 << 20]).unwrap();
        }
        for (nth, way) in
            [&[][..], &["--fsync"], &["--direct=always", "--sparse=always"]].into_iter().enumerate()
        {
            for backend in BACKENDS {
                let made = shell(place, DISK);
                if !made.status.success() {
                    skip::<()>(&String::from_utf8_lossy(&made.stderr));
                    return;
                }
                let output = copy(place, &[&["-r", backend], way, &["source", "small/target"]].concat());
                assert_told(TEST, nth, told(&output));
                assert!(shell(place, "umount small; umount back; rmdir small back").status.success());
            }
        }
    });
}

#[test]
fn a_device_that_cannot_be_synced() {
    const TEST: &str = "faulty::devices::a_device_that_cannot_be_synced";
    within(TEST, "tmpfs", |memory| {
        let mischief = || failing(Call::Sync, "target", Errno::IO);
        with_served(
            memory,
            |_: &mut Files| {},
            mischief,
            |place, _, backend| {
                std::fs::write(place.join("f"), "text").unwrap();
                let output = copy(place, &["--fsync", backend, "f", "served/target"]);
                assert_told(TEST, 0, told(&output));
                assert!(
                    !place.join("served/target").exists(),
                    "what may be lost is not left as if it were safe"
                );
            },
        );
    });
}
