//! Devices of both sides that fail or are gone while a run uses them.
//!
//! An unplugged device fails each request, so each entry in flight and each later one would be reported. A bad sector costs
//! one file, and the run goes on. Both begin with the same error, so both devices are asked after it: SOURCE by reads past the
//! page cache, TARGET by a small file that is synced (`health.rs` of ferry-io). If each answers, or can't be asked, the failure
//! belongs to its path. Otherwise the run is stopped, and later failures for this reason are not reported. A device that did
//! not fail is not asked again for a second. If a copy has several operands, the device of one ends only that operand: the
//! others may be on other devices. Later operands on that device are passed over.
//!
//! Limits: what is mounted within a tree is not asked about, and with `--parents` only the device of the working directory is.
//! A source can't be asked if its filesystem has no direct I/O, or if it has no file of 4 KiB or more (on ext4 and XFS: no file with
//! bytes). A device that is slow to fail holds up all workers that have met an error.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use ferry_io::{Cause, Dir, Errno, Error, Health, Io};

use crate::mutex::lock;
use crate::report::{FailureKind, Side};
use crate::staging::names::next_hidden_name;

/// The devices of both sides of a run.
pub struct Devices {
    io: Io,
    /// The folders that both trees begin at; `None` if no device is asked.
    roots: Mutex<Option<Roots>>,
    /// The side whose device has stopped the run.
    lost: OnceLock<Side>,
    /// Set while one of several operands is copied.
    is_one_of_several: AtomicBool,
    /// Set once the source's device has ended the present operand.
    ends_operand: AtomicBool,
    /// Number of operands that ended early.
    ended_operands: AtomicU64,
    /// Numbers of the devices that have ended them.
    gone: Mutex<Vec<u64>>,
    /// Set once a failure for this reason was reported.
    is_reported: AtomicBool,
}

/// Time for which a device is not asked again that did not fail.
const HOLDS: Duration = Duration::from_secs(1);

struct Roots {
    /// Time at which the source's and the target's device were last asked, and did not fail.
    answered: [Option<Instant>; 2],
    /// `None` until the source of the present operand is open.
    source: Option<Dir>,
    target: Option<Dir>,
    /// Set if the target could be written to when the run began.
    is_writable: bool,
}

impl fmt::Debug for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Devices").field("lost", &self.lost).finish_non_exhaustive()
    }
}

impl Devices {
    /// Returns the devices of a run. None is asked before [`Self::watch`].
    #[must_use]
    pub fn new(io: Io) -> Self {
        Self {
            io,
            roots: Mutex::default(),
            lost: OnceLock::new(),
            is_one_of_several: AtomicBool::new(false),
            ends_operand: AtomicBool::new(false),
            ended_operands: AtomicU64::new(0),
            gone: Mutex::default(),
            is_reported: AtomicBool::new(false),
        }
    }

    /// Begins the next of several operands, after all work for the one before has ended.
    pub(crate) fn begin_operand(&self) {
        self.is_one_of_several.store(true, Ordering::SeqCst);
        if self.ends_operand.swap(false, Ordering::SeqCst) {
            self.is_reported.store(false, Ordering::SeqCst);
        }
        if let Some(roots) = &mut *lock(&self.roots) {
            roots.source = None;
        }
    }

    /// Returns true if nothing more of the present operand is to be begun, because its device fails or is gone.
    pub(crate) fn ends_operand(&self) -> bool {
        self.ends_operand.load(Ordering::Relaxed)
    }

    /// Returns the number of operands that ended early because their device fails or is gone.
    pub(crate) fn ended_operands(&self) -> u64 {
        self.ended_operands.load(Ordering::SeqCst)
    }

    /// Names the folders whose devices are asked after an error.
    pub fn watch(&self, source: &Dir, target: Option<&Dir>) {
        let mut roots = lock(&self.roots);
        // A target that was writable for an operand before has become read-only during the run.
        let was_writable = roots.as_ref().is_some_and(|roots| roots.is_writable);
        let is_writable = was_writable || target.is_some_and(|target| !target.is_read_only());
        let (device, source, target) = (source.device(), Some(source.clone()), target.cloned());
        *roots = Some(Roots { answered: [None; 2], source, target, is_writable });
        // It is not asked again, and its first failure was reported.
        if lock(&self.gone).contains(&device) {
            self.is_reported.store(true, Ordering::SeqCst);
            self.end_operand(device);
        }
    }

    fn end_operand(&self, device: u64) {
        let mut gone = lock(&self.gone);
        if !gone.contains(&device) {
            gone.push(device);
        }
        if !self.ends_operand.swap(true, Ordering::SeqCst) {
            self.ended_operands.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Returns the side whose device has stopped the run.
    #[must_use]
    pub fn lost(&self) -> Option<Side> {
        self.lost.get().copied()
    }

    /// Returns true if a failure is to be reported. If its reason is a device that fails or is gone, stops the run or the
    /// operand; then the first failure is reported, and no other.
    #[must_use]
    pub fn lets_report(&self, kind: &FailureKind) -> bool {
        let Some(error) = kind.error() else { return true };
        !self.explains(error) || !self.is_reported.swap(true, Ordering::SeqCst)
    }

    /// Returns true if a device that fails or is gone is the reason for an error, and stops the run or the operand.
    pub(crate) fn explains(&self, error: &Error) -> bool {
        let Cause::Errno(errno) = error.cause else { return false };
        if errno != Errno::ROFS && !Health::is_in_doubt(errno) {
            return false;
        }
        // Other workers wait: their errors may have the same cause.
        let mut roots = lock(&self.roots);
        if self.lost().is_some() {
            return true;
        }
        if self.io.is_stopped() {
            return false;
        }
        let Some(roots) = &mut *roots else { return false };
        let stop = || {
            self.lost.get_or_init(|| Side::Target);
            self.io.stop();
        };
        if self.ends_operand() {
            // The target may be on the same device, or fail as well.
            if roots.fails(Side::Target) {
                stop();
            }
            return errno != Errno::ROFS || self.lost().is_some();
        }
        // Both: folders of both sides are opened again in many steps. Only a target becomes read-only.
        let sides = if errno == Errno::ROFS { &[Side::Target][..] } else { &[Side::Source, Side::Target] };
        let Some(&side) = sides.iter().find(|side| roots.fails(**side)) else { return false };
        match (side, &roots.source) {
            (Side::Target, _) => stop(),
            (Side::Source, Some(source)) if self.is_one_of_several.load(Ordering::SeqCst) => {
                let device = source.device();
                if roots.fails(Side::Target) {
                    stop();
                } else {
                    self.end_operand(device);
                }
            }
            (Side::Source, _) => {
                self.lost.get_or_init(|| side);
                self.io.stop();
            }
        }
        true
    }
}

impl Roots {
    /// Asks a device. Returns true if it fails or is gone.
    fn fails(&mut self, side: Side) -> bool {
        let answered = &mut self.answered[usize::from(side == Side::Target)];
        if answered.is_some_and(|at| at.elapsed() < HOLDS) {
            return false;
        }
        let health = match (side, &self.source, &self.target) {
            (Side::Source, Some(source), _) => source.read_health(),
            (Side::Target, _, Some(target)) => target.write_health(next_hidden_name, self.is_writable),
            (Side::Source, None, _) | (Side::Target, _, None) => Health::Unknown,
        };
        let fails = matches!(health, Health::Fails(_));
        if !fails {
            *answered = Some(Instant::now());
        }
        fails
    }
}
