//! Calls that may wait without bound for somebody else: the other end of a FIFO, a terminal's line.
//!
//! Called by the pool, whose thread gives such a request a short while and then puts it back: others are not kept from
//! running by it, and it can be given up at any time. So nothing here blocks in the kernel but poll(2) with a limit:
//! FIFOs are opened with O_NONBLOCK, and stay so. That the other end is there is seen, for a reader, by tee(2), which
//! tells "nobody writes" from "nothing written yet" without taking a byte; for a writer, by the end of ENXIO.

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

/// The first and the longest while that a request gets at a time.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(20);

/// Whether a request may wait for somebody who may never come.
pub(crate) fn may_wait_for_ever(op: &Op) -> bool {
    if let Op::Open { flags, .. } = op {
        // What is made exclusively is a regular file.
        let never = OFlags::NONBLOCK | OFlags::DIRECTORY | OFlags::PATH | OFlags::EXCL | OFlags::TMPFILE;
        return !flags.intersects(never);
    }
    matches!(op, Op::Read { at: AT_POSITION, .. } | Op::Write { at: AT_POSITION, .. })
}

/// How far such a request has come.
#[derive(Debug, Default)]
pub(crate) struct Wait {
    /// The reader's end of a FIFO: closed in between, nobody would find it.
    opened: Option<Descriptor>,
    /// How long it waited last time, and whether the descriptor was ready then.
    waited: Duration,
    was_ready: bool,
}

impl Wait {
    /// Goes on with the request for a while; `None` if it has to wait longer.
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

    /// Lets time pass, until a descriptor is ready if there is one; whether it is.
    fn pass(&mut self, limit: Duration, watched: Option<(BorrowedFd<'_>, PollFlags)>) -> bool {
        self.waited = limit;
        // What is said to be ready and was not is not asked again at once.
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

/// Whether what could not be opened is a FIFO: ENXIO has other reasons too.
fn leads_to_fifo(op: &Op) -> bool {
    let Op::Open { dir, name, follow, .. } = op else { return false };
    let flags = at_flags(*follow);
    call(|| rustix::fs::statat(dir.fd(), name.as_c_str(), flags)).is_ok_and(|stat| is_kind_fifo(&stat))
}

fn is_kind_fifo(stat: &rustix::fs::Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Fifo
}

/// Whether a FIFO that was opened for reading has a writer, or what one has written.
fn has_writer(file: BorrowedFd<'_>) -> bool {
    let Ok((reader, writer)) = call(|| pipe_with(PipeFlags::CLOEXEC)) else { return false };
    let (_reader, writer) = (Handle::from(reader), Handle::from(writer));
    // With no writer it answers 0; with one that has written nothing yet, EAGAIN.
    !matches!(call(|| tee(file, writer.fd(), 1, SpliceFlags::NONBLOCK)), Ok(0))
}
