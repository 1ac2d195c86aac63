//! Copies trees of files: what `cp -r` does, by as many fibers as the machine has use for.
//!
//! One file's way, in three jumps: [`run`] opens the operands' folders and begins the walk; `walk.rs` turns folders into
//! jobs and entries into fibers; `file.rs` opens one source, makes its target, has `bytes.rs` move the bytes, and has
//! `meta.rs` keep the attributes.

mod abilities;
mod backup;
mod bytes;
mod copier;
mod copy;
mod counter;
mod direct;
mod durable;
mod entry;
mod file;
mod folder;
mod how;
mod linking;
mod links;
mod meta;
mod mode;
mod options;
mod pace;
mod question;
mod report;
mod sparse;
mod staging;
mod target;
mod through;
mod turns;
mod unfinished;
mod walk;
mod writeback;

pub use backup::{Backup, Control, Naming};
pub use copy::{run, run_from};
pub use counter::Counter;
pub use how::How;
pub use options::{Dereference, Direct, Existing, Item, Make, Options, Preserve, Reflink, Sparse};
pub use report::{
    Copied, Failure, FailureKind, Method, Observer, Progress, Question, Summary, Unfinished, Verb,
};
