//! Describes, makes, captures and compares directory trees.
//!
//! This crate judges the copier, so it is independent of it: plain threads and system calls, no other crate of ferry.
//!
//! - [`describe`]: a tree as a literal value; [`random`]: such a tree from a seed; [`make`] creates it on disk.
//! - [`capture`]: a tree on disk as a value; [`compare`]: differences of two trees, as values or on disk.
//! - [`workload`]: large trees, made without a description in memory; [`remove`]: removal of any tree.
//!
//! ```
//! use ferry_tree::{Node, Tree, capture, compare, make};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let place = tempfile::tempdir()?;
//! let tree = Tree::new()
//!     .with("notes/today", Node::file("text").mode(0o600).mtime(1_700_000_000, 5))
//!     .with("notes/now", Node::symlink("today"));
//! let (source, target) = (place.path().join("source"), place.path().join("target"));
//! make::make(&tree, &source)?;
//! assert!(std::process::Command::new("cp").arg("-a").args([&source, &target]).status()?.success());
//! assert_eq!(tree.differences(&capture::capture(&target)?), []);
//!
//! let progress = compare::Progress::new();
//! let report = |difference| println!("{difference}");
//! let summary = compare::trees(&source, &target, &compare::Options::all(), &progress, &report)?;
//! assert_eq!((summary.entries, summary.differences), (4, 0));
//! # Ok(())
//! # }
//! ```

pub mod acl;
pub mod attributes;
pub mod capture;
pub mod compare;
mod cursor;
pub mod describe;
pub mod error;
mod expect;
mod extents;
pub mod fill;
pub mod hash;
pub mod make;
mod node;
mod open;
mod pool;
pub mod quote;
pub mod random;
pub mod remove;
pub mod workload;
pub mod xattr;

pub use acl::Acl;
pub use capture::Snapshot;
pub use describe::{Node, Tree};
pub use error::Error;
