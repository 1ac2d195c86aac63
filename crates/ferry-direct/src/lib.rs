//! A file read and written past the page cache, over a bounded cache of its own.
//!
//! [`DirectFile::open`] opens it. It reads and writes at any offset and size, as a [`ferry_io::File`] does. `cache.rs`
//! keeps blocks, `policy.rs` chooses the block to evict, `ahead.rs` predicts reads, `behind.rs` chooses dirty blocks to
//! write, and `transfer.rs` moves them. There is no background task: the fiber that finds a request due begins it, the
//! kernel or the pool carries it out, and the next fiber that uses the file takes its result.

mod access;
mod ahead;
mod behind;
mod cache;
mod failures;
mod file;
mod open;
mod options;
mod policy;
mod reading;
mod requests;
mod transfer;
mod waiters;
mod writing;

pub use access::Access;
pub use failures::{Failure, Failures};
pub use file::{CacheStats, DirectFile};
pub use options::DirectOptions;

#[cfg(test)]
mod tests;
