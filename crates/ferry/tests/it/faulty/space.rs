//! Filesystems that run out of blocks, inodes or quota at any point of a copy.

use std::path::Path;

use super::table::assert_told;
use super::{BACKENDS, bytes_of, copy, shell, told};
use crate::random::filesystem::within;
use crate::scene::skip;

const FILES: usize = 120;

/// Makes many files of one or many blocks.
fn make_many(place: &Path) {
    for index in 0..FILES {
        let folder = place.join(format!("source/{}", index % 6));
        std::fs::create_dir_all(&folder).unwrap();
        let size = if index % 3 == 0 { 400_000 } else { 3_000 };
        std::fs::write(folder.join(index.to_string()), bytes_of(&index.to_string(), size)).unwrap();
    }
}

#[track_caller]
fn count_whole(place: &Path, target: &Path) -> usize {
    let mut whole = 0;
    for index in 0..FILES {
        let name = format!("{}/{index}", index % 6);
        if let Ok(found) = std::fs::read(target.join(&name)) {
            assert!(found == std::fs::read(place.join("source").join(&name)).unwrap(), "{name} is in pieces");
            whole += 1;
        }
    }
    whole
}

/// Copies to a small filesystem and retries with more space until everything fits.
fn until_it_fits(test: &str, kind: &str, rooms: &[u32], make: &str, end: &str) {
    within(test, kind, |filesystem| {
        let place = filesystem.path();
        make_many(place);
        let mut partial = 0;
        for (room, backend) in rooms.iter().flat_map(|room| BACKENDS.map(|backend| (room, backend))) {
            let made = shell(place, &format!("room={room}; {make}"));
            if !made.status.success() {
                skip::<()>(&String::from_utf8_lossy(&made.stderr));
                return;
            }
            let output = copy(place, &["-r", backend, "source", "small/target"]);
            let whole = count_whole(place, &place.join("small/target"));
            if whole < FILES {
                assert_told(test, 0, told(&output));
                partial += 1;
            } else {
                assert_eq!(told(&output), (Some(0), ""));
            }
            assert!(shell(place, end).status.success());
        }
        assert!(partial > 4, "only {partial} copies found no room");
    });
}

#[test]
fn a_filesystem_that_is_full() {
    until_it_fits(
        "faulty::space::a_filesystem_that_is_full",
        "tmpfs",
        &[3_000, 5_000, 7_777, 12_345, 15_000, 64_000],
        "truncate -s ${room}K image; mkfs.ext4 -q -m 0 -O ^has_journal image; mkdir small; mount -o loop image small",
        "umount small; rmdir small; rm image",
    );
}

#[test]
fn a_filesystem_without_inodes() {
    until_it_fits(
        "faulty::space::a_filesystem_without_inodes",
        "tmpfs",
        &[2, 8, 9, 33, 99, 500],
        "mkdir small; mount -t tmpfs -o size=64m,nr_inodes=$room none small",
        "umount small; rmdir small",
    );
}

#[test]
fn a_quota_that_is_used_up() {
    until_it_fits(
        "faulty::space::a_quota_that_is_used_up",
        "btrfs",
        &[1, 2, 4, 9, 64],
        "btrfs subvolume create small >/dev/null; btrfs quota enable .; btrfs qgroup limit ${room}M small",
        "btrfs subvolume delete small >/dev/null",
    );
}
