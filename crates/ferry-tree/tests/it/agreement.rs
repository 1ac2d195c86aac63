//! Comparing on disk, comparing in pieces and comparing snapshots find the same differences.

use crate::support::{self, Place, again_as_nobody, differences, is_again};
use ferry_tree::compare::{
    Buffers, Difference, Found, Holes, Joined, Listing, Mismatch, Options, Passed, Pieces, Progress, Summary,
    snapshots,
};
use ferry_tree::fill::SplitMix64;
use ferry_tree::random::{self, Knobs};
use ferry_tree::{Node, Tree, capture, make, remove};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// Replaces some entries, with everything beneath, by those of another tree, and changes some metadata.
fn changed(tree: &Tree, other: &Tree, numbers: &mut SplitMix64) -> Tree {
    let mut result = Tree::new();
    let mut gone: Vec<Vec<u8>> = Vec::new();
    for (path, node) in tree.nodes().skip(1) {
        let beneath =
            |above: &Vec<u8>| path.strip_prefix(above.as_slice()).is_some_and(|rest| rest.starts_with(b"/"));
        let choice = numbers.below(12);
        if gone.iter().any(beneath) || choice == 0 {
            gone.push(path.to_vec());
            continue;
        }
        let node = match choice {
            1 => {
                let substitute = other.nodes().nth(numbers.index(other.count()));
                let substitute = substitute.map_or_else(Node::directory, |(_, node)| node.clone());
                if matches!(node.kind, ferry_tree::describe::NodeKind::Directory) {
                    gone.push(path.to_vec());
                }
                substitute
            }
            2 if !matches!(node.kind, ferry_tree::describe::NodeKind::Symlink(_)) => node.clone().mode(0o123),
            3 => node.clone().mtime(numbers.next_u64().cast_signed() >> 34, 5),
            _ => node.clone(),
        };
        result.insert(path, node);
    }
    unlinked(&result)
}

/// Turns hard links whose targets have vanished into files.
fn unlinked(tree: &Tree) -> Tree {
    let mut result = tree.clone();
    for (path, node) in tree.nodes() {
        if let ferry_tree::describe::NodeKind::HardLink(first) = &node.kind {
            use ferry_tree::describe::NodeKind::{Directory, HardLink};
            let lost = tree.get(first).is_none_or(|node| matches!(node.kind, Directory | HardLink(_)));
            if lost {
                result.insert(path, Node::file("was a link"));
            }
        }
    }
    result
}

/// Sorted lines of differences, without properties that only one way knows.
fn lines(differences: Vec<Difference>) -> Vec<String> {
    let line = |difference: Difference| {
        let of_content = matches!(difference.mismatch, Mismatch::Content { .. });
        let mismatch = if of_content { Mismatch::Content { offset: None } } else { difference.mismatch };
        Difference { mismatch, ..difference }.to_string()
    };
    let mut lines: Vec<String> = differences.into_iter().map(line).collect();
    lines.sort_unstable();
    lines
}

/// Size from which on content is compared in ranges of about two thirds of it.
const LARGE: u64 = 3_000;

