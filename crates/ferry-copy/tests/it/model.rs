//! Random trees as models of the simulation.

use std::collections::BTreeMap;
use std::ffi::CString;

use ferry_io::sim::{Model, Node, Sparse};
use ferry_io::{FileKind, Time, Times};
use ferry_tree::attributes;
use ferry_tree::describe::{Content, Meta, NodeKind};
use ferry_tree::fill::fill;
use ferry_tree::random::{Knobs, tree};

/// Returns a seed's random tree, with all kinds of files. The simulation does not enforce ACLs.
pub(crate) fn random(seed: u64, entries: usize) -> Model {
    let knobs = Knobs { entries, acls: false, ..Knobs::all() };
    let tree = tree(seed, &knobs);
    let mut model = Model::new();
    for (path, node) in tree.nodes() {
        if !matches!(node.kind, NodeKind::HardLink(_)) {
            model.insert(path.to_vec(), plain(&node.kind, &node.meta));
        }
    }
    for (path, node) in tree.nodes() {
        if let NodeKind::HardLink(first) = &node.kind {
            let linked = model[first].clone();
            model.insert(path.to_vec(), linked);
            join(&mut model, first, path);
        }
    }
    model
}

/// Makes two names one file: all of its names refer to the first one.
fn join(model: &mut Model, one: &[u8], other: &[u8]) {
    let first = model[one].same_as.clone().unwrap_or_else(|| one.to_vec());
    let new_first = first.as_slice().min(other).to_vec();
    let is_of_file = |path: &Vec<u8>, node: &Node| {
        *path == first || node.same_as.as_ref() == Some(&first) || path == other
    };
    let names: Vec<Vec<u8>> =
        model.iter().filter(|(path, node)| is_of_file(path, node)).map(|(path, _)| path.clone()).collect();
    for name in names {
        let same_as = (name != new_first).then(|| new_first.clone());
        if let Some(node) = model.get_mut(&name) {
            node.same_as = same_as;
        }
    }
}

fn plain(kind: &NodeKind, meta: &Meta) -> Node {
    let (kind, content, target, device) = match kind {
        NodeKind::Directory => (FileKind::Directory, Sparse::default(), Vec::new(), 0),
        NodeKind::File(content) => (FileKind::Regular, sparse(content), Vec::new(), 0),
        NodeKind::Symlink(target) => (FileKind::Symlink, Sparse::default(), target.clone(), 0),
        NodeKind::Fifo => (FileKind::Fifo, Sparse::default(), Vec::new(), 0),
        NodeKind::Socket => (FileKind::Socket, Sparse::default(), Vec::new(), 0),
        NodeKind::CharacterDevice(major, minor) => {
            (FileKind::CharDevice, Sparse::default(), Vec::new(), u64::from(major << 8 | minor))
        }
        NodeKind::BlockDevice(major, minor) => {
            (FileKind::BlockDevice, Sparse::default(), Vec::new(), u64::from(major << 8 | minor))
        }
        NodeKind::HardLink(_) => unreachable!("they are added last"),
    };
    let time = |time: Option<attributes::Time>| {
        time.map_or(Time { seconds: 0, nanoseconds: 0 }, |time| Time {
            seconds: time.seconds,
            nanoseconds: time.nanoseconds,
        })
    };
    let name = |name: &[u8]| CString::new(name).unwrap();
    let mode = if kind == FileKind::Symlink { 0o777 } else { meta.mode };
    Node {
        uid: meta.uid.unwrap_or(0),
        gid: meta.gid.unwrap_or(0),
        times: Times { accessed: time(meta.atime), modified: time(meta.mtime) },
        xattrs: meta.xattrs.iter().map(|(key, value)| (name(key), value.clone())).collect::<BTreeMap<_, _>>(),
        content,
        target,
        device,
        ..Node::new(kind, mode)
    }
}

fn sparse(content: &Content) -> Sparse {
    let mut sparse = Sparse::default();
    sparse.set_size(content.size());
    for extent in content.extents() {
        let mut bytes = vec![0; usize::try_from(extent.size).unwrap()];
        match content {
            Content::Bytes(all) => bytes.copy_from_slice(all),
            Content::Seeded { seed, .. } => fill(*seed, extent.offset, &mut bytes),
        }
        sparse.write(extent.offset, &bytes);
    }
    sparse
}
