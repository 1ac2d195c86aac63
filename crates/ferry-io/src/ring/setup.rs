//! Sets up a ring: the flags of each mode, degrading on older kernels, and reasons for refusal.

use std::fs;
use std::io;

use io_uring::{IoUring, opcode, register::Probe};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::buffers::Blocks;
use crate::error::{Operation, SetupError};
use crate::options::{Options, RingFlag, RingMode};

/// Minimum number of entries: a chain of three requests and the poll of the inbox.
const LEAST_ENTRIES: u32 = 4;
/// Smallest queue depth that is tried if memory is short.
const SHALLOW: u32 = 16;
/// The kernel's limit of completion entries.
const MOST_COMPLETIONS: u32 = 65_536;
/// Kernel workers (io-wq) of one submitting thread; the kernel's own default is 4 a processor.
const KERNEL_WORKERS: u32 = 32;

/// Returns the best flags of a mode. SQPOLL excludes flags on task work.
pub(super) fn wanted(mode: RingMode) -> Vec<RingFlag> {
    use RingFlag::{CoopTaskrun, DeferTaskrun, IoPoll, NoSqArray, SingleIssuer, SqPoll, SubmitAll, Taskrun};
    match mode {
        RingMode::Defer => vec![SingleIssuer, SubmitAll, DeferTaskrun, Taskrun, NoSqArray],
        RingMode::Coop => vec![SingleIssuer, SubmitAll, CoopTaskrun, Taskrun, NoSqArray],
        RingMode::Plain => vec![SingleIssuer, SubmitAll, NoSqArray],
        RingMode::SqPoll => vec![SqPoll, SubmitAll, NoSqArray],
        RingMode::IoPoll => vec![IoPoll, SingleIssuer, SubmitAll, NoSqArray],
    }
}

/// Removes the flag that the kernel got last; returns false if none can be removed. Deferred task work degrades to
/// cooperative task work.
pub(super) fn leave_one_out(flags: &mut Vec<RingFlag>, left_out: &mut Vec<RingFlag>) -> bool {
    let newest_first = [
        RingFlag::NoSqArray,
        RingFlag::DeferTaskrun,
        RingFlag::SingleIssuer,
        RingFlag::CoopTaskrun,
        RingFlag::SubmitAll,
    ];
    let Some(flag) = newest_first.into_iter().find(|flag| flags.contains(flag)) else { return false };
    flags.retain(|&kept| kept != flag);
    left_out.push(flag);
    match flag {
        RingFlag::DeferTaskrun => flags.push(RingFlag::CoopTaskrun),
        // Without COOP_TASKRUN the kernel refuses it.
        RingFlag::CoopTaskrun => flags.retain(|&kept| kept != RingFlag::Taskrun),
        RingFlag::SingleIssuer
        | RingFlag::Taskrun
        | RingFlag::SubmitAll
        | RingFlag::NoSqArray
        | RingFlag::SqPoll
        | RingFlag::IoPoll => {}
    }
    true
}

/// A ring, and its description.
pub(super) struct Opened {
    pub(super) io: IoUring,
    pub(super) can: Opcodes,
    /// Requests in one submission: the options' depth, or less if memory is short.
    pub(super) depth: usize,
    /// The mode and what the kernel lacks for it, in words.
    pub(super) reasons: Vec<String>,
    /// Flags of the mode that the kernel does not support.
    pub(super) left_out: Vec<RingFlag>,
}

/// Returns the mode that a ring would have, or the reason why there is none.
pub(crate) fn probe(options: &Options) -> Result<String, SetupError> {
    open(options).map(|opened| opened.reasons.join("; "))
}

