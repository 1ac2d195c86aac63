//! Calls that may block without bound: opening a FIFO, reading a terminal.
//!
//! A thread of the pool spends a short time on such a request and then puts it back. So other requests make progress,
//! and the request can be cancelled at any time. Nothing here blocks in the kernel except poll(2) with a timeout: FIFOs
//! are opened with O_NONBLOCK, which they keep. For a reader, tee(2) shows that the other end is open: it distinguishes
//! "no writer" from "nothing written yet" without consuming a byte. For a writer, the end of ENXIO shows it.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};

use super::{Patience, call, count_call, perform};
use crate::confine::at_flags;
use crate::descriptor::{Descriptor, Handle};
use crate::op::{AT_POSITION, Op, Outcome};

/// Shortest and longest time spent on a request at once.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(20);

/// Returns true if a request may block for ever.
pub(crate) fn may_wait_for_ever(op: &Op) -> bool {
    if let Op::Open { flags, .. } = op {
        // A file created with O_EXCL is regular.
        let never = OFlags::NONBLOCK | OFlags::DIRECTORY | OFlags::PATH | OFlags::EXCL | OFlags::TMPFILE;
        return !flags.intersects(never);
    }
    matches!(op, Op::Read { at: AT_POSITION, .. } | Op::Write { at: AT_POSITION, .. })
}

/// Progress of such a request.
#[derive(Debug, Default)]
pub(crate) struct Wait {
    /// The reader's end of a FIFO, kept open so that a writer finds it.
    opened: Option<Descriptor>,
    /// Time of the last wait, and its result: true if the descriptor was ready.
    waited: Duration,
    was_ready: bool,
}

impl Wait {
    /// Spends some time on the request; `None` if it has to wait longer.
    pub(crate) fn go_on(&mut self, op: &mut Op) -> Option<Result<Outcome, Errno>> {
        let limit = (self.waited * 2).clamp(SHORTEST, LONGEST);
        if let Op::Open { flags, .. } = op {
            let wanted = *flags;
            let answer = self.open(op, limit);
            if let Op::Open { flags, .. } = op {
                *flags = wanted;
            }
            return answer;
        }
        let answer = perform(op, Patience::Wait);
        if !matches!(answer, Err(Errno::AGAIN)) {
            return Some(answer);
        }
        if let Op::Read { file, .. } = op {
            self.pass(limit, Some((file.fd(), PollFlags::IN)));
        } else if let Op::Write { file, .. } = op {
            self.pass(limit, Some((file.fd(), PollFlags::OUT)));
        } else {
            return Some(answer);
        }
        None
    }

    fn open(&mut self, op: &mut Op, limit: Duration) -> Option<Result<Outcome, Errno>> {
        let Op::Open { flags, .. } = op else { return None };
        *flags |= OFlags::NONBLOCK;
        let reads = !flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        if self.opened.is_none() {
            match perform(op, Patience::Wait) {
                Ok(Outcome::Descriptor(opened)) if reads && is_fifo(opened.fd()) => {
                    self.opened = Some(opened);
                }
                Err(Errno::NXIO) if leads_to_fifo(op) => {
                    self.pass(limit, None);
                    return None;
                }
                answer => return Some(answer),
            }
        }
        let file = self.opened.take()?;
        if has_writer(file.fd()) || self.pass(limit, Some((file.fd(), PollFlags::IN))) {
            return Some(Ok(Outcome::Descriptor(file)));
        }
        self.opened = Some(file);
        None
    }

    /// Waits until a descriptor is ready or the time is up; returns true if it is ready.
    fn pass(&mut self, limit: Duration, watched: Option<(BorrowedFd<'_>, PollFlags)>) -> bool {
        self.waited = limit;
        // A descriptor that was reported ready, but was not, is not polled again at once.
        let watched = watched.filter(|_| !self.was_ready);
        let (Some((file, wanted)), Ok(limit)) = (watched, Timespec::try_from(limit)) else {
            std::thread::sleep(limit);
            self.was_ready = false;
            return false;
        };
        let mut polled = [PollFd::from_borrowed_fd(file, wanted)];
        count_call();
        self.was_ready = poll(&mut polled, Some(&limit)).is_ok_and(|ready| ready > 0);
        self.was_ready
    }
}

fn is_fifo(file: BorrowedFd<'_>) -> bool {
    call(|| rustix::fs::fstat(file)).is_ok_and(|stat| is_kind_fifo(&stat))
}

/// Returns true if the file that could not be opened is a FIFO: ENXIO has other reasons too.
fn leads_to_fifo(op: &Op) -> bool {
    let Op::Open { dir, name, follow, .. } = op else { return false };
    let flags = at_flags(*follow);
    call(|| rustix::fs::statat(dir.fd(), name.as_c_str(), flags)).is_ok_and(|stat| is_kind_fifo(&stat))
}

fn is_kind_fifo(stat: &rustix::fs::Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Fifo
}

/// Returns true if a FIFO that is open for reading has a writer or data.
fn has_writer(file: BorrowedFd<'_>) -> bool {
    let Ok((reader, writer)) = call(|| pipe_with(PipeFlags::CLOEXEC)) else { return false };
    let (_reader, writer) = (Handle::from(reader), Handle::from(writer));
    // Without a writer the answer is 0; with a writer but no data, EAGAIN.
    !matches!(call(|| tee(file, writer.fd(), 1, SpliceFlags::NONBLOCK)), Ok(0))
}
