//! Hash of a file's content that is the same for stored zeros and for holes.

/// Size of a hashed piece. Pieces of zeros are skipped, so a hole of 1 TiB costs nothing.
pub(crate) const PIECE_BYTES: u64 = 4096;

/// BLAKE3 over the size, and over offset and bytes of each 4 KiB piece that is not all zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentHash(blake3::Hash);

/// Hashes pieces in ascending order.
#[derive(Default)]
pub(crate) struct Hasher(blake3::Hasher);

impl Hasher {
    /// Adds bytes at `offset`, which is a multiple of the piece size or lies behind the file's nominal end. Runs of
    /// zeros may be skipped. Returns the number of pieces that are zeros.
    pub(crate) fn add(&mut self, offset: u64, bytes: &[u8]) -> u64 {
        let mut offset = offset;
        let mut zeros = 0;
        for piece in bytes.chunks(4096) {
            if piece.iter().any(|byte| *byte != 0) {
                self.0.update(&offset.to_le_bytes());
                self.0.update(piece);
            } else {
                zeros += 1;
            }
            offset += PIECE_BYTES;
        }
        zeros
    }

    /// Returns the hash of a file of `size` bytes.
    pub(crate) fn finish(mut self, size: u64) -> ContentHash {
        self.0.update(&size.to_le_bytes());
        ContentHash(self.0.finalize())
    }
}
