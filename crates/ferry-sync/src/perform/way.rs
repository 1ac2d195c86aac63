//! A way through two trees: pairs from the roots down to a folder.

use std::path::{Component, Path};

use ferry_copy::{Copier, Failure, FailureKind, OwnRunMark, Pair, RunMark};
use ferry_io::Name;

/// A stack of pairs.
pub(crate) struct Way<'a> {
    copier: &'a Copier,
    root: Pair,
    /// Paths of the roots, for failures.
    paths: (std::path::PathBuf, std::path::PathBuf),
    below: Vec<Step>,
    missing: Missing,
}

/// A pair on the way.
struct Step {
    name: Name,
    pair: Pair,
    /// Set if the target's folder keeps its attributes, whatever changes in it.
    is_kept: bool,
}

/// What becomes of folders that only the source has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// They can't be entered.
    Refuse,
    /// They can't be entered, and those that exist keep their attributes.
    Keep,
    /// They are made, and get their source's attributes, as do those that exist.
    Make,
    /// They are made; those that exist keep their attributes. Folders of the source are removed if they are empty in the
    /// end.
    Restore,
}

impl<'a> Way<'a> {
    pub(crate) fn new(
        copier: &'a Copier,
        root: Pair,
        paths: (std::path::PathBuf, std::path::PathBuf),
        missing: Missing,
    ) -> Self {
        Self { copier, root, paths, below: Vec::new(), missing }
    }

    /// Goes to a folder, and finishes those that it leaves. Returns `None` after a failure, which is reported.
    pub(crate) async fn go(&mut self, folder: &Path) -> Option<Pair> {
        let Some(names) = names(folder) else {
            self.fail(folder, FailureKind::Changed);
            return None;
        };
        let shared = self.below.iter().zip(&names).take_while(|(step, name)| step.name == **name).count();
        self.leave(shared).await;
        for name in &names[shared..] {
            let above = self.last();
            let step = match self.missing {
                Missing::Refuse => self.enter(&above, name, false).await,
                Missing::Keep => self.enter(&above, name, true).await,
                Missing::Make => self.make_in(&above, name).await,
                Missing::Restore => match self.copier.look(&above, name).await {
                    Ok((_, Some(_))) => self.enter(&above, name, true).await,
                    Ok((_, None)) => self.make_in(&above, name).await,
                    Err(kind) => {
                        self.copier.fail(&above, name, kind);
                        None
                    }
                },
            };
            self.below.push(step?);
        }
        Some(self.last())
    }

    async fn enter(&self, above: &Pair, name: &Name, is_kept: bool) -> Option<Step> {
        match self.copier.enter(above, name).await {
            Ok(pair) => Some(Step { name: name.clone(), pair, is_kept }),
            Err(kind) => {
                self.copier.fail(above, name, kind);
                None
            }
        }
    }

    async fn make_in(&self, above: &Pair, name: &Name) -> Option<Step> {
        // The folder above may have its final mode by now.
        self.copier.lend(above, false).await;
        let pair = self.copier.make(above, name).await?;
        Some(Step { name: name.clone(), pair, is_kept: false })
    }

    /// Makes a folder that is missing in the last one, and goes there.
    pub(crate) async fn make(&mut self, name: &Name) -> Option<Pair> {
        let pair = self.copier.make_new(&self.last(), name).await?;
        self.below.push(Step { name: name.clone(), pair: pair.clone(), is_kept: false });
        Some(pair)
    }

    fn last(&self) -> Pair {
        self.below.last().map_or(&self.root, |step| &step.pair).clone()
    }

    /// Notes that the target's root changes by other means than this way.
    pub(crate) fn touch_root(&self) {
        self.root.touch();
    }

    /// Lets the user change entries of the target's root until the way is finished.
    pub(crate) async fn lend_root(&self) {
        self.copier.lend(&self.root, false).await;
    }

    /// Marks the target's root as changed by this run.
    pub(super) async fn mark_run(&self) -> Option<OwnRunMark> {
        self.copier.mark_run(&self.root).await
    }

    /// Removes the mark of this run, and those of others that mean nothing any more.
    pub(super) async fn unmark_run(&self, own: Option<OwnRunMark>, ended: &[RunMark]) {
        self.copier.unmark_run(&self.root, own, ended).await;
    }

    /// Finishes the pairs behind the first `shared`, the deepest first.
    pub(super) async fn leave(&mut self, shared: usize) {
        while self.below.len() > shared
            && let Some(Step { name, pair, is_kept }) = self.below.pop()
        {
            match is_kept {
                true => self.copier.finish_bare(pair).await,
                false => self.copier.finish(pair).await,
            }
            if self.missing == Missing::Restore {
                self.copier.remove_if_empty(&self.last(), &name).await;
            }
        }
    }

    /// Finishes all pairs.
    pub(crate) async fn finish(mut self) {
        self.leave(0).await;
        match self.missing {
            Missing::Keep => self.copier.finish_bare(self.root).await,
            Missing::Refuse | Missing::Make | Missing::Restore => self.copier.finish(self.root).await,
        }
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
