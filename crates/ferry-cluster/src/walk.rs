//! A lease being performed: which piece comes next, and what is left of it at the end.
//!
//! Folders are walked depth first. The caller may perform several pieces at once, and answers each of them before it
//! reports. A folder in which nothing is left gets its attributes at once, and the coordinator never hears of it. When the
//! budget is spent, or other ranks are idle, all that was not begun is given back.
//!
//! A folder with more names than the caller reads at once keeps its listing, because a position in a listing means
//! nothing to another process. The lease then goes on with that folder alone ([`Outcome::Listing`]). There is one such
//! folder at a time: others are given back.
//!
//! Bound: one entry for each folder met in a lease, so at most the budget and what one folder holds of folders at once.

use crate::message::{
    At, Grant, NewFiles, NewFolder, NewLarge, NewLinked, Outcome, Report, Settings, State, Totals, Version,
    Work,
};
use crate::text::Text;

/// Fewer files are not shared with idle ranks.
pub const SHARED: usize = 64;
/// Most files in a batch for an idle rank.
const BATCH: usize = 512;
/// Fewest of them.
const SMALL_BATCH: usize = 32;
/// Idle ranks for which names are read at a time.
const SERVED: usize = 128;

/// Returns the number of names to be read for idle ranks at a time.
#[must_use]
pub fn names_for(idle: u32) -> usize {
    BATCH * usize::try_from(idle).unwrap_or(SERVED).min(SERVED)
}

/// Returns the number of files in each batch if these are divided among idle ranks and the one that has them.
#[must_use]
pub fn batch_size(files: usize, idle: u32) -> usize {
    let ranks = usize::try_from(idle).unwrap_or(SERVED).saturating_add(1);
    files.div_ceil(ranks).clamp(SMALL_BATCH, BATCH)
}

/// A piece of the lease, to be performed by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Make and list a folder, copy its files, and call [`Walk::found`].
    Folder {
        /// Number of the folder in this lease.
        folder: usize,
        /// Its path.
        path: Text,
        /// Set if an interrupted job has listed a part of it.
        again: bool,
    },
    /// Go on with the listing of a folder, and call [`Walk::found`].
    Continue {
        /// Number of the folder in this lease.
        folder: usize,
        /// Its path.
        path: Text,
    },
    /// Set a folder's attributes, and call [`Walk::finished`].
    Finish {
        /// Number of the folder in this lease.
        folder: usize,
        /// Its path.
        path: Text,
        /// Set if this job has made it, and that was noted.
        is_new: bool,
    },
    /// Perform other work, and call [`Walk::performed`].
    Work {
        /// Index of the work in the lease.
        index: usize,
        /// The work.
        work: Work,
    },
}

/// A name whose file has several: name, device and inode number, number of names, and the version of a regular file.
pub type Linked = (Text, (u64, u64), u64, Option<Version>);

/// Entries of a folder that the caller has not copied itself.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Folders in it.
    pub folders: Vec<Text>,
    /// Large files, to be copied in ranges.
    pub large: Vec<(Text, Version)>,
    /// Large files without a part, which the rank makes that copies the first range.
    pub without_part: Vec<(Text, Version)>,
    /// Names whose files have several.
    pub linked: Vec<Linked>,
}

#[derive(Debug, Clone, Copy)]
enum Parent {
    Work(u32),
    Folder(usize),
}

