//! The command from outside: its copies, messages and exit codes beside GNU cp's, and its own options.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod backups;
mod bandwidth;
mod bounds;
mod changing;
mod completions;
mod components;
mod durable;
mod faulty;
mod gnu;
mod hostile;
mod interrupted;
mod kept;
mod killed;
mod kinds;
mod lab;
mod lab_disk;
mod lab_interrupted;
mod lab_refusals;
mod lab_rings_and_writes;
mod lab_strategies;
mod links;
mod measured;
mod modes;
mod no_uring;
mod options;
mod own;
mod pages;
mod programs;
mod questions;
mod races;
mod random;
mod reach;
mod real;
mod record;
mod refusals;
mod report;
mod scene;
mod shown;
mod stress;
mod syscalls;
mod through;
mod user;
mod verify;
mod when;