/// Sets up a ring for the options, degraded as far as this kernel requires.
pub(super) fn open(options: &Options) -> Result<Opened, SetupError> {
    let mode = mode_name(options.ring_mode);
    if options.ring_mode == RingMode::IoPoll && !has_poll_queues() {
        let reason = "no block device has poll queues: /sys/block/*/queue/io_poll is 0".to_owned();
        return Err(SetupError::NoRingMode { mode, reason });
    }
    let mut flags = wanted(options.ring_mode);
    let mut left_out = Vec::new();
    let mut depth = options.queue_depth;
    let io = loop {
        match build(options, &flags, depth) {
            Ok(io) => break io,
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                if !leave_one_out(&mut flags, &mut left_out) {
                    let reason = "io_uring_setup refuses its flags (EINVAL)".to_owned();
                    return Err(SetupError::NoRingMode { mode, reason });
                }
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) && depth > SHALLOW => depth /= 2,
            Err(error) => return Err(SetupError::NoUring { reason: explain(&error, disabled_setting()) }),
        }
    };
    if !io.params().is_feature_resource_tagging() {
        let reason = "io_uring of this kernel is too old (it lacks what Linux 5.13 added)".to_owned();
        return Err(SetupError::NoUring { reason });
    }
    let can = Opcodes::of(&io, options.ring_mode);
    // Before Linux 5.15 the kernel's own limit remains.
    io.submitter().register_iowq_max_workers(&mut [KERNEL_WORKERS, 0]).ok();
    let mut reasons = describe(mode, &left_out);
    if depth < options.queue_depth {
        reasons.push(format!("queue depth {depth} (ENOMEM; {})", locked_memory()));
    }
    Ok(Opened { io, can, depth: depth as usize, reasons, left_out })
}

fn build(options: &Options, flags: &[RingFlag], depth: u32) -> io::Result<IoUring> {
    let entries = depth.max(LEAST_ENTRIES);
    let mut builder = IoUring::builder();
    builder.setup_cqsize((entries * 4).min(MOST_COMPLETIONS));
    // A forked child that went on would write to its parent's queues.
    builder.dontfork();
    for flag in flags {
        match flag {
            RingFlag::SingleIssuer => builder.setup_single_issuer(),
            RingFlag::DeferTaskrun => builder.setup_defer_taskrun(),
            RingFlag::CoopTaskrun => builder.setup_coop_taskrun(),
            RingFlag::Taskrun => builder.setup_taskrun_flag(),
            RingFlag::SubmitAll => builder.setup_submit_all(),
            RingFlag::NoSqArray => builder.setup_no_sqarray(),
            RingFlag::SqPoll => {
                let idle = u32::try_from(options.sqpoll_idle.as_millis()).unwrap_or(u32::MAX);
                builder.setup_sqpoll(idle)
            }
            RingFlag::IoPoll => builder.setup_iopoll(),
        };
    }
    builder.build(entries)
}

pub(super) fn mode_name(mode: RingMode) -> &'static str {
    match mode {
        RingMode::Defer => "defer",
        RingMode::Coop => "coop",
        RingMode::Plain => "plain",
        RingMode::SqPoll => "sqpoll",
        RingMode::IoPoll => "iopoll",
    }
}

pub(super) fn describe(mode: &str, left_out: &[RingFlag]) -> Vec<String> {
    let names: Vec<_> = left_out.iter().map(|flag| flag.name()).collect();
    let mut reasons = vec![format!("io_uring ({mode})")];
    if !names.is_empty() {
        reasons.push(format!("without {}", names.join(", ")));
    }
    reasons
}

/// Returns true if a block device has poll queues. Without one, a ring in IOPOLL mode would spin until interrupts.
fn has_poll_queues() -> bool {
    let Ok(devices) = fs::read_dir("/sys/block") else { return false };
    devices.flatten().any(|device| {
        fs::read(device.path().join("queue/io_poll")).is_ok_and(|value| value.starts_with(b"1"))
    })
}

/// Reads kernel.io_uring_disabled (Linux 6.6).
fn disabled_setting() -> Option<u32> {
    fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok()?.trim().parse().ok()
}

