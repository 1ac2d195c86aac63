//! A folder being copied: its parent, its pending work, and its two descriptors.
//!
//! A node lives as long as something beneath it is being copied. Its descriptors may be closed meanwhile when too many
//! are open. They are opened again relative to the parent, links not followed, and must then be the same folders
//! (device and inode number) as before. Nothing here recurses: trees may be thousands of levels deep.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use ferry_io::{Dir, Errno, Error, Name, Operation, Result, Semaphore, Stat, Xattr};

use crate::abilities::Abilities;
use crate::identity::{Identity, identity};
use crate::mutex::lock;
use crate::staging::names::Mark;

/// Start of the walk: two folders opened by path, as the user named them.
pub(crate) struct Root {
    pub(crate) source: Dir,
    pub(crate) target: Dir,
    pub(crate) source_path: PathBuf,
    pub(crate) target_path: PathBuf,
}

/// A folder's descriptors.
#[derive(Clone)]
pub(crate) struct Dirs {
    pub(crate) source: Dir,
    pub(crate) target: Dir,
}

/// Paths of a source and of its target.
pub(crate) struct PathPair {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
}

enum Origin {
    Root(Root),
    Beneath {
        parent: Arc<Folder>,
        source: Option<Name>,
        target: Option<Name>,
        follow: bool,
    },
    /// Beneath another in the target only (`--parents`): the source was opened by a path of its own. Without a name the
    /// target is the parent's own.
    Apart {
        parent: Arc<Folder>,
        source: Dir,
        source_path: PathBuf,
        target: Option<Name>,
        target_path: PathBuf,
    },
}

/// Facts about a folder whose source is open and whose target exists.
pub(crate) struct Facts {
    pub(crate) source: Stat,
    pub(crate) target: Identity,
    /// Extended attributes of the source, if they are kept.
    pub(crate) xattrs: Vec<Xattr>,
    /// Set if this run made the target.
    pub(crate) is_new: bool,
    /// Set if new entries of the target inherit a default ACL.
    pub(crate) gives_acl: bool,
    /// Owner and group of new files in the target, if they are certain.
    pub(crate) gives_owner: Option<(u32, u32)>,
    /// Set if the target's name is a link that is followed.
    pub(crate) follows: bool,
    /// Owner's permissions that the target has only until it is filled.
    pub(crate) lent: u32,
}

/// One folder.
pub(crate) struct Folder {
    origin: Option<Origin>,
    facts: OnceLock<Facts>,
    abilities: OnceLock<Arc<Abilities>>,
    open: Mutex<Option<Dirs>>,
    used: AtomicBool,
    /// Number of unfinished tasks: its listing, chunks being copied, folders in it.
    pending: AtomicUsize,
    pub(crate) role: Role,
    /// Set if the next folder on the way to an operand was made.
    pub(crate) leads_to_new: AtomicBool,
    /// Set if another process of this job has made the target.
    pub(crate) is_made: AtomicBool,
    /// Set while nothing in it has changed: its target's attributes then stay.
    pub(crate) is_untouched: AtomicBool,
    /// Folder that replaced and removed entries are moved to.
    pub(crate) trash: Mutex<Option<Dir>>,
    /// Names of the target's entries that killed runs have left aside.
    pub(crate) asides: Mutex<Vec<Name>>,
    /// Marks of the target's files that killed runs have overwritten in part.
    pub(crate) marks: Mutex<Vec<Mark>>,
    /// Modes to be given back when it is finished.
    pub(crate) lent: Mutex<Lent>,
    /// Set if the way to an operand ended before it: new folders then stay as they were made.
    pub(crate) is_cut_short: AtomicBool,
}

/// Modes of a folder's two sides before their owner was given the permission to change them; `None` for a side that has
/// its own mode.
#[derive(Default)]
pub(crate) struct Lent {
    pub(crate) source: Option<u32>,
    pub(crate) target: Option<u32>,
    /// Set once the mode was looked at.
    source_is_asked: bool,
    target_is_asked: bool,
}

impl Lent {
    /// Returns the sides whose modes are to be looked at: those that were not asked before, of the source only if it is
    /// wanted.
    pub(crate) fn ask(&mut self, and_source: bool) -> (bool, bool) {
        let asks_source = and_source && !std::mem::replace(&mut self.source_is_asked, true);
        (asks_source, !std::mem::replace(&mut self.target_is_asked, true))
    }
}

