//! The sequential program with every block of a file in flight for which there is memory: eio's `eurcp`, which document
//! 003 measures, for trees.

use ferry_io::Io;

use super::{Failure, Place, sequential};

pub(super) async fn copy(io: &Io, source: Place, target: Place) -> Result<(), Failure> {
    sequential::with_depth(io, source, target, io.blocks()).await
}