/// Place in which something was found.
#[derive(Debug, Clone, Copy)]
enum Place {
    Folder(usize),
    /// The folder of a batch of files.
    Work(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Unlisted,
    Listing,
    Listed,
    Finished,
}

#[derive(Debug)]
struct Local {
    parent: Parent,
    name: Text,
    path: Text,
    again: bool,
    /// Set if this job has made it.
    is_new: bool,
    /// Folders in it that are not finished.
    pending: usize,
    progress: Progress,
    /// Set if something in it goes to the coordinator, which then sees to its attributes.
    outlives: bool,
}

#[derive(Debug)]
enum Todo {
    Work(usize),
    Folder(usize),
}

/// A lease being performed.
#[derive(Debug)]
pub struct Walk {
    lease: u64,
    limits: (u64, u64),
    spent: (u64, u64),
    /// Pieces begun since the last report.
    begun: u64,
    /// Number of ranks that are idle.
    idle: u32,
    /// Set once a listing has gone on for them.
    has_shared: bool,
    works: Vec<Work>,
    outcomes: Vec<Outcome>,
    folders: Vec<Local>,
    todo: Vec<Todo>,
    due: Vec<usize>,
    /// The folder that keeps its listing.
    keeper: Option<usize>,
    /// The same folder, unless a piece of it is being performed.
    listing: Option<usize>,
    files: Vec<(usize, Vec<Text>)>,
    large: Vec<(Place, Text, Version, bool)>,
    linked: Vec<(Place, Linked)>,
}

impl Walk {
    /// Begins a lease.
    #[must_use]
    pub fn new(grant: Grant, settings: &Settings) -> Self {
        let Grant { lease, works } = grant;
        Self {
            lease,
            limits: (settings.lease_entries, settings.lease_bytes),
            spent: (0, 0),
            begun: 0,
            idle: 0,
            has_shared: false,
            outcomes: vec![Outcome::Untouched; works.len()],
            todo: (0..works.len()).rev().map(Todo::Work).collect(),
            works,
            folders: Vec::new(),
            due: Vec::new(),
            keeper: None,
            listing: None,
            files: Vec::new(),
            large: Vec::new(),
            linked: Vec::new(),
        }
    }

    /// Returns the next piece. With `None`, it is time for [`Self::report`] once the pieces being performed are answered,
    /// unless these answers bring others.
    pub fn next_task(&mut self) -> Option<Task> {
        if let Some(folder) = self.due.pop() {
            let Local { path, is_new, .. } = &self.folders[folder];
            return Some(Task::Finish { folder, path: path.clone(), is_new: *is_new });
        }
        if self.is_spent() {
            return None;
        }
        if self.idle > 0 && self.begun > 0 {
            // A listing goes on once more, so that the caller gives files back.
            if self.has_shared || self.listing.is_none() || !self.todo.is_empty() {
                return None;
            }
            self.has_shared = true;
        }
        self.begun += 1;
        match self.todo.pop() {
            Some(Todo::Work(index)) => Some(self.begin(index)),
            Some(Todo::Folder(folder)) => {
                let Local { path, again, .. } = &self.folders[folder];
                Some(Task::Folder { folder, path: path.clone(), again: *again })
            }
            None => {
                let folder = self.listing.take()?;
                Some(Task::Continue { folder, path: self.folders[folder].path.clone() })
            }
        }
    }

    fn begin(&mut self, index: usize) -> Task {
        let work = self.works[index].clone();
        let (Work::Folder { path, again, is_new }, Ok(number)) = (&work, u32::try_from(index)) else {
            return Task::Work { index, work };
        };
        let folder = self.add(Parent::Work(number), Text::default(), path.clone(), *again);
        self.folders[folder].is_new = *is_new;
        Task::Folder { folder, path: path.clone(), again: *again }
    }

    fn add(&mut self, parent: Parent, name: Text, path: Text, again: bool) -> usize {
        let progress = Progress::Unlisted;
        let (is_new, outlives) = (false, false);
        self.folders.push(Local { parent, name, path, again, is_new, pending: 0, progress, outlives });
        self.folders.len() - 1
    }

    /// Returns true if the budget of the lease is spent.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.spent.0 >= self.limits.0 || self.spent.1 >= self.limits.1
    }

    /// Notes entries and bytes that were copied.
    pub fn spend(&mut self, entries: u64, bytes: u64) {
        self.spent.0 += entries;
        self.spent.1 += bytes;
    }

