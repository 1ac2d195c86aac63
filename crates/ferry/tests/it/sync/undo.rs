//! `--undo` after a run of random trees: the round trip.

use ferry_tree::attributes::EntryKind;
use ferry_tree::capture;
use ferry_tree::compare::{Mismatch, snapshots};

use super::deletion::trashes;
use super::{Pair, compared, knobs, said, seeds, sync};
use crate::random::filesystem::{self, Filesystem};

/// Runs random pairs and undoes each run: all names that the target had lead to the same files as before.
fn check(filesystem: &Filesystem, count: u64) {
    let (mut restored, mut linked) = (0, 0);
    let seeds = seeds(count);
    for &seed in &seeds {
        let (pair, _) = Pair::random(filesystem.path(), seed, &knobs(filesystem.path(), seed));
        let was = capture::capture(&pair.path().join("target")).unwrap();
        let output = pair.sync(&["--delete", "-v"]);
        assert!(output.status.success(), "FERRY_SEED={seed}: {}", said(&output));
        let found = trashes(&pair.path().join("target"));
        let [trash] = &found[..] else { continue };
        let taken = capture::capture(trash).unwrap();
        let undone = sync(pair.path(), &["--undo", trash.to_str().unwrap()]);
        assert!(undone.status.success(), "FERRY_SEED={seed}: {}", said(&undone));
        let is = capture::capture(&pair.path().join("target")).unwrap();
        for difference in snapshots(&was, &is, &compared()) {
            let is_new = matches!(difference.mismatch, Mismatch::ExtraInTarget(_));
            let has_bytes = !matches!(
                difference.mismatch,
                Mismatch::MissingInTarget(_)
                    | Mismatch::Kind { .. }
                    | Mismatch::Content { .. }
                    | Mismatch::Size { .. }
                    | Mismatch::HardLink { .. }
            );
            // Entries that stayed, and folders, may have got attributes.
            let taken = taken.entries.get(&difference.path).map(|facts| &facts.attributes);
            let has_stayed =
                taken.is_none_or(|taken| taken.kind == EntryKind::Directory || taken.link_count > 1);
            let is_expected = is_new || has_bytes && has_stayed;
            assert!(is_expected, "FERRY_SEED={seed}: {difference}\n{}{}", said(&output), said(&undone));
        }
        for (path, was) in was.entries.iter().filter(|(_, was)| was.attributes.kind != EntryKind::Directory) {
            let is = &is.entries[path].attributes;
            let name = path.escape_ascii();
            assert_eq!(is.inode, was.attributes.inode, "FERRY_SEED={seed}: {name}\n{}", said(&undone));
            restored += u64::from(taken.entries.contains_key(path));
            linked += u64::from(taken.entries.contains_key(path) && was.attributes.link_count > 1);
        }
    }
    let has_restored = seeds.len() == 1 || restored > count && linked > 0;
    assert!(has_restored, "{restored} restored, {linked} of them with several names");
}

#[test]
fn what_a_run_took_away_is_restored() {
    check(&Filesystem::memory(), 8);
}

#[test]
fn what_a_run_took_away_is_restored_on_ext4() {
    let test = "sync::undo::what_a_run_took_away_is_restored_on_ext4";
    filesystem::within(test, "ext4", |ext4| check(ext4, 6));
}

#[test]
fn what_a_run_took_away_is_restored_on_xfs() {
    let test = "sync::undo::what_a_run_took_away_is_restored_on_xfs";
    filesystem::within(test, "xfs", |xfs| check(xfs, 6));
}

#[test]
fn what_a_run_took_away_is_restored_on_btrfs() {
    let test = "sync::undo::what_a_run_took_away_is_restored_on_btrfs";
    filesystem::within(test, "btrfs", |btrfs| check(btrfs, 6));
}
