//! Open folders of both trees, by their paths: those of the tasks being performed, those above them, and a few that were
//! used last.
//!
//! Folders that are left keep their attributes: other ranks may still work in them. They get the source's by a task of
//! their own, once nothing is left in them.
//!
//! Bound: the folders of the tasks in flight and `KEPT` more, each with those above it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use ferry_cluster::Text;
use ferry_copy::{Copier, FailureKind, Listing, Pair};
use ferry_io::{Dir, Errno, FileKind, Name, Stat};

/// Folders kept open that no task uses.
const KEPT: usize = 32;

/// The open folders.
pub(super) struct Way<'a> {
    copier: &'a Copier,
    /// Set if existing folders of the target stay as they are.
    keeps_existing: bool,
    open: RefCell<HashMap<Text, Open>>,
    /// Number of uses so far.
    uses: Cell<u64>,
}

struct Open {
    pair: Pair,
    /// Tasks that use it, and open folders in it.
    users: usize,
    /// The last use.
    used: u64,
}

/// A folder in use.
pub(super) struct Visit<'way, 'a> {
    way: &'way Way<'a>,
    path: Text,
    pair: Pair,
}

impl Deref for Visit<'_, '_> {
    type Target = Pair;

    fn deref(&self) -> &Pair {
        &self.pair
    }
}

impl Drop for Visit<'_, '_> {
    fn drop(&mut self) {
        self.way.release(&self.path);
    }
}

/// Returns a path below the roots.
pub(super) fn path(text: &Text) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(text.as_bytes()))
}

/// Returns false if a folder has no entry of this name.
pub(super) async fn may_hold(folder: &Dir, name: &Name) -> bool {
    !folder.stat_entry(name, false).await.is_err_and(|error| error.is(Errno::NOENT))
}

/// Returns the path of the folder above, and the last name; `None` for the root.
fn split(path: &Text) -> Option<(Text, &[u8])> {
    if path.is_empty() {
        return None;
    }
    let bytes = path.as_bytes();
    let slash = bytes.iter().rposition(|&byte| byte == b'/');
    Some(match slash {
        Some(at) => (Text::from(&bytes[..at]), &bytes[at + 1..]),
        None => (Text::default(), bytes),
    })
}

impl<'a> Way<'a> {
    pub(super) fn new(copier: &'a Copier, root: Pair, keeps_existing: bool) -> Self {
        let root = Open { pair: root, users: 0, used: 0 };
        let open = RefCell::new(HashMap::from([(Text::default(), root)]));
        Self { copier, keeps_existing, open, uses: Cell::new(0) }
    }

    /// Opens a folder; it is made if the target lacks it. Returns `None` after a failure, which is reported, and for a folder that
    /// is left to `ferry sync`.
    async fn make(&self, above: &Pair, name: &Name) -> Option<Pair> {
        if !self.keeps_existing {
            return self.copier.make(above, name).await;
        }
        // Another rank may make it at the same time.
        for _ in 0..2 {
            let is_folder = |stat: &Stat| stat.kind == FileKind::Directory;
            match self.copier.look(above, name).await {
                Ok((Some(source), None)) if is_folder(&source) => {
                    if let Some(pair) = self.copier.make_new(above, name).await {
                        return Some(pair);
                    }
                }
                Ok((Some(source), Some(target))) if is_folder(&source) && is_folder(&target) => {
                    let entered = self.copier.enter(above, name).await;
                    return entered.map_err(|kind| self.copier.fail(above, name, kind)).ok();
                }
                Ok(_) => return None,
                Err(kind) => {
                    self.copier.fail(above, name, kind);
                    return None;
                }
            }
        }
        None
    }

    /// Returns false if the source folder of a path has no entry of this name.
    pub(super) async fn source_may_hold(&self, path: &Text, name: &Name) -> bool {
        let Some((above, folder)) = split(path) else { return false };
        let (Some(above), Some(folder)) = (self.go(&above).await, Name::new(folder)) else { return true };
        let Ok((source, _)) = self.copier.folders(&above).await else { return true };
        match source.open_dir(&folder).await {
            Ok(source) => may_hold(&source, name).await,
            Err(_) => true,
        }
    }

