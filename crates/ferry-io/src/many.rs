//! A run of files of one folder, transferred one after another without a request, a future or a turn for each.
//!
//! Each file takes the calls of [`crate::Dir::transfer`], which never block: opens and reads are asked. The first file
//! that is not plain ends the run. It is handed back with its progress, and goes on as a request of its own.
//!
//! Where new files share extents, a plain file is opened, not read. One that can't share is handed back as well, with
//! its new file.
//!
//! The caller ends the run where [`TransferMany::is_over`] says so: when completions are due as after any other inline
//! calls, when the files are slow, when the scope is cancelled, and after [`MOST`] files. While a recording is made, no
//! run begins, so that each file has a fiber with its name.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::OFlags;

use crate::buffers::Block;
use crate::cancel;
use crate::descriptor::{Dir, Fd, File};
use crate::entry::{FileKind, NewMode};
use crate::error::{Error, Result};
use crate::event;
use crate::file::mode_bits;
use crate::loaded::{Content, Loaded};
use crate::name::Name;
use crate::op::{Into, Op, Outcome, expect_outcome};
use crate::route::{Reason, SLOW};
use crate::worker::{Submit, Worker, current};

/// Files transferred by one run.
const MOST: u32 = 32;
/// Files after which the time is looked at.
const LOOKS: u32 = 4;
/// Files of this worker that begin no run after a slow one. The router judges them one by one meanwhile.
const PAUSE: u32 = 64;

/// Treatment of the files of a run.
#[derive(Debug, Clone, Copy)]
pub struct TransferPlan {
    /// Set if extended attributes are read.
    pub xattrs: bool,
    /// Set if a file with several names is handed back.
    pub alone: bool,
    /// Modes of the new files.
    pub mode: NewMode,
    /// Set if a file is handed back unless it gets its whole mode at once.
    pub needs_whole: bool,
    /// Set if the new files get their sources' times.
    pub times: bool,
    /// Set if the new files share their sources' extents (FICLONE): no bytes are read.
    pub shares: bool,
}

/// Outcome of one file.
#[derive(Debug)]
pub enum Transferred {
    /// All bytes are stored in a new file.
    Stored(Stored),
    /// The file is not plain, and the run is over.
    Left(Rest),
}

/// A new file with all bytes of its source, still open.
#[derive(Debug)]
pub struct Stored {
    /// The new file.
    pub file: File,
    /// Number of its bytes.
    pub bytes: u64,
    /// Size of the source as it was opened.
    pub size: u64,
}

/// A file that a run has not stored, with its progress.
pub struct Rest(Progress);

enum Progress {
    Loaded(Box<Loaded>),
    /// Open, and the new file that could not share its extents.
    Apart(Box<Loaded>, File),
    /// Not in memory: it is requested.
    Requested(Box<Submit>),
    Failed(Error),
}

impl std::fmt::Debug for Rest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Progress::Loaded(loaded) => f.debug_tuple("Loaded").field(loaded).finish(),
            Progress::Apart(loaded, _) => f.debug_tuple("Apart").field(loaded).finish(),
            Progress::Requested(_) => f.write_str("Requested"),
            Progress::Failed(error) => f.debug_tuple("Failed").field(error).finish(),
        }
    }
}

impl Rest {
    /// Returns the new file that could not share its source's extents: it is empty, and the caller removes it.
    #[must_use]
    pub fn refused(&self) -> Option<&File> {
        match &self.0 {
            Progress::Apart(_, refused) => Some(refused),
            Progress::Loaded(_) | Progress::Requested(_) | Progress::Failed(_) => None,
        }
    }

    /// Loads the file as [`crate::Dir::transfer`] does, without storing it.
    ///
    /// # Errors
    /// Those of [`crate::Dir::load`].
    pub async fn load(self) -> Result<Loaded> {
        match self.0 {
            Progress::Loaded(loaded) | Progress::Apart(loaded, _) => Ok(*loaded),
            Progress::Failed(error) => Err(error),
            Progress::Requested(request) => {
                expect_outcome!(request.await.1, Outcome::Loaded(loaded) => *loaded)
            }
        }
    }
}

/// A run of files that are transferred to one folder. It holds one block.
pub struct TransferMany {
    worker: Rc<Worker>,
    source: Fd,
    into: Into,
    plan: TransferPlan,
    block: Option<Block>,
    count: u32,
    began: Instant,
}

impl Dir {
    /// Returns true if a run may begin with the next file: small files of this folder are asked for, no other fibers are
    /// due, and no slow run came shortly before. Call it once for each file.
    #[must_use]
    pub fn transfers_many(&self, first: &Name) -> bool {
        current().begins_run(&self.fd, first)
    }

    /// Begins a run of transfers from this folder to files of the same names in `target`, if [`Self::transfers_many`] has
    /// said so: a run takes no other route than the worker's own thread.
    #[must_use]
    pub fn transfer_many(&self, target: &Self, block: Block, plan: TransferPlan) -> TransferMany {
        let worker = current();
        TransferMany {
            began: worker.now(),
            worker,
            source: Arc::clone(&self.fd),
            into: Into { dir: Arc::clone(&target.fd), mode: plan.mode },
            plan,
            block: Some(block),
            count: 0,
        }
    }
}

