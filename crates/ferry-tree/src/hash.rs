//! One value for a file's content, the same whether its zeros are stored or are holes.

/// Bytes are hashed in pieces of this size, and pieces of zeros are left out, so a 1 TiB hole costs nothing.
pub(crate) const PIECE_BYTES: u64 = 4096;

/// What a file holds: BLAKE3 over the offset and bytes of each 4 KiB piece that is not all zeros, and the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentHash(blake3::Hash);

/// Hashes pieces given in ascending order.
#[derive(Default)]
pub(crate) struct Hasher(blake3::Hasher);

impl Hasher {
    /// Adds what the file holds at `offset`, a multiple of the piece size or behind the end that the file's size
    /// says it has; zeros that were left out may be given.
    /// Says how many pieces were zeros.
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

    /// The hash of a file of `size` bytes.
    pub(crate) fn finish(mut self, size: u64) -> ContentHash {
        self.0.update(&size.to_le_bytes());
        ContentHash(self.0.finalize())
    }
}
