//! Copies trees of files, as `cp -r` does, with many files in flight.
//!
//! A regular file's way, in three jumps: [`run_from`] opens the operands' folders and starts the walk; `walk.rs` turns
//! folders into jobs and entries into fibers; `entry.rs` has `file.rs` copy one file: open the source, open the target
//! (`target.rs`), move the bytes (`bytes.rs`), set the attributes (`meta.rs`). Modules import one another in one
//! direction only.

mod abilities;
mod acl;
mod backup;
mod bytes;
mod check;
mod claim;
mod copier;
mod copy;
mod counter;
mod debug;
mod devices;
mod digest;
mod direct;
mod dirty;
mod durable;
mod entry;
mod file;
mod finish;
mod folder;
mod identity;
mod lent;
mod linking;
mod links;
mod listing;
mod load;
mod locks;
mod meta;
mod mode;
mod mover;
mod mutex;
mod naming;
mod operands;
mod options;
mod other;
mod pace;
mod parents;
mod paths;
mod place;
mod question;
mod report;
mod run;
mod sparse;
mod staging;
mod sync;
mod target;
mod through;
mod trail;
mod turns;
mod unfinished;
mod walk;
mod writeback;

pub use copier::{
    Copier, Lifted, Listing, Pair, Settings, Sides, Start, is_complete, is_kept_xattr, kept_mode,
};
pub use copy::{run_from, run_in};
pub use counter::Counter;
pub use devices::Devices;
pub use digest::{Algorithm, Digest, Hasher, hash_file, hash_range};
pub use load::{Gate, InFlight, Pauses, Waited};
pub use naming::{Backup, Control, Naming};
pub use options::{
    Dereference, Direct, Existing, Item, Make, Options, Preserve, Reflink, Resume, Sparse, Takes,
};
pub use paths::{split_last, without_trailing_slashes};
pub use report::{
    Copied, CpMeans, Explained, Failure, FailureKind, Hashed, Method, Observer, PartNote, PartState,
    Progress, Question, Side, Summary, Unfinished, Verb,
};
pub use staging::{Mark, OwnRunMark, RunMark, is_aside, is_cleared, is_hidden};
