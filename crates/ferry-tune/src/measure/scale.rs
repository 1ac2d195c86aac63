//! Amount of work of a measurement, and the limits of its choices.

use crate::Figure;

/// A depth or block size suffices if it reaches this part of the maximum.
pub const ENOUGH: f64 = 0.95;
/// This part suffices if one run reached the maximum.
pub const NEARLY: f64 = 0.9;
/// Minimum number of rounds, even on the slowest device.
pub const LEAST_ROUNDS: u32 = 2;
/// Requests in flight while block sizes are compared and bandwidth is measured.
pub const SEQUENTIAL_DEPTH: u32 = 8;

/// Amount of work.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// True for the short measurement.
    pub(super) quick: bool,
    /// Rounds, if there is time.
    pub(super) rounds: u32,
    /// Seconds after which subjects get only [`LEAST_ROUNDS`] rounds.
    pub(super) seconds: u64,
    /// Duration of each direct load in milliseconds.
    pub(super) load_ms: u64,
    /// Size of the file in bytes, if there is space and time.
    pub(super) file_bytes: u64,
    /// Maximum time for writing the file in seconds, once it has its minimum size.
    pub(super) file_seconds: u64,
    pub(super) creates: u32,
    /// Reads in each round that measure the cost of a hand-over.
    pub(super) reads: u32,
}

impl Scale {
    /// Takes less than 30 s a mount on a device with at least 8 MB/s and 60 requests a second.
    pub const QUICK: Self = Self {
        quick: true,
        rounds: 5,
        seconds: 20,
        load_ms: 150,
        file_bytes: 256 << 20,
        file_seconds: 4,
        creates: 200,
        reads: 1000,
    };
    /// Takes about two minutes a mount.
    pub const FULL: Self = Self {
        quick: false,
        rounds: 7,
        seconds: 150,
        load_ms: 700,
        file_bytes: 1 << 30,
        file_seconds: 20,
        creates: 1000,
        reads: 5000,
    };
}

/// Returns true if a rate suffices where `most` is the highest median among all depths, or among all block sizes. A
/// shortfall within its own spread counts as enough, because the maximum of several medians overestimates.
#[must_use]
pub fn is_enough(found: &Figure, most: f64) -> bool {
    found.median >= most * ENOUGH || found.median >= most * NEARLY && found.high >= most
}
