//! The lab: repeats the documents' experiments, one command each.
//!
//! [`experiments`] lists them. [`conduct::conduct`] runs one and returns its [`record::Record`]. Tables, plots,
//! verdicts and the report are made from records. Copiers, ferry included, are timed as commands.
//!
//! - before: [`settings`] (parameters), [`needs`] (requirements), [`machine`] (hardware and filesystem)
//! - during: [`session`], [`schedule`] (order of the runs), [`cache`] (cold and warm, proved), [`command`], [`load`],
//!   [`stop`], [`work`] (the folder for all files)
//! - after: [`record`], [`statistics`], [`warnings`], [`headline`] (the answer), [`table`], [`plot`], [`export`],
//!   [`published`] (the documents' figures), [`verdict`] and [`claims`] (findings that hold), [`report`], [`speeds`]
//!   (the table of docs/performance.md)

pub mod cache;
pub mod claims;
pub mod clock;
pub mod command;
pub mod conduct;
mod error;
pub mod experiment;
pub mod experiments;
pub mod export;
pub mod headline;
pub mod limits;
pub mod load;
pub mod machine;
mod memory;
mod message;
pub mod needs;
pub mod plot;
pub mod programs;
pub mod published;
pub mod record;
mod recording;
pub mod report;
pub mod schedule;
pub mod search_path;
pub mod session;
pub mod settings;
pub mod speeds;
pub mod statistics;
pub mod stop;
pub mod strategies;
pub mod table;
pub mod units;
pub mod verdict;
pub mod warnings;
pub mod work;

pub use error::Failure;