/// Role of a folder in the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Start of the walk: opened by path, and not copied itself.
    Root,
    /// On the way to an operand (`--parents`): copied without its entries.
    Way,
    /// An operand.
    Operand,
    /// Found in another folder.
    Inner,
    /// Found in another folder by a caller that saw no target: one that is there by now stays as it is.
    New,
}

impl Folder {
    pub(crate) fn root(root: Root) -> Arc<Self> {
        let open = Some(Dirs { source: root.source.clone(), target: root.target.clone() });
        Arc::new(Self {
            origin: Some(Origin::Root(root)),
            facts: OnceLock::new(),
            abilities: OnceLock::new(),
            open: Mutex::new(open),
            used: AtomicBool::new(false),
            pending: AtomicUsize::new(1),
            role: Role::Root,
            leads_to_new: AtomicBool::new(false),
            is_made: AtomicBool::new(false),
            is_cut_short: AtomicBool::new(false),
            is_untouched: AtomicBool::new(false),
            trash: Mutex::default(),
            asides: Mutex::default(),
            marks: Mutex::default(),
            lent: Mutex::default(),
        })
    }

    /// Returns a folder in `parent`, which has one more pending task. Without a name it is the parent's own.
    pub(crate) fn beneath(
        parent: &Arc<Self>,
        source: Option<Name>,
        target: Option<Name>,
        follow: bool,
        role: Role,
    ) -> Arc<Self> {
        let parent = Arc::clone(parent);
        Self::of(Origin::Beneath { parent, source, target, follow }, role)
    }

    /// Returns a folder in `parent` whose source was opened by a path of its own.
    pub(crate) fn apart(
        parent: &Arc<Self>,
        source: Dir,
        target: Name,
        paths: PathPair,
        role: Role,
    ) -> Arc<Self> {
        let (parent, target) = (Arc::clone(parent), Some(target));
        let PathPair { source: source_path, target: target_path } = paths;
        Self::of(Origin::Apart { parent, source, source_path, target, target_path }, role)
    }

    /// Returns a folder on the way once more, as `.` or `..` names it: perhaps with another source, and other paths. It
    /// stays open, and gets no attributes.
    pub(crate) fn again(folder: &Arc<Self>, dirs: Dirs, paths: PathPair) -> Arc<Self> {
        let origin = Origin::Apart {
            parent: Arc::clone(folder),
            source: dirs.source.clone(),
            source_path: paths.source,
            target: None,
            target_path: paths.target,
        };
        let again = Self::of(origin, Role::Root);
        *lock(&again.open) = Some(dirs);
        if let Some(abilities) = folder.abilities() {
            again.set_abilities(Arc::clone(abilities));
        }
        again
    }

    /// Returns the folder that this one names once more, or itself.
    pub(crate) fn once(self: &Arc<Self>) -> &Arc<Self> {
        match self.parent() {
            Some(parent) if self.role == Role::Root => parent,
            Some(_) | None => self,
        }
    }

    fn of(origin: Origin, role: Role) -> Arc<Self> {
        if let Origin::Beneath { parent, .. } | Origin::Apart { parent, .. } = &origin {
            parent.begin();
        }
        Arc::new(Self {
            role,
            leads_to_new: AtomicBool::new(false),
            is_made: AtomicBool::new(false),
            is_cut_short: AtomicBool::new(false),
            is_untouched: AtomicBool::new(false),
            trash: Mutex::default(),
            asides: Mutex::default(),
            marks: Mutex::default(),
            lent: Mutex::default(),
            origin: Some(origin),
            facts: OnceLock::new(),
            abilities: OnceLock::new(),
            open: Mutex::new(None),
            used: AtomicBool::new(false),
            pending: AtomicUsize::new(1),
        })
    }

    /// Notes that the way through this folder goes no further.
    pub(crate) fn cut_short(&self) {
        self.is_cut_short.store(true, Ordering::Relaxed);
        let mut at = self.parent();
        while let Some(above) = at {
            above.is_cut_short.store(true, Ordering::Relaxed);
            at = above.parent();
        }
    }

    pub(crate) fn parent(&self) -> Option<&Arc<Self>> {
        match &self.origin {
            Some(Origin::Beneath { parent, .. } | Origin::Apart { parent, .. }) => Some(parent),
            Some(Origin::Root(_)) | None => None,
        }
    }

