//! Open, read and close as one linked chain on a direct descriptor, without a return to user space.
//!
//! The file gets no descriptor of the process, only a slot in the ring's own table. The open is linked to the read, so
//! that a failed open skips it. The read is hard-linked to the close, because a short read breaks a plain link and
//! would leave the file open. Invariant: a slot is reused only after its close has completed (guard:
//! `a_direct_slot_is_not_reused_before_its_close`). Needs Linux 5.19 for a table that starts empty.

use io_uring::squeue::{Entry, Flags};
use io_uring::{IoUring, opcode, types};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::buffers::Block;
use crate::confine;
use crate::descriptor::Fd;
use crate::name::Name;
use crate::ring::flight::{Step, Token};
use crate::ring::request::{answer, fd_of};
use crate::slots::Key;

/// Maximum number of chains in flight.
pub(super) const MOST: u32 = 64;
/// Number of requests in a chain.
pub(super) const STEPS: usize = 3;

/// Flags of a chain's open. O_CLOEXEC fails with EINVAL for direct descriptors.
fn open_flags() -> OFlags {
    confine::open_flags(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, false)
}

/// The ring's table of direct descriptors.
#[derive(Default)]
pub(super) struct Table {
    /// `None` until the first chain asks, then true if the kernel supports such tables.
    registered: Option<bool>,
    free: Vec<u32>,
}

impl Table {
    /// Registers the table on the first call; returns false if it is unsupported.
    pub(super) fn is_there(&mut self, io: &IoUring) -> bool {
        *self.registered.get_or_insert_with(|| {
            let there =
                io.params().is_feature_linked_file() && io.submitter().register_files_sparse(MOST).is_ok();
            if there {
                self.free = (0..MOST).rev().collect();
            }
            there
        })
    }

    pub(super) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    pub(super) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Takes back the slot of a chain whose completions have all been taken.
    pub(super) fn give_back(&mut self, io: &IoUring, chain: &Chain) {
        let is_closed = chain.opened.is_none_or(|opened| opened < 0) || chain.closed.is_some_and(|c| c >= 0);
        // A slot that can't be emptied is not reused.
        if is_closed || io.submitter().register_files_update(chain.place, &[-1]).is_ok() {
            self.free.push(chain.place);
        }
    }
}

/// Progress of a chain.
#[derive(Debug)]
pub(super) struct Chain {
    place: u32,
    opened: Option<i32>,
    read: Option<i32>,
    closed: Option<i32>,
}

impl Chain {
    pub(super) fn new(place: u32) -> Self {
        Self { place, opened: None, read: None, closed: None }
    }

    /// Takes the answer to one step. After the last, returns the number of bytes read or the error.
    pub(super) fn take(&mut self, step: Step, result: i32) -> Option<Result<u32, Errno>> {
        match step {
            Step::First => self.opened = Some(result),
            Step::Read => self.read = Some(result),
            Step::Close => self.closed = Some(result),
        }
        let (opened, read) = (self.opened?, self.read?);
        self.closed.map(|_| answer(opened).and_then(|_| answer(read)))
    }
}

/// Builds the three entries of a chain that reads `name` into `block`.
pub(super) fn entries(key: Key, place: u32, dir: &Fd, name: &Name, block: &Block) -> Option<[Entry; STEPS]> {
    let target = types::DestinationSlot::try_from_slot_target(place).ok()?;
    let size = u32::try_from(block.capacity()).ok()?;
    let file = types::Fixed(place);
    let token = |step| Token::Request(key, step).to_user_data();
    let open = opcode::OpenAt::new(fd_of(dir), name.as_c_str().as_ptr())
        .file_index(Some(target))
        .flags(open_flags().bits().cast_signed());
    let read = opcode::Read::new(file, block.address(), size);
    Some([
        open.build().flags(Flags::IO_LINK).user_data(token(Step::First)),
        read.build().flags(Flags::IO_HARDLINK).user_data(token(Step::Read)),
        opcode::Close::new(file).build().user_data(token(Step::Close)),
    ])
}
