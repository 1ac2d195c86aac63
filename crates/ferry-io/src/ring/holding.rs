//! Descriptors that a ring holds, so that the kernel closes them after the ring, in its own time.

use io_uring::IoUring;
use rustix::fd::RawFd;

/// A ring that holds descriptors, and does nothing else.
pub(crate) struct Holding(#[allow(dead_code, reason = "it is only kept")] IoUring);

/// Opens a ring that holds these descriptors; `None` if there can't be one.
pub(crate) fn hold(descriptors: &[RawFd]) -> Option<Holding> {
    let ring = IoUring::builder().dontfork().build(1).ok()?;
    ring.submitter().register_files(descriptors).ok()?;
    Some(Holding(ring))
}
