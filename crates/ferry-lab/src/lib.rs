//! The lab: every experiment of the documents that ferry repeats, one command each.
//!
//! [`experiments`] has them, [`session::conduct`] runs one and gives its [`record::Record`], and tables, plots, verdicts
//! and the report are made from records. Copiers are timed as strangers, by their commands, ferry's own among them.
//!
//! - before: [`settings`] (what it is told), [`needs`] (what must be there), [`machine`] (what it runs on)
//! - during: [`session`], [`schedule`] (who is taken when), [`cache`] (cold and warm, proved), [`command`], [`load`],
//!   [`stop`], [`work`] (the one folder that everything is in)
//! - after: [`record`], [`statistics`], [`warnings`], [`table`], [`plot`], [`export`], [`published`] (the documents'
//!   figures), [`verdict`] (what held), [`report`]

pub mod cache;
pub mod clock;
pub mod command;
mod error;
pub mod experiments;
pub mod export;
pub mod load;
pub mod machine;
pub mod needs;
pub mod plot;
pub mod programs;
pub mod published;
pub mod record;
pub mod report;
pub mod schedule;
pub mod session;
pub mod settings;
pub mod statistics;
pub mod stop;
pub mod strategies;
pub mod table;
pub mod units;
pub mod verdict;
pub mod warnings;
pub mod work;

pub use error::Failure;