    /// Notes the number of idle ranks. If there are any, the lease ends as soon as something was done.
    pub fn note_idle(&mut self, idle: u32) {
        self.idle = self.idle.max(idle);
    }

    /// Returns the number of idle ranks, to which files of a folder being copied are to be given.
    #[must_use]
    pub fn idle(&self) -> u32 {
        self.idle
    }

    /// Notes that this job has made a folder: its attributes may depend on that.
    pub fn note_made(&mut self, folder: usize) {
        self.folders[folder].is_new = true;
    }

    /// Notes what was found in a folder. `is_whole` is set if nothing more is in it; without it, the listing goes on.
    pub fn found(&mut self, folder: usize, found: Found, is_whole: bool) {
        let again = self.folders[folder].again;
        for name in found.folders {
            let path = self.folders[folder].path.join(&name);
            let inner = self.add(Parent::Folder(folder), name, path, false);
            self.folders[folder].pending += 1;
            if again {
                self.outlive(folder);
            } else {
                self.todo.push(Todo::Folder(inner));
            }
        }
        // The coordinator may know of files in a folder that is listed again.
        if again || !(found.large.is_empty() && found.without_part.is_empty() && found.linked.is_empty()) {
            self.outlive(folder);
        }
        self.note(Place::Folder(folder), found.large, found.without_part, found.linked);
        if is_whole {
            self.folders[folder].progress = Progress::Listed;
            self.keeper = self.keeper.filter(|&keeper| keeper != folder);
            self.check(folder);
        } else {
            self.folders[folder].progress = Progress::Listing;
            (self.keeper, self.listing) = (Some(folder), Some(folder));
        }
    }

    /// Notes files that were found among those of a batch, and not copied.
    pub fn found_in_batch(&mut self, index: usize, found: Found) {
        if let Ok(work) = u32::try_from(index) {
            self.note(Place::Work(work), found.large, found.without_part, found.linked);
        }
    }

    fn note(
        &mut self,
        place: Place,
        large: Vec<(Text, Version)>,
        without_part: Vec<(Text, Version)>,
        linked: Vec<Linked>,
    ) {
        self.large.extend(large.into_iter().map(|(name, version)| (place, name, version, false)));
        self.large.extend(without_part.into_iter().map(|(name, version)| (place, name, version, true)));
        self.linked.extend(linked.into_iter().map(|linked| (place, linked)));
    }

    /// Returns true if a folder may keep its listing. Otherwise another one does, and this one is given back: the caller
    /// goes on with another piece, without [`Self::found`].
    #[must_use]
    pub fn keeps_listing(&mut self, folder: usize) -> bool {
        *self.keeper.get_or_insert(folder) == folder
    }

    /// Gives back files of a folder.
    pub fn give_back(&mut self, folder: usize, names: Vec<Text>) {
        if !names.is_empty() {
            self.outlive(folder);
            self.files.push((folder, names));
        }
    }

    /// Notes that a folder has its attributes, or could not be entered, which was reported.
    pub fn finished(&mut self, folder: usize) {
        self.folders[folder].progress = Progress::Finished;
        match self.folders[folder].parent {
            Parent::Work(index) => self.set(index, Outcome::Done),
            Parent::Folder(above) => {
                self.folders[above].pending -= 1;
                self.check(above);
            }
        }
    }

    /// Notes the outcome of other work.
    pub fn performed(&mut self, index: usize, is_done: bool) {
        if let Some(outcome) = self.outcomes.get_mut(index) {
            *outcome = if is_done { Outcome::Done } else { Outcome::Failed };
        }
    }

    fn set(&mut self, index: u32, outcome: Outcome) {
        let found = usize::try_from(index).ok().and_then(|index| self.outcomes.get_mut(index));
        if let Some(found) = found {
            *found = outcome;
        }
    }

    /// Has a folder's attributes set if nothing is left in it.
    fn check(&mut self, folder: usize) {
        let Local { progress, pending, outlives, .. } = &self.folders[folder];
        if *progress == Progress::Listed && *pending == 0 && !outlives {
            self.due.push(folder);
        }
    }