    pub(crate) fn source_name(&self) -> Option<&Name> {
        match &self.origin {
            Some(Origin::Beneath { source, .. }) => source.as_ref(),
            Some(Origin::Apart { .. } | Origin::Root(_)) | None => None,
        }
    }

    pub(crate) fn target_name(&self) -> Option<&Name> {
        match &self.origin {
            Some(Origin::Beneath { target, .. }) => target.as_ref(),
            Some(Origin::Apart { target, .. }) => target.as_ref(),
            Some(Origin::Root(_)) | None => None,
        }
    }

    /// The source, if it was opened by a path of its own.
    pub(crate) fn given_source(&self) -> Option<&Dir> {
        match &self.origin {
            Some(Origin::Apart { source, .. }) => Some(source),
            Some(Origin::Beneath { .. } | Origin::Root(_)) | None => None,
        }
    }

    /// Returns true if its name is a link to be followed (`-L`, or `-H` for an operand).
    pub(crate) fn follows(&self) -> bool {
        matches!(&self.origin, Some(Origin::Beneath { follow: true, .. }))
    }

    pub(crate) fn facts(&self) -> Option<&Facts> {
        self.facts.get()
    }

    /// Abilities of its filesystems, once it has been opened.
    pub(crate) fn abilities(&self) -> Option<&Arc<Abilities>> {
        self.abilities.get()
    }

    pub(crate) fn set_abilities(&self, abilities: Arc<Abilities>) {
        // One fiber alone opens it.
        self.abilities.set(abilities).ok();
    }

    /// Notes the facts found by opening it, and its descriptors.
    pub(crate) fn open_with(&self, facts: Facts, dirs: Dirs) {
        if self.facts.set(facts).is_ok() {
            *lock(&self.open) = Some(dirs);
        }
    }

