//! Messages between the coordinator and the ranks, and the records of the journal, which are made of them.

use serde::{Deserialize, Serialize};

use crate::text::Text;

/// Sizes by which work is divided. A job keeps those that it began with, because the journal refers to ranges by their
/// offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Number of ranks.
    pub ranks: u32,
    /// Entries of one lease, after which a rank reports.
    pub lease_entries: u64,
    /// Bytes of one lease, after which a rank reports.
    pub lease_bytes: u64,
    /// Size of the smallest range of a large file.
    pub range_least: u64,
    /// Size of the largest range.
    pub range_most: u64,
    /// Size that each range is a multiple of: a filesystem's stripe.
    pub stripe: u64,
}

impl Settings {
    /// Returns the settings for a number of ranks: 2,048 entries or 256 MiB for a lease, and ranges of 64 to 256 MiB.
    ///
    /// With up to 8 ranks, a lease is larger, because at its end a rank waits for the last of its tasks before it begins
    /// others. Idle ranks get a part of a lease whatever its size.
    #[must_use]
    pub fn new(ranks: u32) -> Self {
        let times = u64::from((16 / ranks.max(1)).max(1));
        Self {
            ranks,
            lease_entries: 2048 * times,
            lease_bytes: (256 << 20) * times,
            range_least: 64 << 20,
            range_most: 256 << 20,
            stripe: 1 << 20,
        }
    }

    /// Has files divided into ranges of this size.
    #[must_use]
    pub fn in_ranges(self, range: u64) -> Self {
        Self { range_least: range, range_most: range, stripe: 1, ..self }
    }

    /// Returns the size from which on a file is copied in ranges.
    #[must_use]
    pub fn large(&self) -> u64 {
        self.range_least.saturating_mul(2)
    }

    /// Returns the size of the ranges of a file: about four for each rank, and whole stripes.
    #[must_use]
    pub fn range(&self, size: u64) -> u64 {
        let wanted = size / (4 * u64::from(self.ranks.max(1)));
        let range = wanted.clamp(self.range_least, self.range_most.max(self.range_least)).max(1);
        let stripe = self.stripe.max(1);
        range.div_ceil(stripe).saturating_mul(stripe)
    }
}

/// The version of a source file that a large copy was begun from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Version {
    /// Inode number.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Modification time: seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds of the modification time.
    pub nanoseconds: u32,
}

/// A file that is copied in ranges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargeFile {
    /// Path of its folder.
    pub folder: Text,
    /// Its name.
    pub name: Text,
    /// The version of the source.
    pub version: Version,
}

/// One piece of a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// Make the folder, copy its files, and walk the folders beneath it as far as the lease allows.
    Folder {
        /// Path of the folder.
        path: Text,
        /// Set if an interrupted job has listed a part of it: folders beneath it are reported, and not walked.
        again: bool,
        /// Set if this job has made it.
        is_new: bool,
    },
    /// Copy some files of a folder.
    Files {
        /// Path of the folder.
        folder: Text,
        /// Names of the files.
        names: Vec<Text>,
    },
    /// Copy a file that has other names, which become links to this one.
    Owner {
        /// Path of the folder.
        folder: Text,
        /// Name of the file.
        name: Text,
    },
    /// Copy a range of a large file.
    Range {
        /// The file.
        file: LargeFile,
        /// Offset of the range.
        start: u64,
        /// Size of the range.
        size: u64,
        /// Set for the first range of a file that may have no part: this rank makes it.
        makes_part: bool,
    },
    /// Set the attributes of a large file after its last range, and give it its name.
    Close {
        /// The file.
        file: LargeFile,
    },
    /// Remove the incomplete copy of a large file.
    Discard {
        /// The file.
        file: LargeFile,
    },
    /// Link a name to the copy of another name of its file.
    Link {
        /// Path of the folder of the copy.
        first_folder: Text,
        /// Name of the copy.
        first: Text,
        /// Path of the folder of the link.
        folder: Text,
        /// Name of the link.
        name: Text,
    },
    /// Set the attributes of a folder in which nothing is left to be done.
    Finish {
        /// Path of the folder.
        path: Text,
        /// Set if this job has made it.
        is_new: bool,
    },
}

/// A lease: work for one rank, which answers with reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Number of the lease.
    pub lease: u64,
    /// The work.
    pub works: Vec<Work>,
}

/// Identity of a piece of work, by numbers that the coordinator counts up. Replaying a journal gives the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Key {
    /// A folder to be listed.
    Folder(u64),
    /// A batch of files.
    Files(u64),
    /// The first name of a file with several.
    Owner(u64),
    /// The range of a large file that begins at an offset.
    Range(u64, u64),
    /// The end of a large file.
    Close(u64),
    /// The removal of an incomplete large file.
    Discard(u64),
    /// A further name of a file.
    Link(u64),
    /// The attributes of a folder.
    Finish(u64),
}

