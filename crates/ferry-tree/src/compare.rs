//! Differences between two trees.
//!
//! [`trees`] compares trees on disk, in parallel, byte for byte and in bounded memory (`ferry verify`).
//! [`snapshots()`] compares what [`crate::capture`] read (tests). Both report the same differences (guard:
//! `both_ways_agree` in tests/it), except that only the first knows at which offset content differs.
//!
//! A missing or extra entry, or one of another type, is reported once; its descendants are skipped. If sizes
//! differ, contents are not compared. A hard-linked file is read once a name. Holes that both sides report are
//! trusted, although a filesystem may be wrong (ZFS 2.2.0).
//!
//! Creation times are not compared because they cannot be set. Access times are not compared because making and
//! checking a copy changes them. [`crate::attributes::Attributes`] holds them as they were before the entry was
//! read.

mod content;
mod difference;
mod entry;
mod facts;
mod holes;
mod links;
mod merged;
mod options;
mod pieces;
mod progress;
mod snapshots;
mod walk;

pub use content::Buffers;
pub use difference::{Difference, Mismatch, Side};
pub use links::Linked;
pub use options::{Holes, Options};
pub use pieces::{Found, Joined, Listed, Listing, Passed, Pieces};
pub use progress::{Observer, Progress, Summary};
pub use snapshots::snapshots;
pub use walk::trees;
