use super::{Knobs, tree};
use crate::describe::{Content, NodeKind};
use std::collections::HashSet;
use std::mem::discriminant;

#[test]
fn the_same_seed_gives_the_same_tree() {
    for seed in 0..20 {
        assert_eq!(tree(seed, &Knobs::all()), tree(seed, &Knobs::all()));
        assert_ne!(tree(seed, &Knobs::all()), tree(seed + 1, &Knobs::all()));
    }
}

#[test]
fn every_kind_of_everything_appears() {
    let mut kinds = HashSet::new();
    let (mut acls, mut defaults, mut xattrs, mut long, mut odd, mut deepest) = (0, 0, 0, 0, 0, 0);
    let mut zeros = 0;
    for seed in 0..50 {
        for (path, node) in tree(seed, &Knobs::all()).nodes() {
            kinds.insert(discriminant(&node.kind));
            let long_zeros = |bytes: &Vec<u8>| bytes.windows(32 << 10).any(|run| run == [0; 32 << 10]);
            zeros +=
                usize::from(matches!(&node.kind, NodeKind::File(Content::Bytes(bytes)) if long_zeros(bytes)));
            acls += usize::from(node.meta.access_acl.is_some());
            defaults += usize::from(node.meta.default_acl.is_some());
            xattrs += node.meta.xattrs.len();
            long += path.split(|byte| *byte == b'/').filter(|name| name.len() == 255).count();
            odd += usize::from(std::str::from_utf8(path).is_err());
            deepest = deepest.max(path.split(|byte| *byte == b'/').count());
        }
    }
    assert_eq!(kinds.len(), 8);
    assert!(acls > 20 && defaults > 20 && xattrs > 100 && long > 10 && odd > 50);
    assert_eq!(deepest, 5);
    assert!(zeros > 20, "{zeros}");
}

#[test]
fn plain_trees_need_no_privilege() {
    for seed in 0..20 {
        for (path, node) in tree(seed, &Knobs::plain()).nodes() {
            assert!(path.is_ascii());
            assert!(matches!(node.kind, NodeKind::Directory | NodeKind::File(_) | NodeKind::Symlink(_)));
            assert!(node.meta.uid.is_none() && node.meta.xattrs.is_empty());
        }
    }
}
