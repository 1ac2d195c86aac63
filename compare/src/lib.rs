//! ferry-io beside other runtimes on file work: the same work for each, with a checksum that proves it.
//!
//! [`work`] describes what is done, [`runtimes`] does it with each runtime as its documentation recommends, [`measure`]
//! runs them interleaved, and [`table`] shows the record.

pub mod measure;
pub mod record;
pub mod runtimes;
pub mod table;
pub mod work;

/// Reason why something was not done, as text for the user.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
