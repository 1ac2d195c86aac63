//! Observes from another thread when completions become visible, while the submitting thread computes.
//!
//! [`sightings`] submits one direct read at a time. The calling thread then computes without a system call, and enters
//! the kernel only afterwards. A second thread looks at the completion queue all the time. Only the calling thread
//! submits, and only the second one takes completions. It looks instead of waiting for an eventfd, because in DEFER
//! mode the kernel signals an eventfd before it writes the completion.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, types};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};
use thiserror::Error;

use crate::error::SetupError;
use crate::options::Options;
use crate::ring::setup;

/// Size and alignment of a read in bytes.
const BYTES: u32 = 4096;
/// Time between two entries to the kernel after a computation.
const PATIENCE: Duration = Duration::from_micros(100);

/// One completion, as another thread saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// Time from the submission until the other thread saw the completion.
    pub after: Duration,
    /// Time from the submission until the end of the computation.
    pub computed: Duration,
}

/// Reason why nothing could be observed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unseen {
    /// There is no ring.
    #[error(transparent)]
    Ring(#[from] SetupError),
    /// A call failed.
    #[error("{0} failed: {1}")]
    Call(&'static str, Errno),
}

/// Message of the looking thread: the time, and the result of the completion.
type Seen = (Instant, i32);

/// Reads 4 KiB at each of `offsets`, one after another, from a file that is open with O_DIRECT. Calls `compute` after
/// each submission. `processor` is that of the looking thread, which never sleeps.
///
/// # Errors
/// [`Unseen`].
///
/// ```
/// use std::os::unix::fs::OpenOptionsExt as _;
///
/// use ferry_io::{Options, Sighting, Unseen, sightings};
///
/// # let temporary = tempfile::tempdir()?;
/// # std::fs::write(temporary.path().join("file"), vec![0; 4096])?;
/// let path = temporary.path().join("file");
/// let Ok(file) = std::fs::File::options().read(true).custom_flags(libc::O_DIRECT).open(path) else { return Ok(()) };
/// match sightings(&Options::default(), &file, [0], 0, || ()) {
///     Ok(seen) => {
///         let Sighting { after, computed } = seen[0];
///         println!("seen after {after:?}, while the thread computed for {computed:?}");
///     }
///     Err(Unseen::Ring(why)) => println!("{why}"),
///     Err(why) => println!("{why}"),
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn sightings(
    options: &Options,
    file: impl AsFd,
    offsets: impl IntoIterator<Item = u64>,
    processor: usize,
    compute: impl FnMut(),
) -> Result<Vec<Sighting>, Unseen> {
    let opened = setup::open(options)?;
    let over = AtomicBool::new(false);
    let (ring, over) = (&opened.io, &over);
    let (tell, told) = mpsc::channel();
    std::thread::scope(|threads| {
        let looking = threads.spawn(move || look(ring, processor, over, &tell));
        let end = End(over);
        let found = submit_all(ring, file.as_fd(), offsets, &told, compute);
        drop(end);
        match looking.join() {
            Ok(looked) => looked.and(found),
            Err(panic) => resume_unwind(panic),
        }
    })
}

/// Ends the looking thread when dropped, also after a panic, because the scope waits for the thread.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Body of the looking thread. Its first message says that it is on its processor.
fn look(ring: &IoUring, processor: usize, over: &AtomicBool, tell: &Sender<Seen>) -> Result<(), Unseen> {
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).map_err(|errno| Unseen::Call("sched_setaffinity", errno))?;
    // A message is lost only if the other thread has failed.
    tell.send((Instant::now(), 0)).ok();
    while !over.load(Ordering::Acquire) {
        // SAFETY: only this thread has a view of the completion queue.
        let mut completions = unsafe { ring.completion_shared() };
        match completions.next() {
            Some(completion) => {
                tell.send((Instant::now(), completion.result())).ok();
            }
            None => std::hint::spin_loop(),
        }
    }
    Ok(())
}

fn submit_all(
    ring: &IoUring,
    file: BorrowedFd<'_>,
    offsets: impl IntoIterator<Item = u64>,
    told: &Receiver<Seen>,
    mut compute: impl FnMut(),
) -> Result<Vec<Sighting>, Unseen> {
    if told.recv().is_err() {
        // The other thread reports why.
        return Ok(Vec::new());
    }
    let mut memory = Memory { bytes: vec![0; 2 * BYTES as usize], is_in_flight: false };
    offsets.into_iter().map(|offset| one(ring, file, offset, &mut memory, told, &mut compute)).collect()
}

/// Memory of a read. While the read is in flight, it is not freed: the kernel may write to it.
struct Memory {
    bytes: Vec<u8>,
    is_in_flight: bool,
}

impl Memory {
    /// Address of a page.
    fn block(&mut self) -> *mut u8 {
        let size = BYTES as usize;
        let skip = self.bytes.as_ptr().align_offset(size).min(size);
        self.bytes.as_mut_ptr().wrapping_add(skip)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.is_in_flight {
            std::mem::forget(std::mem::take(&mut self.bytes));
        }
    }
}

/// Submits a read, computes, and waits until its completion was seen, also after a panic of `compute`.
fn one(
    ring: &IoUring,
    file: BorrowedFd<'_>,
    offset: u64,
    memory: &mut Memory,
    told: &Receiver<Seen>,
    compute: &mut impl FnMut(),
) -> Result<Sighting, Unseen> {
    let read = opcode::Read::new(types::Fd(file.as_raw_fd()), memory.block(), BYTES).offset(offset).build();
    {
        // SAFETY: only this thread has a view of the submission queue.
        let mut submissions = unsafe { ring.submission_shared() };
        memory.is_in_flight = true;
        // SAFETY: the memory is neither freed nor used until the completion was seen, or never freed.
        let pushed = unsafe { submissions.push(&read) };
        pushed.map_err(|_| Unseen::Call("io_uring_enter", Errno::BUSY))?;
    }
    let submitted = Instant::now();
    enter(ring)?;
    let panicked = catch_unwind(AssertUnwindSafe(compute)).err();
    let computed = submitted.elapsed();
    let mut patience = Duration::ZERO;
    let (at, result) = loop {
        match told.recv_timeout(patience) {
            Ok(seen) => break seen,
            // Only now, because entering the kernel runs task work.
            Err(RecvTimeoutError::Timeout) => enter(ring)?,
            Err(RecvTimeoutError::Disconnected) => return Err(Unseen::Call("looking", Errno::CANCELED)),
        }
        patience = PATIENCE;
    };
    memory.is_in_flight = false;
    if let Some(panic) = panicked {
        resume_unwind(panic);
    }
    if result < 0 {
        return Err(Unseen::Call("read", Errno::from_raw_os_error(-result)));
    }
    Ok(Sighting { after: at.saturating_duration_since(submitted), computed })
}

/// Submits what is queued, and asks for completions if the ring says that some wait for that.
fn enter(ring: &IoUring) -> Result<(), Unseen> {
    loop {
        match ring.submit() {
            Ok(_) => return Ok(()),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::ResourceBusy
                ) => {}
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                return Err(Unseen::Call("io_uring_enter", errno));
            }
        }
    }
}
