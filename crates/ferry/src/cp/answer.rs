//! Reads a yes or no from standard input.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Longest wait between checks of `is_over`: another thread may have received the signal.
const PATIENCE: Duration = Duration::from_millis(100);

/// Returns true if the next line starts with `y` or `Y`; false at the end of input or once `is_over`.
///
/// Reads single bytes, because the rest of the input may belong to another process.
pub(super) fn is_yes(is_over: &dyn Fn() -> bool) -> bool {
    let mut first = None;
    while let Some(byte) = next(is_over).filter(|byte| *byte != b'\n') {
        first.get_or_insert(byte);
    }
    matches!(first, Some(b'y' | b'Y'))
}

fn next(is_over: &dyn Fn() -> bool) -> Option<u8> {
    let input = std::io::stdin();
    let patience = Timespec::try_from(PATIENCE).ok();
    while !is_over() {
        let mut ready = [PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN)];
        match poll(&mut ready, patience.as_ref()) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return None,
        }
        let mut byte = [0];
        match rustix::io::read(&input, &mut byte) {
            Ok(1) => return Some(byte[0]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(_) | Err(_) => return None,
        }
    }
    None
}
