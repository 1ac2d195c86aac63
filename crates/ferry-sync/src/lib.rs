//! Makes a target equal to a source: plans by name, then acts.
//!
//! [`run()`] opens both trees and starts the walk (`walk.rs`), which compares them folder by folder and passes actions
//! to a sink: they are shown, recorded as a plan (`plan.rs`), or performed (`perform.rs`). [`apply`] performs a plan
//! that was recorded. All three uses have the same actions, because one walk decides them.
//!
//! Decisions are pure (`decide.rs`, `names.rs`). Everything that changes the target is done by `ferry-copy`'s copier.

mod decide;
mod facts;
mod grain;
mod list;
pub mod manifest;
mod merge;
mod names;
mod perform;
pub mod plan;
pub mod preview;
mod request;
mod run;
mod select;
mod sink;
mod sorted;
mod undo;
mod walk;

pub use decide::{Comparison, Reason};
pub use list::{BadList, List};
pub use perform::Done;
pub use request::{Acting, Disposal, Explain, MaxDelete, Refused, Request, Surroundings, Totals, Use};
pub use run::{apply, check, run};
pub use select::{BadPattern, Rule, Selection};
pub use undo::{target_of, undo};

/// The programs in the library's guide, which are compiled as documentation examples.
#[cfg(doctest)]
#[allow(
    rustdoc::invalid_codeblock_attributes,
    reason = "commands are tagged for `cargo xtask check-documents`"
)]
#[doc = include_str!("../../../docs/library.md")]
struct Guide;
