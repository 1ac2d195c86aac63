//! Record of every version of every file, kept by the processes that change the world.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use ferry_io::sim::Node;

use crate::storms::weather::is_beneath;

pub(super) type Path = String;

/// A file under all its names, with every content that it had.
#[derive(Debug, Default)]
struct Object {
    versions: Vec<Vec<u8>>,
    /// Set once it was modified in place, which may tear a copy.
    is_modified: bool,
}

/// All files and their names.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    objects: Vec<Object>,
    /// Every object that each source path has been.
    ever: BTreeMap<Path, BTreeSet<usize>>,
    now: BTreeMap<Path, usize>,
    /// Source paths that have existed since the copy began.
    always: BTreeSet<Path>,
    /// Target files that nothing may write to.
    pub(super) bystanders: BTreeMap<Path, Vec<u8>>,
    /// Files outside of both trees.
    pub(super) outside: BTreeMap<Path, Vec<u8>>,
    /// Source files that other processes linked to a target path, by that path.
    linked: BTreeMap<Path, usize>,
    /// Contents that other processes put at target paths.
    foreign: BTreeMap<Path, Vec<Vec<u8>>>,
    made: u32,
    pub(super) log: Vec<String>,
}

pub(super) type Shared = Arc<Mutex<Shadow>>;

pub(super) fn folder_of(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..at])
}

pub(super) fn bytes_of(node: &Node) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(node.content.size()).unwrap()];
    node.content.read(0, &mut bytes);
    bytes
}

impl Shadow {
    /// Returns bytes that no other file or version has.
    pub(super) fn new_bytes(&mut self, size: usize) -> Vec<u8> {
        self.made += 1;
        let number = self.made;
        let mut bytes = Vec::with_capacity(size + 16);
        while bytes.len() < size {
            let record = format!("v{number:06}@{:07}\n", bytes.len());
            bytes.extend_from_slice(record.as_bytes());
        }
        bytes.truncate(size);
        bytes
    }

    /// Notes a source file that exists before the copy.
    pub(super) fn begin(&mut self, path: &str, bytes: Vec<u8>) {
        self.put(path, bytes);
        self.always.insert(path.to_owned());
    }

    /// Notes another name that a source file has before the copy.
    pub(super) fn link(&mut self, path: &str, other: &str) {
        self.join(path, other);
        self.always.insert(other.to_owned());
    }

    pub(super) fn share(self) -> Shared {
        Arc::new(Mutex::new(self))
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.now.keys()
    }

    pub(super) fn always_there(&self) -> impl Iterator<Item = &Path> {
        self.always.iter()
    }

    pub(super) fn is_always_there(&self, path: &str) -> bool {
        self.always.contains(path)
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.now.contains_key(path)
    }

    /// Notes that a source file was linked to its path in the target.
    pub(super) fn link_to_target(&mut self, path: &str) {
        self.linked.insert(path.to_owned(), self.now[path]);
    }

    /// Returns each source file as it is now. A file is left out if it was linked to the target and its source path is
    /// another file by now: the copy overwrites it there like any existing target, as cp does.
    pub(super) fn present(&self) -> impl Iterator<Item = (&Path, &[u8])> {
        let is_target = |object: usize| {
            self.linked.iter().any(|(path, &linked)| linked == object && self.now.get(path) != Some(&object))
        };
        let present = self.now.iter().filter(move |&(_, &object)| !is_target(object));
        present.filter_map(|(path, &object)| Some((path, &**self.objects[object].versions.last()?)))
    }

    /// Notes a new file at a source path.
    pub(super) fn put(&mut self, path: &str, bytes: Vec<u8>) {
        self.objects.push(Object { versions: vec![bytes], is_modified: false });
        self.set(path, self.objects.len() - 1);
    }

    /// Notes another name of a source file.
    pub(super) fn join(&mut self, path: &str, other: &str) {
        self.set(other, self.now[path]);
    }

    fn set(&mut self, path: &str, object: usize) {
        self.now.insert(path.to_owned(), object);
        self.ever.entry(path.to_owned()).or_default().insert(object);
    }

    /// Adds the version that a source file gets by a change in place.
    pub(super) fn modify(&mut self, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let object = &mut self.objects[self.now[path]];
        object.is_modified = true;
        let mut bytes = object.versions.last().cloned().unwrap_or_default();
        change(&mut bytes);
        object.versions.push(bytes);
    }

    /// Notes that a source name, or a folder with its contents, was removed.
    pub(super) fn remove(&mut self, path: &str) {
        let is_gone = |other: &Path| is_beneath(other.as_bytes(), path.as_bytes());
        self.now.retain(|other, _| !is_gone(other));
        self.always.retain(|other| !is_gone(other));
    }

    /// Notes a target file that nothing may change.
    pub(super) fn stand_by(&mut self, path: &str, bytes: Vec<u8>) {
        self.bystanders.insert(path.to_owned(), bytes);
    }

    /// Notes bytes that another process put at a target path; `None` if it removed the file.
    pub(super) fn meddle(&mut self, path: &str, bytes: Option<Vec<u8>>) {
        self.foreign.entry(path.to_owned()).or_default().extend(bytes);
    }

    /// Returns true if another process changed a target path or a folder above it.
    pub(super) fn is_touched(&self, path: &str) -> bool {
        self.foreign.keys().any(|touched| is_beneath(path.as_bytes(), touched.as_bytes()))
    }

    /// Returns true if another process put these bytes at a target path.
    pub(super) fn is_foreign(&self, path: &str, bytes: &[u8]) -> bool {
        self.foreign.get(path).is_some_and(|put| put.iter().any(|known| known == bytes))
    }

    /// Returns true if a source path had this content at some time of the run.
    pub(super) fn was_version(&self, path: &str, bytes: &[u8]) -> bool {
        let Some(objects) = self.ever.get(path) else { return false };
        objects.iter().any(|&object| self.objects[object].may_be_read_as(bytes))
    }

    /// Describes the file and version that bytes come from.
    pub(super) fn origin(&self, bytes: &[u8]) -> String {
        let whose = |object: usize| {
            self.ever.iter().filter(move |(_, objects)| objects.contains(&object)).map(|(path, _)| path)
        };
        let of = |(object, found): (usize, &Object)| {
            let is_of =
                found.versions.iter().any(|version| version.iter().zip(bytes).take(32).all(|(a, b)| a == b));
            is_of.then(|| {
                format!(
                    "begins as {:?}, of {} versions",
                    whose(object).collect::<Vec<_>>(),
                    found.versions.len()
                )
            })
        };
        let found: Vec<String> = self.objects.iter().enumerate().filter_map(of).collect();
        format!("{:?} {}", String::from_utf8_lossy(&bytes[..bytes.len().min(48)]), found.join("; "))
    }
}

impl Object {
    fn may_be_read_as(&self, bytes: &[u8]) -> bool {
        if !self.is_modified {
            return self.versions.iter().any(|version| version == bytes);
        }
        let is_of =
            |(at, byte): (usize, &u8)| self.versions.iter().any(|version| version.get(at) == Some(byte));
        bytes.iter().enumerate().all(is_of)
    }
}
