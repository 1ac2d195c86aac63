//! Moves the pieces of a large file (`choose.rs`), each way at the speed that the device's character gives it.

use rustix::io::Errno;

use super::Answering;
use crate::choose::{Means, Moves, Piece, Ways, move_pieces};
use crate::descriptor::Fd;

/// Bytes of one step of copy_file_range(2), as on the kernel.
const STEP: usize = 1 << 20;

impl Answering<'_> {
    pub(super) fn copy_pieces(
        &mut self,
        (source, target): (&Fd, &Fd),
        at: u64,
        size: usize,
        ways: &Ways,
    ) -> Result<usize, Errno> {
        move_pieces(ways, &mut Pieces { answering: self, source, target, at, took_ns: 0 }, size)
    }
}

struct Pieces<'a, 'b> {
    answering: &'a mut Answering<'b>,
    source: &'a Fd,
    target: &'a Fd,
    at: u64,
    /// Time that the pieces took so far. The run's clock does not advance by it.
    took_ns: u64,
}

impl Moves for Pieces<'_, '_> {
    fn now_ns(&mut self) -> u64 {
        self.took_ns
    }

    fn piece(&mut self, done: usize, piece: &Piece) -> Result<usize, Errno> {
        let pace = self.answering.character.pace_of(piece.way);
        let step = piece.way.write_bytes().unwrap_or(STEP);
        let until = self.took_ns.saturating_add(piece.limit_ns);
        let mut moved = 0;
        while moved < piece.bytes && self.took_ns <= until {
            let at = self.at + (done + moved) as u64;
            let size = step.min(piece.bytes - moved);
            let (source, target) = ((self.source, at), (self.target, at));
            let copied = match piece.way.means() {
                Means::Kernel => self.answering.copy_range(source, target, size),
                Means::Mapped(_) | Means::Buffered(_) => self.answering.copy_buffered(source, target, size),
            };
            match copied {
                Ok(0) => break,
                Ok(count) => {
                    moved += count;
                    self.took_ns += pace.saturating_mul(count as u64) >> 20;
                }
                Err(_) if moved > 0 => break,
                Err(errno) => return Err(errno),
            }
        }
        Ok(moved)
    }
}
