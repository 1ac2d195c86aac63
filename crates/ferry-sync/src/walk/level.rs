//! A folder of the walk: its two sides, and the rows of its names.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::LazyLock;

use ferry_copy::{FailureKind, Mark, RunMark, Verb, is_aside, is_cleared, is_hidden};
use ferry_io::{Dir, Entries, Entry, Name, Stat};

use super::examined::Examined;
use crate::list::{Group, InGroup};
use crate::merge::{InOrder, Merge, Row};
use crate::perform::{MARK, marks_trash};
use crate::select::{Folder, FolderRules};
use crate::sink::Planned;
use crate::sorted::{Sorted, Sorter};

/// Rows that are examined at a time.
pub(super) const ROWS: usize = 1_024;

/// Marks of a folder that count: as many as a run clears away (`staging/clear.rs` of ferry-copy).
const MOST_MARKS: usize = 256;

/// Name of the trash in the target's root. It is no part of either tree.
pub(crate) const TRASH: &[u8] = b".ferry-trash";

/// Folder of temporary files. The environment is looked through once.
static TEMPORARY: LazyLock<PathBuf> = LazyLock::new(std::env::temp_dir);

/// One side of a folder.
#[derive(Default)]
pub(super) struct Side {
    /// Identity; `None` if this side has no such folder.
    pub(super) identity: Option<(u64, u64)>,
    /// Its descriptor, unless it was closed because too many are open.
    pub(super) dir: Option<Dir>,
}

impl Side {
    pub(super) fn of(dir: Option<Dir>, stat: &Stat) -> Self {
        Self { identity: Some((stat.device, stat.inode)), dir }
    }
}

/// A folder whose entries are being examined.
pub(super) struct Level {
    /// Path below the two roots; empty for the roots.
    pub(super) path: PathBuf,
    pub(super) source: Side,
    pub(super) target: Side,
    rows: Merge<Names, Names>,
    /// Rows that were examined ahead, and come first.
    pub(super) ready: Option<(Vec<Row>, Vec<Examined>)>,
    pub(super) part: Part,
    /// Folders of the last rows, to be entered before the next.
    pub(super) folders: VecDeque<Descent>,
    /// Set if entries that the source lacks may be deleted.
    pub(super) may_delete: bool,
    /// Set if something in it stays although the folder itself was to go.
    pub(super) is_kept: bool,
    /// Action on the folder itself once everything in it is planned.
    pub(super) at_end: Option<Planned>,
    /// Patterns of the source's `.gitignore` here.
    pub(super) rules: Option<FolderRules>,
    /// Set if the source may have the entries that are deleted here: they are excluded.
    pub(super) is_excluded: bool,
    /// Set until the sink was told that killed runs have left entries in the target.
    pub(super) has_leftovers: bool,
}

/// Names of a folder that may take part.
pub(super) enum Part {
    /// All, and all beneath them.
    Everything,
    /// Those of a list, and the first that is left of them.
    Listed(Group, Option<InGroup>),
    Nothing,
}

impl Part {
    /// Returns the part that a group of a list stands for.
    pub(super) fn of(group: Option<Group>) -> std::io::Result<Self> {
        let Some(mut group) = group else { return Ok(Self::Nothing) };
        Ok(match group.next()? {
            Some(InGroup { name: None, .. }) => Self::Everything,
            first => Self::Listed(group, first),
        })
    }

