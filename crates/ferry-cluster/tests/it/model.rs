//! A tree in memory, and the copy that ranks make of it.

use std::collections::{BTreeMap, BTreeSet};

use ferry_cluster::Text;
use ferry_tree::fill::SplitMix64;

/// An entry of a folder that is no folder.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) name: Text,
    pub(crate) size: u64,
    /// Inode number; several names have the same.
    pub(crate) inode: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Folder {
    pub(crate) folders: Vec<Text>,
    pub(crate) files: Vec<File>,
}

/// The source.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) folders: BTreeMap<Text, Folder>,
    /// Number of names of each file.
    pub(crate) links: BTreeMap<u64, u64>,
}

impl Model {
    /// Returns a random tree: wide, deep or with one huge folder, with large files and names of one file.
    pub(crate) fn random(seed: u64, large: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut model = Self::default();
        model.folders.insert(Text::default(), Folder::default());
        let mut paths = vec![Text::default()];
        let folders = 1 + random.below(40);
        let is_deep = random.percent(30);
        for number in 0..folders {
            let at = if is_deep { paths.len() - 1 } else { random.index(paths.len()) };
            let name = Text::from(format!("d{number}").as_bytes());
            let path = paths[at].join(&name);
            model.folders.get_mut(&paths[at]).unwrap().folders.push(name);
            model.folders.insert(path.clone(), Folder::default());
            paths.push(path);
        }
        let huge = random.percent(40).then(|| random.index(paths.len()));
        let files = random.below(120);
        let mut inodes: Vec<u64> = Vec::new();
        for number in 0..files {
            let at = huge.filter(|_| random.percent(70)).unwrap_or_else(|| random.index(paths.len()));
            let size = if random.percent(8) { large + random.below(8 * large) } else { random.below(large) };
            let inode = match inodes.is_empty() || random.percent(80) {
                true => number + 1,
                false => inodes[random.index(inodes.len())],
            };
            inodes.push(inode);
            *model.links.entry(inode).or_default() += 1;
            // Names of one file have one size.
            let size = model.sizes().get(&inode).copied().unwrap_or(size);
            let name = Text::from(format!("f{number}").as_bytes());
            model.folders.get_mut(&paths[at]).unwrap().files.push(File { name, size, inode });
        }
        model
    }

    /// Returns a folder with many files, of which each fifth is large.
    pub(crate) fn wide(seed: u64, large: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut model = Self::default();
        let files = (1..=100).map(|inode| {
            let size = if inode % 5 == 0 { large + random.below(3 * large) } else { random.below(large) };
            File { name: Text::from(format!("f{inode}").as_bytes()), size, inode }
        });
        let folder = Folder { folders: Vec::new(), files: files.collect() };
        model.links.extend(folder.files.iter().map(|file| (file.inode, 1)));
        model.folders.insert(Text::default(), folder);
        model
    }

    fn sizes(&self) -> BTreeMap<u64, u64> {
        let files = self.folders.values().flat_map(|folder| &folder.files);
        files.map(|file| (file.inode, file.size)).collect()
    }
}

/// The target.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    /// Folders that were made.
    pub(crate) made: BTreeSet<Text>,
    /// Folders that have their attributes.
    pub(crate) finished: BTreeSet<Text>,
    /// Number of times that each file was copied.
    pub(crate) files: BTreeMap<Text, u64>,
    /// Large files of which a range failed.
    pub(crate) failed: BTreeSet<Text>,
    /// Links, and what they are linked to.
    pub(crate) links: BTreeMap<Text, Text>,
    /// Bytes of large files that were copied, by offset.
    pub(crate) ranges: BTreeMap<Text, BTreeMap<u64, u64>>,
    /// Large files that have a part.
    pub(crate) parts: BTreeSet<Text>,
    /// Number of times that each range was copied.
    pub(crate) range_copies: BTreeMap<(Text, u64), u64>,
    /// Number of times that each folder was listed.
    pub(crate) listed: BTreeMap<Text, u64>,
}

impl Copied {
    /// Returns true if a name is there.
    pub(crate) fn has(&self, path: &Text) -> bool {
        self.files.contains_key(path) || self.links.contains_key(path) || self.failed.contains(path)
    }

    /// Removes the part of a file, and with it the bytes.
    pub(crate) fn lose(&mut self, path: &Text) {
        self.parts.remove(path);
        self.ranges.remove(path);
    }

    /// Sets a folder's attributes, after which nothing may change in it.
    pub(crate) fn finish(&mut self, model: &Model, path: &Text) {
        let folder = &model.folders[path];
        for name in &folder.folders {
            assert!(self.finished.contains(&path.join(name)), "{path:?} was finished before {name:?} in it");
        }
        for file in &folder.files {
            assert!(self.has(&path.join(&file.name)), "{path:?} was finished before {:?}", file.name);
        }
        self.finished.insert(path.clone());
    }

    /// Notes that something is made in a folder.
    pub(crate) fn touch(&self, folder: &Text) {
        assert!(self.made.contains(folder), "{folder:?} was not made");
        assert!(!self.finished.contains(folder), "{folder:?} has changed after it was finished");
    }

    /// Compares the copy with its source.
    pub(crate) fn check(&self, model: &Model) {
        for (path, folder) in &model.folders {
            assert!(self.finished.contains(path), "{path:?} has no attributes");
            for file in &folder.files {
                let path = path.join(&file.name);
                assert!(self.has(&path), "{path:?} was not copied");
            }
        }
        let mut owners: BTreeMap<u64, Text> = BTreeMap::new();
        for (path, folder) in &model.folders {
            for file in &folder.files {
                let path = path.join(&file.name);
                if self.failed.contains(&path) {
                    continue;
                }
                let first = self.links.get(&path).unwrap_or(&path);
                assert!(self.files.contains_key(first), "{path:?} is linked to {first:?}, which is no copy");
                let owner = owners.entry(file.inode).or_insert_with(|| first.clone());
                assert_eq!(owner, first, "the names of {} have several copies", file.inode);
            }
        }
    }
}
