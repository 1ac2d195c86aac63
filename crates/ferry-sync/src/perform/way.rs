//! A way through two trees: pairs from the roots down to a folder.

use std::path::{Component, Path};

use ferry_copy::{Copier, Failure, FailureKind, Pair};
use ferry_io::Name;

/// A stack of pairs.
pub(crate) struct Way<'a> {
    copier: &'a Copier,
    root: Pair,
    /// Paths of the roots, for failures.
    paths: (std::path::PathBuf, std::path::PathBuf),
    below: Vec<(Name, Pair)>,
    /// Set if missing folders of the target are made.
    makes: bool,
}

impl<'a> Way<'a> {
    pub(crate) fn new(
        copier: &'a Copier,
        root: Pair,
        paths: (std::path::PathBuf, std::path::PathBuf),
        makes: bool,
    ) -> Self {
        Self { copier, root, paths, below: Vec::new(), makes }
    }

    /// Goes to a folder, and finishes those that it leaves. Returns `None` after a failure, which is reported.
    pub(crate) async fn go(&mut self, folder: &Path) -> Option<Pair> {
        let Some(names) = names(folder) else {
            self.fail(folder, FailureKind::Changed);
            return None;
        };
        let shared = self.below.iter().zip(&names).take_while(|((at, _), name)| at == *name).count();
        self.leave(shared).await;
        for name in &names[shared..] {
            let above = self.last();
            let entered = if self.makes {
                self.copier.make(&above, name).await
            } else {
                match self.copier.enter(&above, name).await {
                    Ok(pair) => Some(pair),
                    Err(kind) => {
                        self.copier.fail(&above, name, kind);
                        None
                    }
                }
            };
            self.below.push((name.clone(), entered?));
        }
        Some(self.last())
    }

    /// Makes a folder in the last one and goes there.
    pub(crate) async fn make(&mut self, name: &Name) -> Option<Pair> {
        let pair = self.copier.make(&self.last(), name).await?;
        self.below.push((name.clone(), pair.clone()));
        Some(pair)
    }

    fn last(&self) -> Pair {
        self.below.last().map_or(&self.root, |(_, pair)| pair).clone()
    }

    /// Notes that the target's root changes by other means than this way.
    pub(crate) fn touch_root(&self) {
        self.root.touch();
    }

    /// Finishes the pairs behind the first `shared`, the deepest first.
    pub(super) async fn leave(&mut self, shared: usize) {
        while self.below.len() > shared
            && let Some((_, pair)) = self.below.pop()
        {
            self.copier.finish(pair).await;
        }
    }

    /// Finishes all pairs.
    pub(crate) async fn finish(mut self) {
        self.leave(0).await;
        self.copier.finish(self.root).await;
    }

    /// Finishes all pairs, but leaves the root's attributes to another way.
    pub(crate) async fn finish_below(mut self) {
        self.leave(0).await;
        self.copier.finish_bare(self.root).await;
    }

    /// Reports a failure of the roots.
    pub(crate) fn fail_root(&self, kind: FailureKind) {
        self.fail(Path::new(""), kind);
    }

    fn fail(&self, path: &Path, kind: FailureKind) {
        let (source, target) = (self.paths.0.join(path), self.paths.1.join(path));
        self.copier.fail_at(Failure { source, target, kind });
    }
}

/// Returns the components of a path below the roots; `None` if it leads elsewhere.
pub(crate) fn names(path: &Path) -> Option<Vec<Name>> {
    let name = |component| match component {
        Component::Normal(name) => Name::new(name.as_encoded_bytes()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    };
    path.components().map(name).collect()
}
