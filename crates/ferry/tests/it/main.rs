//! The command from outside: its copies, messages and exit codes beside GNU cp's, and its own options.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod gnu;
mod hostile;
mod kinds;
mod lab;
mod links;
mod no_uring;
mod own;
mod random;
mod refusals;
mod scene;
mod stress;
mod user;
mod verify;