/// Place of something new: a folder of the lease, or one that the same report names before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum At {
    /// Folder of this work of the lease.
    Work(u32),
    /// This folder of the report.
    New(u32),
}

/// State of a folder that is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// It has not been entered.
    Unlisted,
    /// The rank holds its listing, and goes on with it in the same lease.
    Listing,
    /// All that it holds has been found.
    Listed,
}

/// A folder that outlives its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewFolder {
    /// The folder that it is in.
    pub at: At,
    /// Its name.
    pub name: Text,
    /// Its state.
    pub state: State,
}

/// Files given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewFiles {
    /// The folder that they are in.
    pub at: At,
    /// Their names.
    pub names: Vec<Text>,
}

/// A file found that is to be copied in ranges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewLarge {
    /// The folder that it is in.
    pub at: At,
    /// Its name.
    pub name: Text,
    /// The version that was found.
    pub version: Version,
    /// Set if the file has no part: ranges that an interrupted job has copied are lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_part: bool,
}

/// A name found whose file has several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewLinked {
    /// The folder that it is in.
    pub at: At,
    /// The name.
    pub name: Text,
    /// Device and inode number.
    pub inode: (u64, u64),
    /// Number of names of the file.
    pub links: u64,
    /// The version that was found, if the file is a regular one.
    pub version: Option<Version>,
}

/// Outcome of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It was not begun.
    Untouched,
    /// It is done; of a folder, with everything beneath it and its attributes.
    Done,
    /// It failed, which is among the report's failures.
    Failed,
    /// The folder's listing goes on in the same lease.
    Listing,
    /// The folder was listed; what is left in it is in the report.
    Listed,
}

/// Numbers of what was done. They are added up over all reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Totals {
    /// Entries found.
    pub entries: u64,
    /// Regular files copied.
    pub files: u64,
    /// Folders made or entered.
    pub directories: u64,
    /// Folders made, which are among them.
    pub made: u64,
    /// Symbolic links made.
    pub symlinks: u64,
    /// Hard links made.
    pub hard_links: u64,
    /// FIFOs, sockets and devices made.
    pub specials: u64,
    /// Entries that an interrupted run had completed.
    pub kept: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Paths that failed.
    pub failed: u64,
}

impl Totals {
    /// Adds other numbers.
    pub fn add(&mut self, other: &Self) {
        self.entries += other.entries;
        self.files += other.files;
        self.directories += other.directories;
        self.made += other.made;
        self.symlinks += other.symlinks;
        self.hard_links += other.hard_links;
        self.specials += other.specials;
        self.kept += other.kept;
        self.bytes += other.bytes;
        self.failed += other.failed;
    }
}

/// Answer to a lease. The last one ends it; after any other, the lease is the folder whose listing goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Number of the lease.
    pub lease: u64,
    /// Set in the last report of a lease.
    pub ended: bool,
    /// Outcomes of the pieces of work, in the order of the lease.
    pub outcomes: Vec<Outcome>,
    /// Folders that outlive the lease, each after the one that it is in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<NewFolder>,
    /// Those folders, and folders of the lease that are not done, that this job has made, if that was noted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<At>,
    /// Files given back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<NewFiles>,
    /// Large files found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub large: Vec<NewLarge>,
    /// Files with several names found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<NewLinked>,
    /// Numbers of what was done since the last report.
    pub totals: Totals,
    /// Messages of failures since the last report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

/// A line of the journal, after the header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Line {
    /// A report.
    Record(Box<Record>),
    /// The job was interrupted here, and went on.
    Resumed,
}

/// A report, and the work that it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Work of the lease, in its order.
    pub keys: Vec<Key>,
    /// The report.
    pub report: Report,
}

/// Reason to end a job before it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// A signal.
    Interrupted,
    /// The filesystem of the target or of the journal is full, or a quota used up.
    NoSpace,
    /// The journal could not be written for another reason, or a rank lost its roots.
    Failed,
}

/// Message to a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToRank {
    /// A lease.
    Grant(Grant),
    /// The report on this lease is in the journal.
    Taken(u64),
    /// This number of leases is asked for: give back what is not begun.
    Split(u32),
    /// End without finishing what is begun.
    Stop(Stop),
    /// Everything is done.
    End,
}

/// Message of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToCoordinator {
    /// The rank has room for one more lease.
    Want,
    /// An answer to a lease.
    Report(Box<Report>),
    /// The rank has ended before its leases were done, with messages of failures that no report has.
    Stopped(Stop, Vec<String>),
}
