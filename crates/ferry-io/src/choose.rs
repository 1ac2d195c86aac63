//! Chooses the calls that move the bytes of large files, while they move.
//!
//! `route.rs` decides where a call runs; this module decides which calls move the next piece of a file. No way is the
//! fastest on every machine, so a copy measures: the *leader* moves almost all pieces, and another way gets one now and
//! then. A way that is clearly faster takes the lead. All copies between two devices share one [`Ways`], so that many
//! files of medium size are measured together.
//!
//! The first leader is cp's own way: copy_file_range(2) where the kernel copies (since Linux 5.19, within one filesystem),
//! else read(2) and write(2). A trial is one piece, which ends early once it has taken 1.5
//! times as long as the leader would have; losers rest. A leader that slows down is compared with all ways anew.
//! `race.rs` has the constants, docs/decisions/0015 the figures. Guards: `regret_is_bounded_on_a_thousand_devices`,
//! `the_leader_moves_nearly_everything`.
//!
//! Limits: ways are compared by the time of their own calls. What mappings cost other threads (their unmapping
//! interrupts them) and what the kernel does later is not seen. A trial may be compared with a piece of another thread.

mod race;
mod way;

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

pub(crate) use race::Piece;
use race::Race;
pub use race::Tried;
pub(crate) use way::Means;
pub use way::Way;

use crate::event::{self, Event};

/// Ways to move bytes between two filesystems, with what is known of their speeds.
#[derive(Debug)]
pub struct Ways {
    first: Way,
    race: Mutex<Race>,
}

/// The ways between files that the kernel copies; copy_file_range(2) leads at first.
impl Default for Ways {
    fn default() -> Self {
        Self::of(Way::Kernel, &[Way::Mapped128, Way::Mapped64, Way::Mapped256])
    }
}

impl Ways {
    /// The ways between files that the kernel does not copy; reads and writes lead at first.
    ///
    /// ```
    /// assert_eq!(ferry_io::Ways::buffered().tried(), []);
    /// ```
    #[must_use]
    pub fn buffered() -> Self {
        // With five ways the bound on regret is missed.
        Self::of(Way::Buffered256, &[Way::Mapped128, Way::Buffered64, Way::Mapped64])
    }

    /// One way alone, where comparing would mislead: the time of reads from a device says little of the way.
    ///
    /// ```
    /// assert_eq!(ferry_io::Ways::only(ferry_io::Way::Buffered256).tried(), []);
    /// ```
    #[must_use]
    pub fn only(way: Way) -> Self {
        Self::of(way, &[])
    }

    fn of(first: Way, others: &[Way]) -> Self {
        Self { first, race: Mutex::new(Race::new(first, others)) }
    }

    /// Returns the ways that moved bytes: the leader, then the others, from the fastest when compared to those not compared.
    #[must_use]
    pub fn tried(&self) -> Vec<Tried> {
        self.race().tried()
    }

    /// Returns true if copy_file_range(2) takes part.
    pub(crate) fn is_by_kernel(&self) -> bool {
        self.first == Way::Kernel
    }

    fn race(&self) -> MutexGuard<'_, Race> {
        // A race is consistent after each of its calls.
        self.race.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The performer of pieces: the kernel or the simulation.
pub(crate) trait Moves {
    /// The time in nanoseconds.
    fn now_ns(&mut self) -> u64;

    /// Moves up to `piece.bytes` bytes behind the first `done` ones. May move fewer, and ends early at the piece's
    /// limit; 0 at the end of the source.
    fn piece(&mut self, done: usize, piece: &Piece) -> Result<usize, Errno>;
}

/// Moves up to `size` bytes piece by piece; fewer at the end of the source, or where an error of the first way is met after
/// some bytes.
///
/// # Errors
/// That of the first way if nothing was moved. Errors of the other ways end their use: for all files if they are
/// unsupported here, else for this call.
pub(crate) fn move_pieces(ways: &Ways, moves: &mut impl Moves, size: usize) -> Result<usize, Errno> {
    let (mut done, mut only_first) = (0, false);
    while done < size {
        let piece = ways.race().next(size - done, only_first);
        let recorded = event::clock();
        let began = moves.now_ns();
        match moves.piece(done, &piece) {
            Ok(0) => {
                ways.race().give_up(&piece);
                break;
            }
            Ok(count) => {
                let took_ns = moves.now_ns().saturating_sub(began);
                ways.race().note(&piece, count, took_ns);
                let (way, is_trial) = (piece.way as u8, piece.is_trial());
                event::record_at(
                    recorded,
                    &Event::Moved { way, bytes: count as u64, took: took_ns, is_trial },
                );
                done += count;
            }
            Err(errno) if piece.way != ways.first => {
                ways.race().give_up(&piece);
                if is_lacking(errno) {
                    ways.race().exclude(piece.way);
                }
                only_first = true;
            }
            Err(_) if done > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

/// Returns true for the answers of a kernel or a filesystem that does not support mappings or populating them.
fn is_lacking(errno: Errno) -> bool {
    [Errno::INVAL, Errno::NODEV, Errno::NOSYS, Errno::OPNOTSUPP].contains(&errno)
}

#[cfg(test)]
mod tests;