    /// Leaves a folder, and those above it, to the coordinator.
    fn outlive(&mut self, folder: usize) {
        let mut at = folder;
        while !std::mem::replace(&mut self.folders[at].outlives, true) {
            match self.folders[at].parent {
                Parent::Folder(above) => at = above,
                Parent::Work(_) => return,
            }
        }
    }

    /// Returns the folders that outlive the lease, and the place of each folder of the lease.
    fn places(&mut self) -> (Vec<Option<At>>, Vec<NewFolder>) {
        let mut places: Vec<Option<At>> = Vec::with_capacity(self.folders.len());
        let mut folders = Vec::new();
        for index in 0..self.folders.len() {
            let Local { parent, name, progress, .. } = &self.folders[index];
            let state = match progress {
                Progress::Unlisted => State::Unlisted,
                Progress::Listing => State::Listing,
                Progress::Listed => State::Listed,
                Progress::Finished => {
                    places.push(None);
                    continue;
                }
            };
            match *parent {
                Parent::Work(work) => {
                    places.push(Some(At::Work(work)));
                    match state {
                        State::Unlisted => {}
                        State::Listing => self.set(work, Outcome::Listing),
                        State::Listed => self.set(work, Outcome::Listed),
                    }
                }
                Parent::Folder(above) => {
                    let number = u32::try_from(folders.len()).unwrap_or(u32::MAX);
                    places.push(Some(At::New(number)));
                    if let Some(at) = places[above] {
                        folders.push(NewFolder { at, name: name.clone(), state });
                    }
                }
            }
        }
        (places, folders)
    }

    /// Returns the report of what was done, and gives back the rest, unless a listing goes on.
    pub fn report(&mut self, totals: Totals, failures: Vec<String>) -> Report {
        let (places, folders) = self.places();
        let of_folder = |folder: usize| places.get(folder).copied().flatten();
        let made = self.folders.iter().zip(&places).filter(|(local, _)| local.is_new);
        let made = made.filter_map(|(_, place)| *place).collect();
        let at = |place| match place {
            Place::Folder(folder) => of_folder(folder),
            Place::Work(work) => Some(At::Work(work)),
        };
        let files = self.files.drain(..);
        let files =
            files.filter_map(|(folder, names)| Some(NewFiles { at: of_folder(folder)?, names })).collect();
        let large = self.large.drain(..);
        let large = large
            .filter_map(|(place, name, version, lacks_part)| {
                Some(NewLarge { at: at(place)?, name, version, lacks_part })
            })
            .collect();
        let linked = self.linked.drain(..);
        let linked = linked
            .filter_map(|(place, (name, inode, links, version))| {
                Some(NewLinked { at: at(place)?, name, inode, links, version })
            })
            .collect();
        let outcomes = std::mem::take(&mut self.outcomes);
        let ended = self.listing.is_none();
        self.go_on();
        Report { lease: self.lease, ended, outcomes, folders, made, files, large, linked, totals, failures }
    }

    /// Goes on with the folder whose listing is open, alone.
    fn go_on(&mut self) {
        self.spent = (0, 0);
        self.begun = 0;
        self.idle = 0;
        self.has_shared = false;
        self.todo.clear();
        self.works.clear();
        let listing = self.listing.take().map(|folder| self.folders.swap_remove(folder));
        self.keeper = None;
        self.folders.clear();
        if let Some(local) = listing {
            let Local { ref path, again, is_new, .. } = local;
            self.works.push(Work::Folder { path: path.clone(), again, is_new });
            self.outcomes.push(Outcome::Untouched);
            self.folders.push(Local { parent: Parent::Work(0), pending: 0, outlives: true, ..local });
            (self.keeper, self.listing) = (Some(0), Some(0));
        }
    }
}

#[cfg(test)]
mod tests;
