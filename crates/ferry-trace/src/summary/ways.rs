//! Ways that moved the pieces of large files.

use std::cmp::Reverse;

use ferry_io::Way;

use super::counts::size;
use super::times::together;
use crate::model::{Nanos, Piece};

/// Pieces of large files that were moved by one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WayTimes {
    /// The way.
    pub way: Way,
    /// Number of pieces.
    pub pieces: u64,
    /// Pieces moved to compare the way with the leading one.
    pub trials: u64,
    /// Bytes of all pieces.
    pub bytes: u64,
    /// Time of all pieces.
    pub took: Nanos,
}

impl WayTimes {
    /// Its speed in bytes per second; `None` if it took no time.
    #[must_use]
    pub fn speed(&self) -> Option<u64> {
        let speed = (u128::from(self.bytes) * 1_000_000_000).checked_div(self.took.into())?;
        Some(u64::try_from(speed).unwrap_or(u64::MAX))
    }
}

pub(super) fn of(pieces: &[Piece]) -> Vec<WayTimes> {
    let of_way = |way| {
        let its: Vec<&Piece> = pieces.iter().filter(|piece| piece.way == way).collect();
        let found = WayTimes {
            way,
            pieces: size(its.len()),
            trials: size(its.iter().filter(|piece| piece.is_trial).count()),
            bytes: its.iter().fold(0, |sum, piece| sum.saturating_add(piece.bytes)),
            took: together(its.iter().map(|piece| piece.ended.saturating_sub(piece.began))),
        };
        (found.pieces > 0).then_some(found)
    };
    let mut ways: Vec<WayTimes> = Way::ALL.into_iter().filter_map(of_way).collect();
    ways.sort_by_key(|way| Reverse(way.bytes));
    ways
}
