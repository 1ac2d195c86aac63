//! An observer that notes hashes and failures in a manifest.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use ferry_copy::{Copied, Explained, Failure, Hashed, Observer, PartNote, Question, Unfinished};

use super::collect::Manifest;

/// Passes everything on, and notes files by their paths below a root.
pub struct Noting {
    inner: Arc<dyn Observer>,
    manifest: Arc<Manifest>,
    root: PathBuf,
}

impl Noting {
    /// Returns an observer for the files below `root`, as the copier names it. If the root itself is a file, its path is
    /// its name.
    #[must_use]
    pub fn new(inner: Arc<dyn Observer>, manifest: Arc<Manifest>, root: PathBuf) -> Self {
        Self { inner, manifest, root }
    }
}

/// Returns a path below a root, without `.` and `..`; `None` if it leads elsewhere.
fn below(root: &Path, path: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix(root).ok()?;
    let mut below = PathBuf::new();
    for component in rest.components() {
        match component {
            Component::Normal(name) => below.push(name),
            Component::CurDir => {}
            Component::ParentDir if below.pop() => {}
            Component::ParentDir => return None,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    if below.as_os_str().is_empty() { root.file_name().map(PathBuf::from) } else { Some(below) }
}

impl Observer for Noting {
    fn hashed(&self, hashed: &Hashed<'_>) {
        if let Some(path) = below(&self.root, hashed.target) {
            self.manifest.add(&path, hashed.digest, hashed.stat);
        }
        self.inner.hashed(hashed);
    }

    fn failed(&self, failure: &Failure) {
        if let Some(path) = below(&self.root, &failure.target) {
            self.manifest.fail(&path);
        }
        self.inner.failed(failure);
    }

    fn copied(&self, copied: &Copied<'_>) {
        self.inner.copied(copied);
    }

    fn skipped(&self, target: &Path) {
        self.inner.skipped(target);
    }

    fn repeated(&self, source: &Path, is_folder: bool) {
        self.inner.repeated(source, is_folder);
    }

    fn removed(&self, target: &Path) {
        self.inner.removed(target);
    }

    fn taken_back(&self, backup: &Path, target: &Path) {
        self.inner.taken_back(backup, target);
    }

    fn agrees(&self, target: &Path, question: Question, is_over: &dyn Fn() -> bool) -> bool {
        self.inner.agrees(target, question, is_over)
    }

    fn explained(&self, explained: &Explained<'_>) {
        self.inner.explained(explained);
    }

    fn part(&self, note: &PartNote) {
        self.inner.part(note);
    }

    fn unfinished(&self, unfinished: &Unfinished) {
        self.inner.unfinished(unfinished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_below_the_root() {
        for (root, path, found) in [
            ("target", "target/a/b", Some("a/b")),
            ("target", "target", Some("target")),
            ("./name", "./name", Some("name")),
            ("target", "target/./a/../b", Some("b")),
            ("target", "other/a", None),
            ("target", "target/../x", None),
        ] {
            let below = below(Path::new(root), Path::new(path));
            assert_eq!(below.as_deref(), found.map(Path::new), "{root} {path}");
        }
    }
}
