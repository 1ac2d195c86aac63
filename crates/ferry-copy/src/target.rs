//! The target of an entry: look at an existing one, clear the way, open or create.
//!
//! [`look`] decides by cp's rules before the source is opened, and changes nothing. [`open`] and the makers of links
//! clear the way only once the source is open, so that an unreadable source never costs its existing target. A folder
//! that this run has made needs no look.

mod clear;
mod look;
mod open;
mod same;

pub(crate) use clear::{clear, put};
pub(crate) use look::{Ahead, Seen, look, look_again};
pub(crate) use open::{Filling, Target, open};