    /// Returns true if a name takes part. Names before it that the folder lacks are added to `missing`, and so is this
    /// one, if it was asked for and the source lacks it.
    fn takes(&mut self, row: &Row, missing: &mut Vec<Name>) -> std::io::Result<bool> {
        let (group, first) = match self {
            Self::Everything => return Ok(true),
            Self::Nothing => return Ok(false),
            Self::Listed(group, first) => (group, first),
        };
        while let Some(InGroup { name: Some(name), is_asked_for }) = first {
            let order = name.as_bytes().cmp(row.name.as_bytes());
            if order.is_gt() {
                break;
            }
            if *is_asked_for && (order.is_lt() || row.source.is_none()) {
                missing.push(name.clone());
            }
            *first = group.next()?;
            if order.is_eq() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns a name that is left and was asked for.
    fn next_left(&mut self) -> std::io::Result<Option<Name>> {
        let Self::Listed(group, first) = self else { return Ok(None) };
        while let Some(InGroup { name, is_asked_for }) = first.take() {
            *first = group.next()?;
            if is_asked_for && name.is_some() {
                return Ok(name);
            }
        }
        Ok(None)
    }
}

/// Some of a level's rows.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) rows: Vec<Row>,
    /// Names that a list asks for and the source does not have.
    pub(super) missing: Vec<Name>,
    /// Rows that are not listed.
    pub(super) unlisted: Vec<Row>,
}

impl Rows {
    fn count(&self) -> usize {
        self.rows.len() + self.missing.len() + self.unlisted.len()
    }
}

/// A folder to be entered.
pub(super) struct Descent {
    pub(super) name: Name,
    pub(super) to: To,
}

/// Sides of a folder to be entered.
pub(super) enum To {
    /// Both, and then an action on the folder itself.
    Both(Option<Planned>),
    /// The source alone: the target is made by this action.
    New(Planned),
    /// The target alone: it is emptied, and then this action follows.
    Gone(Planned),
}

impl To {
    /// Returns whether the source has it, and whether the target has.
    pub(super) fn sides(&self) -> (bool, bool) {
        match self {
            Self::Both(_) => (true, true),
            Self::New(_) => (true, false),
            Self::Gone(_) => (false, true),
        }
    }
}

/// Names of one side in order.
pub(super) enum Names {
    None,
    Some(Sorted<Entry>),
}

impl InOrder for Names {
    type Error = std::io::Error;

    fn next_entry(&mut self) -> Result<Option<Entry>, Self::Error> {
        match self {
            Self::None => Ok(None),
            Self::Some(sorted) => sorted.next(),
        }
    }
}

/// Which folder is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Source,
    /// One that the target lacks: it is copied with everything in it, even if it is a trash.
    NewSource,
    Target,
    /// One that the source lacks.
    GoneTarget,
}

impl Which {
    fn is_target(self) -> bool {
        matches!(self, Self::Target | Self::GoneTarget)
    }
}

/// A folder with the names in it.
pub(super) struct Listed {
    /// `None` if it was closed again.
    pub(super) dir: Option<Dir>,
    pub(super) stat: Stat,
    /// Set if something is mounted there, and that matters.
    pub(super) is_mount_root: bool,
    names: Names,
    /// Error that ended the listing early.
    pub(super) error: Option<FailureKind>,
    /// Set if it is a trash.
    pub(super) is_trash: bool,
    /// Set if killed runs, or others that work there now, have left entries in it.
    pub(super) has_leftovers: bool,
    /// Marks of files that killed runs have overwritten in part.
    pub(super) marks: Vec<Mark>,
    /// Marks of killed runs, and of runs at work, in the target's root.
    pub(super) run_marks: Vec<RunMark>,
}

impl Listed {
    pub(super) fn identity(&self) -> (u64, u64) {
        (self.stat.device, self.stat.inode)
    }

    /// Finds out whether something is mounted there.
    pub(super) fn note_mount(&mut self) {
        self.is_mount_root = self.dir.as_ref().is_some_and(Dir::is_mount_root);
    }

    pub(super) fn take_names(&mut self) -> Names {
        std::mem::replace(&mut self.names, Names::None)
    }
}

impl Level {
    /// Returns the level of two listings, of which one may be missing.
    pub(super) fn new(
        path: PathBuf,
        source: Option<Listed>,
        target: Option<Listed>,
    ) -> std::io::Result<Self> {
        let has_leftovers = source.is_some() && target.as_ref().is_some_and(|target| target.has_leftovers);
        let mut target = target;
        let marks = target.as_mut().map(|target| std::mem::take(&mut target.marks)).unwrap_or_default();
        let split = |listed: Option<Listed>| match listed {
            Some(Listed { dir, stat, names, .. }) => (Side::of(dir, &stat), names),
            None => (Side::default(), Names::None),
        };
        let ((source, of_source), (target, of_target)) = (split(source), split(target));
        let rows = Merge::new(of_source, of_target)?.marked(marks);
        Ok(Self {
            path,
            source,
            target,
            rows,
            ready: None,
            part: Part::Everything,
            folders: VecDeque::new(),
            may_delete: false,
            is_kept: false,
            at_end: None,
            rules: None,
            is_excluded: false,
            has_leftovers,
        })
    }