    /// Adds a pending task.
    pub(crate) fn begin(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends a pending task. Returns true if it was the last.
    pub(crate) fn end(&self) -> bool {
        self.pending.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(crate) fn close(&self) {
        if self.parent().is_some() {
            *lock(&self.open) = None;
        }
    }

    pub(crate) fn source_path(&self) -> PathBuf {
        self.path(
            |origin| match origin {
                Origin::Root(root) => Some(&root.source_path),
                Origin::Apart { source_path, .. } => Some(source_path),
                Origin::Beneath { .. } => None,
            },
            Self::source_name,
        )
    }

    pub(crate) fn target_path(&self) -> PathBuf {
        self.path(
            |origin| match origin {
                Origin::Root(root) => Some(&root.target_path),
                Origin::Apart { target_path, .. } => Some(target_path),
                Origin::Beneath { .. } => None,
            },
            Self::target_name,
        )
    }

    /// Joins the names from the nearest known path down to this folder.
    fn path(
        &self,
        known: impl Fn(&Origin) -> Option<&PathBuf>,
        name: impl Fn(&Self) -> Option<&Name>,
    ) -> PathBuf {
        let mut names: Vec<Option<&Name>> = Vec::new();
        let mut at = self;
        loop {
            if let Some(path) = at.origin.as_ref().and_then(&known) {
                let below = names.into_iter().rev().flatten();
                return below.fold(path.clone(), |path, name| path.join(name.as_os_str()));
            }
            names.push(name(at));
            let Some(parent) = at.parent() else { return PathBuf::new() };
            at = parent;
        }
    }

    fn opened(&self) -> Option<Dirs> {
        self.used.store(true, Ordering::Relaxed);
        lock(&self.open).clone()
    }

    /// Returns its two descriptors, opened again if they were closed.
    ///
    /// # Errors
    /// The kernel's, and ESTALE if a folder of that name is no longer the one it was.
    pub(crate) async fn dirs(self: &Arc<Self>, open_folders: &OpenFolders) -> Result<Dirs> {
        match self.opened() {
            Some(dirs) => Ok(dirs),
            None => Box::pin(self.open_again(open_folders)).await,
        }
    }

    /// One fiber at a time reopens: the others then find the folder open.
    async fn open_again(self: &Arc<Self>, open_folders: &OpenFolders) -> Result<Dirs> {
        let _turn = open_folders.opening.acquire().await?;
        if let Some(dirs) = self.opened() {
            return Ok(dirs);
        }
        // Up to the nearest open folder, then down again.
        let mut closed = vec![Arc::clone(self)];
        let mut dirs = loop {
            let Some(parent) = closed.last().and_then(|folder| folder.parent()) else {
                return Err(stale());
            };
            if let Some(dirs) = parent.opened() {
                break dirs;
            }
            let parent = Arc::clone(parent);
            closed.push(parent);
        };
        let levels = closed.len();
        while let Some(folder) = closed.pop() {
            dirs = folder.reopen(&dirs).await?;
            if stays_open(closed.len(), levels) {
                *lock(&folder.open) = Some(dirs.clone());
                open_folders.add(&folder);
            }
        }
        Ok(dirs)
    }

    async fn reopen(&self, above: &Dirs) -> Result<Dirs> {
        let facts = self.facts().ok_or_else(stale)?;
        let source = match (self.given_source(), self.source_name()) {
            (Some(given), _) => given.clone(),
            (None, Some(name)) if self.follows() => above.source.open_dir_following(name).await?,
            (None, Some(name)) => above.source.open_dir(name).await?,
            (None, None) => above.source.clone(),
        };
        let target = match self.target_name() {
            Some(name) => open_target(&above.target, name, facts.follows).await?,
            None => above.target.clone(),
        };
        let same = identity(&source.stat().await?) == identity(&facts.source)
            && identity(&target.stat().await?) == facts.target;
        if same { Ok(Dirs { source, target }) } else { Err(stale()) }
    }
}

/// Returns true if a reopened folder stays open, `left` levels above the wanted one, of `levels` reopened.
///
/// The wanted one stays, and those at a quarter of the way, a sixteenth and so on. A fiber that then goes up, finishing
/// one after another, opens each a few times only. If all stayed open, the last few would evict the others, which would
/// be opened once for each folder above them: 10 s for 2,500 levels with 64 descriptors.
fn stays_open(left: usize, levels: usize) -> bool {
    let quarters = std::iter::successors(Some(levels / 4), |&at| Some(at / 4));
    left == 0 || quarters.take_while(|&at| at > 0).any(|at| at == left)
}

/// Opens a folder of the target; one that may be searched but not listed is opened only to be reached.
pub(crate) async fn open_target(parent: &Dir, name: &Name, follow: bool) -> Result<Dir> {
    let opened = if follow { parent.open_dir_following(name).await } else { parent.open_dir(name).await };
    match opened {
        Err(error) if error.is(Errno::ACCESS) => parent.reach_dir(name, follow).await,
        answer => answer,
    }
}

fn stale() -> Error {
    Error { operation: Operation::Open, cause: ferry_io::Cause::Errno(Errno::STALE) }
}

impl Drop for Folder {
    /// Drops parents that only this one kept alive in a loop: recursion over thousands would overflow the stack.
    fn drop(&mut self) {
        let mut origin = self.origin.take();
        while let Some(Origin::Beneath { parent, .. } | Origin::Apart { parent, .. }) = origin {
            match Arc::into_inner(parent) {
                Some(mut parent) => origin = parent.origin.take(),
                None => return,
            }
        }
    }
}

/// Folders with open descriptors, up to a bound; those not used lately are closed first.
pub(crate) struct OpenFolders {
    queue: Mutex<VecDeque<Weak<Folder>>>,
    most: usize,
    /// Held while folders are opened again.
    opening: Semaphore,
}

impl OpenFolders {
    pub(crate) fn new(most: usize) -> Self {
        Self { queue: Mutex::default(), most, opening: Semaphore::new(1) }
    }

    /// Counts an open folder, and closes others if there are too many.
    pub(crate) fn add(&self, folder: &Arc<Folder>) {
        let mut queue = lock(&self.queue);
        queue.push_back(Arc::downgrade(folder));
        if queue.len() > self.most {
            // Finished and closed ones give way first.
            queue.retain(|folder| folder.upgrade().is_some_and(|folder| lock(&folder.open).is_some()));
        }
        // Ends, because each is passed over once at most.
        let mut looked_at = 0;
        while queue.len() > self.most {
            let Some(oldest) = queue.pop_front() else { return };
            let Some(folder) = oldest.upgrade() else { continue };
            looked_at += 1;
            let is_open = lock(&folder.open).is_some();
            if is_open && looked_at <= self.most && folder.used.swap(false, Ordering::Relaxed) {
                queue.push_back(oldest);
            } else if is_open {
                folder.close();
            }
        }
    }
}