impl TransferMany {
    /// Returns true if the run must end: the last file was not plain, enough files were transferred, they are slow, other
    /// fibers are due, or the scope is cancelled. Call it once after each file.
    #[must_use]
    pub fn is_over(&mut self) -> bool {
        let is_looked_at = self.count > 0 && self.count.is_multiple_of(LOOKS);
        self.block.is_none()
            || self.count >= MOST
            || is_looked_at && self.is_slow()
            || self.worker.is_due()
            || cancel::is_cancelled()
    }

    /// Returns true if the files are slow because the thread slept, and pauses later runs then: some filesystems can't be
    /// asked, and their calls block.
    fn is_slow(&self) -> bool {
        let took = self.worker.now().saturating_duration_since(self.began);
        self.count > 0 && took > 2 * SLOW * self.count && self.worker.ends_slow_run(PAUSE)
    }

    /// Transfers a file.
    ///
    /// # Panics
    /// After a file that was not plain.
    pub fn transfer(&mut self, name: &Name) -> Transferred {
        assert!(self.block.is_some(), "the run is over");
        self.count += 1;
        let transferred = match self.load(name) {
            Ok(loaded) => self.store(name, loaded),
            Err(progress) => Transferred::Left(Rest(progress)),
        };
        if matches!(transferred, Transferred::Left(_)) {
            self.block = None;
        }
        transferred
    }

    /// Loads a file, if it is in memory; otherwise returns its request or its error.
    fn load(&mut self, name: &Name) -> std::result::Result<Box<Loaded>, Progress> {
        let (dir, TransferPlan { xattrs, alone, .. }) = (Arc::clone(&self.source), self.plan);
        let block = if self.plan.shares { None } else { self.block.take() };
        let mut op = Op::Load { dir, name: name.clone(), xattrs, alone, block, opened: None, into: None };
        let asked = event::clock();
        match self.worker.ask(&mut op, asked) {
            Err(choice) => Err(Progress::Requested(Box::new(Submit::routed(op, choice, asked)))),
            Ok(Ok(Outcome::Loaded(loaded))) => Ok(loaded),
            Ok(Ok(other)) => unreachable!("a backend answered with {other:?}"),
            Ok(Err(errno)) => Err(Progress::Failed(Error::errno(op.operation(), errno))),
        }
    }

    /// Makes the new file of a plain one.
    fn store(&mut self, name: &Name, mut loaded: Box<Loaded>) -> Transferred {
        let left = |loaded| Transferred::Left(Rest(Progress::Loaded(loaded)));
        if self.plan.needs_whole && !self.plan.mode.is_whole(&loaded.stat, &loaded.xattrs) {
            return left(loaded);
        }
        if self.plan.shares {
            if let Some(refused) = self.share(name, &mut loaded) {
                return Transferred::Left(Rest(Progress::Apart(loaded, refused)));
            }
        } else {
            self.block = self.worker.store(name, &self.into, &mut loaded, Reason::Asked);
        }
        let Content::Stored(file, bytes) = &loaded.content else { return left(loaded) };
        if self.plan.times {
            let op = Op::SetTimes { file: file.fd(), times: loaded.stat.times };
            if self.worker.do_inline(op, Reason::Changes).is_err() {
                return left(loaded);
            }
        }
        Transferred::Stored(Stored { file: file.clone(), bytes: *bytes, size: loaded.stat.size })
    }

    /// Makes the new file of a plain one that is open, with the same extents. Returns a new file that could not share
    /// them.
    fn share(&self, name: &Name, loaded: &mut Loaded) -> Option<File> {
        let (stat, plan) = (&loaded.stat, self.plan);
        let is_small = self.block.as_ref().is_some_and(|block| stat.size <= block.capacity() as u64);
        let is_alone = !plan.alone || stat.links == 1;
        let is_plain = stat.kind == FileKind::Regular && stat.size > 0 && !stat.may_have_holes();
        let Content::Open(source) = &loaded.content else { return None };
        if !(is_small && is_alone && is_plain) {
            return None;
        }
        let mode = mode_bits(self.into.mode.of(stat, &loaded.xattrs));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let op = Op::Open { dir: Arc::clone(&self.into.dir), name: name.clone(), flags, mode, follow: false };
        // The caller tries again, and gets the error.
        let Ok(Outcome::Descriptor(made)) = self.worker.do_inline(op, Reason::Changes) else { return None };
        let made = File::from_descriptor(made.on(self.into.dir.device()));
        let op = Op::Clone { source: source.fd(), target: made.fd() };
        if self.worker.do_inline(op, Reason::Changes).is_err() {
            // Others may be refused, too, and each costs the calls that take it back.
            self.worker.pause_runs(PAUSE);
            return Some(made);
        }
        loaded.content = Content::Stored(made, stat.size);
        None
    }
}

impl Drop for TransferMany {
    /// A run that ends early may have been slow, too.
    fn drop(&mut self) {
        self.is_slow();
    }
}