/// Compares in small pieces, each with counters of its own, and joins what they find.
fn in_pieces(source: &Path, target: &Path, options: &Options) -> (Vec<Difference>, Summary) {
    let (found, progress) = (Mutex::new(Vec::new()), Progress::new());
    let note = |difference| found.lock().unwrap().push(difference);
    let pieces = Pieces::open((source, target), LARGE, options, &progress, &note).unwrap();
    assert!(pieces.threads() >= 1);
    if pieces.check().is_err() {
        return differences(source, target, options);
    }
    let (mut joined, mut buffers) = (Joined::default(), Buffers::default());
    pieces.roots();
    let mut folders = vec![Vec::new()];
    let mut most = 1;
    while let Some(path) = folders.pop() {
        let mut listed = match pieces.list(&path, most) {
            Listing::Listed(listed) => listed,
            Listing::Unreadable => continue,
            Listing::TooLong => {
                most += 1;
                folders.push(path);
                continue;
            }
        };
        let mut all = Vec::new();
        while listed.left() > 0 {
            let Passed { leaves, others } = pieces.pass(&mut listed, 3);
            let (count, found) = pieces.compare_listed(&listed, &others, Duration::MAX, &mut buffers);
            assert_eq!(count, others.len());
            all.push(found);
            for name in &leaves {
                // At least one is compared in any time.
                let (count, found) =
                    pieces.compare(&path, &[name.clone(), name.clone()], Duration::ZERO, &mut buffers);
                assert_eq!((count, &found.folders), (1, &Vec::new()));
                all.push(found);
            }
        }
        for Found { folders: inner, large } in all {
            let join =
                |name: Vec<u8>| if path.is_empty() { name } else { [&path, &b"/"[..], &name].concat() };
            folders.extend(inner.into_iter().map(join));
            for (name, attributes) in large {
                assert!(attributes.size >= LARGE);
                let (file, version) = ((&*path, &*name), (attributes.inode.number, attributes.size));
                for start in (0..attributes.size.div_ceil(2_100)).rev().map(|range| range * 2_100) {
                    let found = pieces.range(file, version, start..start + 2_100, &mut buffers);
                    found.into_iter().for_each(|difference| joined.range(difference));
                }
            }
        }
        pieces.linked().into_iter().for_each(|name| joined.linked(name));
    }
    let mut differences = joined.take_ranges();
    differences.extend(joined.finish_links());
    differences.extend(found.into_inner().unwrap());
    (differences, progress.so_far())
}

fn check(place: &Place, knobs: &Knobs, seeds: std::ops::Range<u64>) {
    let (source, target) = (place.join("source"), place.join("target"));
    let mut kinds = std::collections::HashSet::new();
    for seed in seeds {
        println!("seed {seed}");
        let tree = random::tree(seed, knobs);
        let other = random::tree(seed + 1_000_000, knobs);
        make::make(&tree, &source).unwrap();
        let changed = changed(&tree, &other, &mut SplitMix64::new(seed));
        make::make(&changed, &target).unwrap();
        let (before, after) = (capture::capture(&source).unwrap(), capture::capture(&target).unwrap());
        let same_holes = Options { holes: Holes::Same, threads: 3, ..Options::all() };
        for options in [Options::all(), Options::plain(), same_holes] {
            let (on_disk, summary) = differences(&source, &target, &options);
            kinds.extend(on_disk.iter().map(|difference| std::mem::discriminant(&difference.mismatch)));
            assert_eq!(usize::try_from(summary.differences).unwrap(), on_disk.len());
            let (pieces, counted) = in_pieces(&source, &target, &options);
            let only_in = |some: &[Difference], others: &[Difference]| {
                let only = some.iter().filter(|difference| !others.contains(difference));
                only.map(ToString::to_string).collect::<Vec<_>>()
            };
            assert_eq!(only_in(&pieces, &on_disk), only_in(&on_disk, &pieces));
            assert_eq!(pieces.len(), on_disk.len());
            let entries = |summary: Summary| (summary.entries, summary.directories, summary.files);
            assert_eq!(entries(counted), entries(summary));
            let forth = snapshots(&before, &after, &options);
            let (on_disk, forth) = (lines(on_disk), lines(forth));
            let only_on_disk: Vec<_> = on_disk.iter().filter(|line| !forth.contains(line)).collect();
            let only_in_snapshots: Vec<_> = forth.iter().filter(|line| !on_disk.contains(line)).collect();
            assert_eq!(only_on_disk, only_in_snapshots);
            assert_eq!(on_disk.len(), forth.len());
        }
        remove::remove(&source).unwrap();
        remove::remove(&target).unwrap();
    }
    assert!(kinds.len() >= 8, "only {} kinds of difference were met", kinds.len());
}

#[test]
fn both_ways_agree() {
    for place in Place::everywhere() {
        let knobs = support::knobs(&place);
        check(&place, &knobs, 0..60);
    }
}

#[test]
fn both_ways_agree_on_what_is_unreadable() {
    if !is_again() && rustix::process::geteuid().is_root() {
        return again_as_nobody("agreement::both_ways_agree_on_what_is_unreadable");
    }
    let place = Place::new();
    let knobs = Knobs { unreadable: true, ..Knobs::possible_in(place.path()) };
    check(&place, &knobs, 100..160);
}
