//! What other programs make of the exports.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod browser;
mod page;
mod perfetto;
