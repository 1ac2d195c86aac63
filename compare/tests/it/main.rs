//! The service on tokio, and a short comparison.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod comparison;
mod service;
