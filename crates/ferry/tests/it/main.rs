//! The command from outside: its copies, messages and exit codes beside GNU cp's, and its own options.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod gnu;
mod kinds;
mod links;
mod own;
mod random;
mod refusals;
mod scene;
mod user;
mod verify;
