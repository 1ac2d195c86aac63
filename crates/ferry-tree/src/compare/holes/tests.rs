use super::{Layout, compare};
use crate::attributes::{Attributes, EntryKind, Inode, Time};
use crate::compare::{Holes, Options};
use crate::describe::Extent;

const MIB: u64 = 1 << 20;

/// A file of 10 MiB: its data in whole MiB, as (offset, size), and the bytes it occupies.
fn check(holes: Holes, source: (&[(u64, u64)], u64), target: (&[(u64, u64)], u64)) -> bool {
    let extents = |data: &[(u64, u64)]| {
        let extent = |(offset, size): &(u64, u64)| Extent { offset: offset * MIB, size: size * MIB };
        data.iter().map(extent).collect::<Vec<_>>()
    };
    let attributes = |allocated| Attributes {
        kind: EntryKind::File,
        mode: 0o644,
        uid: 0,
        gid: 0,
        atime: Time::default(),
        mtime: Time::default(),
        size: 10 * MIB,
        inode: Inode::default(),
        link_count: 1,
        device: (0, 0),
        allocated,
        block_bytes: 4096,
    };
    let (source_extents, target_extents) = (extents(source.0), extents(target.0));
    let (source, target) = (attributes(source.1), attributes(target.1));
    let source = Layout { attributes: &source, extents: &source_extents };
    let target = Layout { attributes: &target, extents: &target_extents };
    compare(&source, &target, &Options { holes, ..Options::all() }).is_some()
}

#[test]
fn a_hole_filled_with_data_is_a_difference() {
    let (sparse, full) = (([(2, 3)], 3 * MIB), ([(0, 10)], 10 * MIB));
    assert!(check(Holes::Kept, (&sparse.0, sparse.1), (&full.0, full.1)));
    assert!(check(Holes::Kept, (&[], 0), (&full.0, full.1)));
    assert!(!check(Holes::Ignore, (&sparse.0, sparse.1), (&full.0, full.1)));
}

#[test]
fn a_new_hole_differs_only_if_asked() {
    let (sparse, full) = (([(2, 3), (7, 1)], 4 * MIB), ([(0, 10)], 10 * MIB));
    assert!(!check(Holes::Kept, (&full.0, full.1), (&sparse.0, sparse.1)));
    assert!(check(Holes::Same, (&full.0, full.1), (&sparse.0, sparse.1)));
}

#[test]
fn compressed_zeros_are_no_difference() {
    assert!(!check(Holes::Kept, (&[(2, 3)], 3 * MIB), (&[(0, 10)], 3 * MIB + 300 * 1024)));
}

#[test]
fn blocks_preallocated_are_no_difference() {
    assert!(!check(Holes::Kept, (&[(2, 3)], 3 * MIB), (&[(2, 3)], 16 * MIB)));
}

#[test]
fn blocks_behind_the_end_hide_no_lost_hole() {
    let sparse = [(0, 1), (6, 4)];
    assert!(check(Holes::Kept, (&sparse, 13 * MIB), (&[(0, 10)], 10 * MIB)));
    assert!(check(Holes::Kept, (&sparse, 13 * MIB), (&[(0, 10)], 18 * MIB)));
    assert!(!check(Holes::Kept, (&sparse, 13 * MIB), (&sparse, 5 * MIB)));
    assert!(!check(Holes::Same, (&sparse, 5 * MIB), (&sparse, 13 * MIB)));
}

#[test]
fn a_few_bytes_are_no_difference() {
    assert!(!check(Holes::Kept, (&[(2, 3)], 3 * MIB), (&[(2, 3)], 3 * MIB + 8192)));
}