    /// Returns the folder with its patterns, if it has any.
    pub(super) fn rules(&self) -> Option<Folder<'_>> {
        self.rules.as_ref().map(|rules| Folder { path: &self.path, rules })
    }

    /// Returns some of the rows left; `None` at the end.
    pub(super) fn next_rows(&mut self, most: usize) -> std::io::Result<Option<Rows>> {
        let mut found = Rows::default();
        while found.count() < most {
            let Some(row) = self.rows.next()? else {
                match self.part.next_left()? {
                    Some(name) => found.missing.push(name),
                    None => break,
                }
                continue;
            };
            if self.part.takes(&row, &mut found.missing)? {
                found.rows.push(row);
            } else {
                self.is_kept |= row.target.is_some();
                found.unlisted.push(row);
            }
        }
        Ok(if found.count() == 0 { None } else { Some(found) })
    }
}

/// Opens the folder `name` and lists it.
pub(super) async fn open(parent: &Dir, name: &Name, which: Which) -> Result<Listed, FailureKind> {
    let (dir, stat, first) = enter(parent, name, which).await?;
    list(dir, stat, Some(first), which, false).await
}

async fn enter(parent: &Dir, name: &Name, which: Which) -> Result<(Dir, Stat, Entries), FailureKind> {
    let verb = if which.is_target() { Verb::StatTarget } else { Verb::OpenDirectory };
    parent.enter(name, None).await.map_err(|error| FailureKind::Io { verb, error })
}

/// Opens the folder `name` and lists it; `None` if it has more entries than one request lists.
pub(super) async fn open_small(
    parent: &Dir,
    name: &Name,
    which: Which,
) -> Result<Option<Listed>, FailureKind> {
    let (dir, stat, first) = enter(parent, name, which).await?;
    if first.next.is_some() {
        return Ok(None);
    }
    list(dir, stat, Some(first), which, false).await.map(Some)
}

/// Lists an open folder: names that are no part of the tree are left out.
pub(super) async fn list(
    dir: Dir,
    stat: Stat,
    first: Option<Entries>,
    which: Which,
    is_root: bool,
) -> Result<Listed, FailureKind> {
    let is_target = which.is_target();
    // In a folder that goes away, all but parts goes to the trash with it.
    let sees_to_leftovers = which == Which::Target && is_cleared(&dir);
    let verb = if is_target { Verb::ReadTargetDirectory } else { Verb::ReadDirectory };
    let (has_leftovers, marks) = (Cell::new(false), RefCell::new(Vec::new()));
    let run_marks = RefCell::new(Vec::new());
    let is_part = |entry: &Entry| {
        let is_trash = is_root && entry.name.as_bytes() == TRASH;
        let is_unfinished = is_target && is_hidden(&entry.name, stat.inode)
            || sees_to_leftovers && is_aside(&entry.name, stat.inode);
        if is_unfinished {
            has_leftovers.set(true);
            let mark = Mark::of(&entry.name, stat.inode).filter(|_| marks.borrow().len() < MOST_MARKS);
            marks.borrow_mut().extend(mark);
            let mut found = run_marks.borrow_mut();
            let is_more = is_root && found.len() < MOST_MARKS;
            found.extend(RunMark::of(&entry.name, stat.inode).filter(|_| is_more));
        }
        let is_mark = entry.name.as_bytes() == MARK && (is_root || which != Which::NewSource);
        !is_trash && !is_unfinished && !is_mark
    };
    let spilled = |error: std::io::Error| {
        let errno = error.raw_os_error().map_or(ferry_io::Errno::IO, ferry_io::Errno::from_raw_os_error);
        let cause = ferry_io::Cause::Errno(errno);
        let error = ferry_io::Error { operation: ferry_io::Operation::Write, cause };
        FailureKind::Io { verb, error }
    };
    let mut sorter = Sorter::new();
    let (mut error, mut is_trash) = (None, false);
    let mut part = match first {
        Some(part) => part,
        None => match dir.list(Some(0)).await {
            Ok(part) => part,
            Err(error) => return Err(FailureKind::Io { verb, error }),
        },
    };
    loop {
        is_trash |= part.entries.iter().any(marks_trash);
        part.entries.retain(is_part);
        sorter.add(std::mem::take(&mut part.entries), &TEMPORARY).map_err(spilled)?;
        if part.next.is_none() {
            break;
        }
        part = match dir.list(None).await {
            Ok(part) => part,
            Err(refused) => {
                error = Some(FailureKind::Io { verb, error: refused });
                break;
            }
        };
    }
    let names = Names::Some(sorter.finish(&TEMPORARY).map_err(spilled)?);
    let (has_leftovers, marks) = (has_leftovers.get(), marks.into_inner());
    let run_marks = run_marks.into_inner();
    let (dir, is_mount_root) = (Some(dir), false);
    Ok(Listed { dir, stat, is_mount_root, names, error, is_trash, has_leftovers, marks, run_marks })
}