/// Explains an error of io_uring_setup(2) by its usual cause.
pub(super) fn explain(error: &io::Error, disabled: Option<u32>) -> String {
    match (Errno::from_io_error(error), disabled) {
        (Some(Errno::PERM), Some(2)) => "io_uring is switched off (kernel.io_uring_disabled=2)".to_owned(),
        (Some(Errno::PERM), Some(1)) => {
            "io_uring is kept to the group in kernel.io_uring_group (kernel.io_uring_disabled=1)".to_owned()
        }
        (Some(Errno::PERM), _) => {
            "io_uring is forbidden (EPERM), as by a container's seccomp filter".to_owned()
        }
        (Some(Errno::NOSYS), _) => {
            "this kernel has no io_uring, or a seccomp filter hides it (ENOSYS)".to_owned()
        }
        (Some(Errno::NOMEM), _) => format!("no memory for a ring (ENOMEM; {})", locked_memory()),
        (Some(Errno::MFILE | Errno::NFILE), _) => "no descriptor is left for a ring".to_owned(),
        _ => format!("io_uring_setup: {error}"),
    }
}

fn locked_memory() -> String {
    match getrlimit(Resource::Memlock).current {
        Some(bytes) => format!("locked memory is limited to {} KiB, see `ulimit -l`", bytes / 1024),
        None => "locked memory is not limited".to_owned(),
    }
}

/// Registers the runtime's blocks, so that their pages are pinned once instead of for each request. Returns the size of
/// a buffer in bytes, or the reason for failure.
pub(super) fn register_blocks(io: &IoUring, blocks: &Blocks) -> Result<usize, String> {
    /// The kernel's limit of one buffer.
    const LARGEST: usize = 1 << 30;
    let (base, size) = blocks.arena();
    let each = size.min(LARGEST / blocks.block_size() * blocks.block_size());
    let buffers: Vec<libc::iovec> = (0..size)
        .step_by(each)
        .map(|at| libc::iovec { iov_base: base.wrapping_add(at).cast(), iov_len: each.min(size - at) })
        .collect();
    // SAFETY: the buffers lie within the mapping, which outlives the ring: the ring holds the runtime that owns it.
    let registered = unsafe { io.submitter().register_buffers(&buffers) };
    match registered {
        Ok(()) => Ok(each),
        Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {
            Err(format!("without registered buffers (ENOMEM; {})", locked_memory()))
        }
        Err(error) => Err(format!("without registered buffers ({error})")),
    }
}

/// Operations that this kernel's rings support.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opcodes(u64);

impl Opcodes {
    fn of(io: &IoUring, mode: RingMode) -> Self {
        let mut probe = Probe::new();
        // If the probe fails, no operation counts as supported and everything goes to the pool.
        io.submitter().register_probe(&mut probe).ok();
        let all = [
            (Operation::Open, opcode::OpenAt::CODE),
            (Operation::Stat, opcode::Statx::CODE),
            (Operation::Read, opcode::Read::CODE),
            (Operation::Write, opcode::Write::CODE),
            (Operation::Allocate, opcode::Fallocate::CODE),
            (Operation::Truncate, opcode::Ftruncate::CODE),
            (Operation::Sync, opcode::Fsync::CODE),
            (Operation::MakeDirectory, opcode::MkDirAt::CODE),
            (Operation::Symlink, opcode::SymlinkAt::CODE),
            (Operation::Link, opcode::LinkAt::CODE),
            (Operation::Rename, opcode::RenameAt::CODE),
            (Operation::Unlink, opcode::UnlinkAt::CODE),
        ];
        let polled = |operation| matches!(operation, Operation::Read | Operation::Write);
        let has = |&(operation, code): &(Operation, u8)| {
            probe.is_supported(code) && (mode != RingMode::IoPoll || polled(operation))
        };
        let mut can = 0;
        for (operation, _) in all.iter().filter(|entry| has(entry)) {
            can |= 1 << *operation as u64;
        }
        Self(can)
    }

    pub(super) fn contains(self, operation: Operation) -> bool {
        self.0 & 1 << operation as u64 != 0
    }
}
