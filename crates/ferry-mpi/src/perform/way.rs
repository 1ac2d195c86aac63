//! A way through both trees: pairs from the roots down to the folder of the last task.
//!
//! Folders that the way leaves keep their attributes: other ranks may still work in them. They get the source's by a task
//! of their own, once nothing is left in them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use ferry_cluster::Text;
use ferry_copy::{Copier, FailureKind, Listing, Pair};
use ferry_io::Name;

pub(super) struct Way<'a> {
    copier: &'a Copier,
    /// `None` once the root has its attributes.
    root: Option<Pair>,
    below: Vec<(Name, Pair)>,
}

/// Returns a path below the roots.
pub(super) fn path(text: &Text) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(text.as_bytes()))
}

/// Returns the names of a path below the roots; `None` if it leads elsewhere.
pub(super) fn names(path: &Text) -> Option<Vec<Name>> {
    if path.is_empty() {
        return Some(Vec::new());
    }
    path.as_bytes().split(|&byte| byte == b'/').map(Name::new).collect()
}

impl<'a> Way<'a> {
    pub(super) fn new(copier: &'a Copier, root: Pair) -> Self {
        Self { copier, root: Some(root), below: Vec::new() }
    }

    /// Goes to a folder. Returns `None` after a failure, which is reported.
    pub(super) async fn go(&mut self, path: &Text) -> Option<Pair> {
        self.go_along(&names(path)?).await
    }

    async fn go_along(&mut self, names: &[Name]) -> Option<Pair> {
        let shared = self.below.iter().zip(names).take_while(|((at, _), name)| at == *name).count();
        self.leave(shared).await;
        for name in &names[shared..] {
            let above = self.last()?;
            let pair = self.copier.make(&above, name).await?;
            self.below.push((name.clone(), pair));
        }
        self.last()
    }

    /// Goes to a folder that is to be listed. Returns `None` after a failure, which is reported.
    pub(super) async fn list(&mut self, path: &Text) -> Option<(Pair, Result<Listing, FailureKind>)> {
        let names = names(path)?;
        let Some((last, above)) = names.split_last() else {
            let root = self.go_along(&[]).await?;
            let listing = self.copier.list(&root).await;
            return Some((root, listing));
        };
        let above = self.go_along(above).await?;
        let (pair, listing) = self.copier.make_listed(&above, last).await?;
        self.below.push((last.clone(), pair.clone()));
        Some((pair, Ok(listing)))
    }

    /// Sets the attributes of the last folder, and leaves it.
    pub(super) async fn finish(&mut self) {
        let pair = match self.below.pop() {
            Some((_, pair)) => Some(pair),
            None => self.root.take(),
        };
        if let Some(pair) = pair {
            pair.touch();
            self.copier.finish(pair).await;
        }
    }

    fn last(&self) -> Option<Pair> {
        self.below.last().map(|(_, pair)| pair).or(self.root.as_ref()).cloned()
    }

    async fn leave(&mut self, shared: usize) {
        while self.below.len() > shared
            && let Some((_, pair)) = self.below.pop()
        {
            self.copier.finish_bare(pair).await;
        }
    }

    /// Leaves all folders.
    pub(super) async fn end(mut self) {
        self.leave(0).await;
        if let Some(root) = self.root.take() {
            self.copier.finish_bare(root).await;
        }
    }
}