    /// Goes to a folder. Returns `None` after a failure, which is reported.
    pub(super) async fn go<'way>(&'way self, path: &Text) -> Option<Visit<'way, 'a>> {
        let mut missing = Vec::new();
        let mut at = path.clone();
        let mut visit = loop {
            if let Some(visit) = self.visit(&at) {
                break visit;
            }
            let (above, name) = split(&at)?;
            missing.push(Name::new(name)?);
            at = above;
        };
        for name in missing.iter().rev() {
            let inner = visit.path.join(&Text::from(name.as_bytes()));
            visit = match self.visit(&inner) {
                Some(visit) => visit,
                None => {
                    let pair = self.make(&visit, name).await?;
                    self.add(visit, inner, pair).await
                }
            };
        }
        self.shed(KEPT).await;
        Some(visit)
    }

    /// Goes to a folder that is to be listed. Returns `None` after a failure, which is reported.
    pub(super) async fn list<'way>(
        &'way self,
        path: &Text,
    ) -> Option<(Visit<'way, 'a>, Result<Listing, FailureKind>)> {
        if let Some(visit) = self.visit(path) {
            let listing = self.copier.list(&visit).await;
            return Some((visit, listing));
        }
        let (above, name) = split(path)?;
        let above = self.go(&above).await?;
        if self.keeps_existing {
            let pair = self.make(&above, &Name::new(name)?).await?;
            let visit = self.add(above, path.clone(), pair).await;
            let listing = self.copier.list(&visit).await;
            return Some((visit, listing));
        }
        let (pair, listing) = self.copier.make_listed(&above, &Name::new(name)?).await?;
        Some((self.add(above, path.clone(), pair).await, Ok(listing)))
    }

    /// Sets the attributes of a folder, and closes it. `is_new` is set if a rank is known to have made it. `before` comes first. Where existing folders stay, only those get
    /// attributes that this job has made.
    pub(super) async fn finish(&self, path: &Text, is_new: bool, before: impl AsyncFnOnce(&Pair)) {
        self.leave_below(path).await;
        let (pair, _above) = match self.take(path) {
            Some(pair) => (pair, None),
            // It is not open, or another task uses it: a pair of its own gets the attributes.
            None => {
                let Some((above, name)) = split(path) else { return };
                let (Some(above), Some(name)) = (self.go(&above).await, Name::new(name)) else { return };
                let Some(pair) = self.make(&above, &name).await else { return };
                (pair, Some(above))
            }
        };
        before(&pair).await;
        if self.keeps_existing && !pair.is_new() {
            self.copier.finish_bare(pair).await;
            return;
        }
        pair.touch();
        if is_new {
            pair.note_made();
        }
        self.copier.finish(pair).await;
    }

    /// Closes all folders.
    pub(super) async fn end(self) {
        self.shed(0).await;
        if let Some(root) = self.take(&Text::default()) {
            self.copier.finish_bare(root).await;
        }
    }

    fn visit(&self, path: &Text) -> Option<Visit<'_, 'a>> {
        let mut folders = self.open.borrow_mut();
        let open = folders.get_mut(path)?;
        open.users += 1;
        open.used = self.uses.replace(self.uses.get() + 1);
        Some(Visit { way: self, path: path.clone(), pair: open.pair.clone() })
    }

    fn release(&self, path: &Text) {
        if let Some(open) = self.open.borrow_mut().get_mut(path) {
            open.users -= 1;
            open.used = self.uses.replace(self.uses.get() + 1);
        }
    }

    /// Adds a folder in `above`. If another task has opened it meanwhile, that pair is used.
    async fn add<'way>(&'way self, above: Visit<'way, 'a>, path: Text, pair: Pair) -> Visit<'way, 'a> {
        if let Some(visit) = self.visit(&path) {
            self.copier.finish_bare(pair).await;
            return visit;
        }
        let used = self.uses.replace(self.uses.get() + 1);
        self.open.borrow_mut().insert(path.clone(), Open { pair: pair.clone(), users: 1, used });
        // The folder above is in use as long as this one is open.
        if let Some(open) = self.open.borrow_mut().get_mut(&above.path) {
            open.users += 1;
        }
        Visit { way: self, path, pair }
    }

    /// Removes a folder that nobody uses, and returns its pair.
    fn take(&self, path: &Text) -> Option<Pair> {
        let mut folders = self.open.borrow_mut();
        if folders.get(path)?.users > 0 {
            return None;
        }
        let open = folders.remove(path)?;
        if let Some((above, _)) = split(path)
            && let Some(above) = folders.get_mut(&above)
        {
            above.users -= 1;
        }
        Some(open.pair)
    }

    /// Closes the unused folders beneath a folder.
    async fn leave_below(&self, path: &Text) {
        let is_below = |other: &Text| {
            let (above, other) = (path.as_bytes(), other.as_bytes());
            !other.is_empty()
                && (above.is_empty() || other.starts_with(above) && other.get(above.len()) == Some(&b'/'))
        };
        while let Some(pair) = self.take_oldest(&is_below, 0) {
            self.copier.finish_bare(pair).await;
        }
    }

    /// Closes unused folders until only `most` are left.
    async fn shed(&self, most: usize) {
        while let Some(pair) = self.take_oldest(&|path| !path.is_empty(), most) {
            self.copier.finish_bare(pair).await;
        }
    }

    /// Removes the folder that was left unused for the longest, if more than `most` of those that match are unused.
    fn take_oldest(&self, matches: &impl Fn(&Text) -> bool, most: usize) -> Option<Pair> {
        let oldest = {
            let folders = self.open.borrow();
            let unused = || folders.iter().filter(|(path, open)| open.users == 0 && matches(path));
            if unused().count() <= most {
                return None;
            }
            unused().min_by_key(|(_, open)| open.used).map(|(path, _)| path.clone())
        };
        self.take(&oldest?)
    }
}
