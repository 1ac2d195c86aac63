//! A run of files of one folder, transferred one after another without a request, a future or a turn for each.
//!
//! Each file takes the calls of [`crate::Dir::transfer`], which never block: opens and reads are asked. The first file
//! that is not plain ends the run. It is handed back with its progress, and goes on as a request of its own.
//!
//! The caller ends the run where [`TransferMany::is_over`] says so: when completions or timers are due as after any
//! other inline calls, when the scope is cancelled, and after [`MOST`] files.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use crate::buffers::Block;
use crate::cancel;
use crate::descriptor::{Dir, Fd, File};
use crate::entry::{NewMode, Stat};
use crate::error::Result;
use crate::event;
use crate::loaded::{Content, Loaded};
use crate::name::Name;
use crate::op::{FileOrEntry, Into, Op, Outcome, expect_outcome};
use crate::route::{Reason, SLOW};
use crate::worker::{Submit, Worker, current, submit};

/// Files transferred by one run.
const MOST: u32 = 32;
/// Runs that are not begun after one whose files were slow. Their files are timed one by one meanwhile.
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
    /// Set if the attributes of the new files are wanted.
    pub identifies: bool,
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
    /// Its attributes, if they are wanted and were had.
    pub made: Option<Stat>,
}

/// A file that a run has not stored, with its progress.
pub struct Rest(Progress);

enum Progress {
    Loaded(Box<Loaded>),
    /// Not in memory, or failed: it is requested.
    Requested(Box<Submit>),
}

impl std::fmt::Debug for Rest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Progress::Loaded(loaded) => f.debug_tuple("Loaded").field(loaded).finish(),
            Progress::Requested(_) => f.write_str("Requested"),
        }
    }
}

impl Rest {
    /// Loads the file as [`crate::Dir::transfer`] does, without storing it.
    ///
    /// # Errors
    /// Those of [`crate::Dir::load`].
    pub async fn load(self) -> Result<Loaded> {
        match self.0 {
            Progress::Loaded(loaded) => Ok(*loaded),
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
    /// Returns true if [`Self::transfer_many`] is worth a try: small files of this folder are asked for, and no other
    /// fibers are due.
    #[must_use]
    pub fn transfers_many(&self) -> bool {
        current().begins_run(&self.fd)
    }

    /// Begins a run of transfers from this folder to files of the same names in `target`.
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
    /// Returns true if the run must end: other fibers are due, the scope is cancelled, the last file was not plain, or
    /// enough files were transferred.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.block.is_none() || self.count >= MOST || self.worker.is_due() || cancel::is_cancelled()
    }

    /// Transfers a file.
    ///
    /// # Panics
    /// After a file that was not plain.
    pub fn transfer(&mut self, name: &Name) -> Transferred {
        assert!(self.block.is_some(), "the run is over");
        self.count += 1;
        match self.load(name) {
            Ok(loaded) => self.store(name, loaded),
            Err(request) => Transferred::Left(Rest(Progress::Requested(request))),
        }
    }

    /// Loads a file, if it is in memory; otherwise returns its request.
    fn load(&mut self, name: &Name) -> std::result::Result<Box<Loaded>, Box<Submit>> {
        let (dir, TransferPlan { xattrs, alone, .. }) = (Arc::clone(&self.source), self.plan);
        let block = self.block.take();
        let mut op = Op::Load { dir, name: name.clone(), xattrs, alone, block, opened: None, into: None };
        let asked = event::clock();
        match self.worker.ask(&mut op, asked) {
            Err(choice) => Err(Box::new(Submit::routed(op, choice, asked))),
            Ok(Ok(Outcome::Loaded(loaded))) => Ok(loaded),
            Ok(Ok(other)) => unreachable!("a backend answered with {other:?}"),
            // It is tried again, perhaps after a pause.
            Ok(Err(_)) => Err(Box::new(submit(op))),
        }
    }

    /// Makes the new file of a plain one.
    fn store(&mut self, name: &Name, mut loaded: Box<Loaded>) -> Transferred {
        let left = |loaded| Transferred::Left(Rest(Progress::Loaded(loaded)));
        if self.plan.needs_whole && !self.plan.mode.is_whole(&loaded.stat, &loaded.xattrs) {
            return left(loaded);
        }
        let block = self.worker.store(name, &self.into, &mut loaded, Reason::Asked);
        let (Content::Stored(file, bytes), Some(block)) = (&loaded.content, block) else {
            return left(loaded);
        };
        if self.plan.times {
            let op = Op::SetTimes { file: file.fd(), times: loaded.stat.times };
            if self.worker.do_inline(op, Reason::Changes).is_err() {
                return left(loaded);
            }
        }
        let mut made = None;
        if self.plan.identifies {
            let op = Op::Stat { place: FileOrEntry::Open(file.fd()), follow: false, birth: false };
            if let Ok(Outcome::Stat(stat)) = self.worker.do_inline(op, Reason::RecentlyFast) {
                made = Some(stat);
            }
        }
        self.block = Some(block);
        Transferred::Stored(Stored { file: file.clone(), bytes: *bytes, size: loaded.stat.size, made })
    }
}

impl Drop for TransferMany {
    /// Some filesystems can't be asked: their calls block.
    fn drop(&mut self) {
        let worker = &*self.worker;
        let took = worker.now().saturating_duration_since(self.began);
        if took > 2 * SLOW * self.count {
            worker.end_slow_run(PAUSE);
        }
    }
}
