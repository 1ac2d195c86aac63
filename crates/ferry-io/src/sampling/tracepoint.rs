//! The sampled tracepoints, and the offsets of their fields, which each kernel describes itself (tracefs' `format`).

use std::ffi::{CStr, CString};

use rustix::io::Errno;

use crate::perf;

/// A `format` file is a page at most.
const LONGEST_FORMAT: usize = 1 << 16;

/// A sampled tracepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Tracepoint {
    /// Task work of a thread was run.
    TaskWorkRun,
    /// Task work of a ring in DEFER mode was run.
    LocalWorkRun,
    /// A poll left task work.
    TaskAdd,
    /// A ring took a request.
    Submit,
    /// A request was handed to a kernel worker.
    HandOver,
    /// A completion was written.
    Complete,
    /// io_uring_enter(2) was called.
    Enter,
    /// io_uring_enter(2) returned.
    Leave,
    /// A thread was woken.
    Waking,
    /// A block device was given a request.
    DeviceIssue,
    /// A block device completed a request.
    DeviceComplete,
}

impl Tracepoint {
    /// Every tracepoint.
    pub const ALL: [Self; 11] = [
        Self::TaskWorkRun,
        Self::LocalWorkRun,
        Self::TaskAdd,
        Self::Submit,
        Self::HandOver,
        Self::Complete,
        Self::Enter,
        Self::Leave,
        Self::Waking,
        Self::DeviceIssue,
        Self::DeviceComplete,
    ];

    /// Name in perf(1).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TaskWorkRun => "io_uring:io_uring_task_work_run",
            Self::LocalWorkRun => "io_uring:io_uring_local_work_run",
            Self::TaskAdd => "io_uring:io_uring_task_add",
            Self::Submit => "io_uring:io_uring_submit_req",
            Self::HandOver => "io_uring:io_uring_queue_async_work",
            Self::Complete => "io_uring:io_uring_complete",
            Self::Enter => "syscalls:sys_enter_io_uring_enter",
            Self::Leave => "syscalls:sys_exit_io_uring_enter",
            Self::Waking => "sched:sched_waking",
            Self::DeviceIssue => "block:block_rq_issue",
            Self::DeviceComplete => "block:block_rq_complete",
        }
    }

    /// Returns true if call chains may be recorded with it.
    pub(super) fn has_chain(self) -> bool {
        matches!(self, Self::TaskWorkRun | Self::LocalWorkRun | Self::TaskAdd | Self::Waking)
    }

    /// Returns true if it is sampled for every thread: wake-ups mostly come by an interrupt while another thread runs.
    /// (The kernel could attribute them to the woken thread, but Linux 6.18 gave none.) Devices complete requests in
    /// interrupts, too, and threads of the kernel write back what a program has written.
    pub(super) fn is_of_anybody(self) -> bool {
        self == Self::Waking || self.is_of_device()
    }

    /// Returns true if it is sampled for block devices.
    pub(super) fn is_of_device(self) -> bool {
        matches!(self, Self::DeviceIssue | Self::DeviceComplete)
    }

    /// Returns true if it is a system call's entry or exit.
    pub(super) fn is_of_system_call(self) -> bool {
        matches!(self, Self::Enter | Self::Leave)
    }

    /// Filter of samples: a polling thread of a ring (SQPOLL) runs task work in each round, mostly none.
    pub(super) fn filter(self) -> Option<&'static CStr> {
        matches!(self, Self::TaskWorkRun | Self::LocalWorkRun).then_some(c"count > 0")
    }

    /// Names of the fields that are read, in the order of [`Format::fields`].
    fn needs(self) -> &'static [&'static str] {
        match self {
            Self::TaskWorkRun => &["count"],
            Self::LocalWorkRun => &["count", "ctx"],
            Self::TaskAdd | Self::HandOver => &["ctx", "user_data"],
            Self::Submit => &["ctx", "user_data", "opcode"],
            Self::Complete => &["ctx", "user_data", "res"],
            Self::Enter => &["to_submit", "min_complete", "flags"],
            Self::Leave => &["ret"],
            Self::Waking => &["pid", "common_flags"],
            Self::DeviceIssue => &["dev", "sector", "rwbs", "bytes"],
            Self::DeviceComplete => &["dev", "sector", "rwbs", "error"],
        }
    }
}

/// Range of a field in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    offset: usize,
    size: usize,
    is_signed: bool,
}

impl Field {
    /// Returns the value; a negative one as two's complement in 64 bits.
    pub(super) fn of(self, raw: &[u8]) -> Option<u64> {
        let bytes = self.bytes(raw)?;
        Some(match (bytes, self.is_signed) {
            (&[a], _) => u64::from(a),
            (&[a, b], _) => u64::from(u16::from_ne_bytes([a, b])),
            (&[a, b, c, d], false) => u64::from(u32::from_ne_bytes([a, b, c, d])),
            (&[a, b, c, d], true) => i64::from(i32::from_ne_bytes([a, b, c, d])).cast_unsigned(),
            _ => u64::from_ne_bytes(bytes.try_into().ok()?),
        })
    }

    /// Returns the bytes of a text.
    pub(super) fn bytes(self, raw: &[u8]) -> Option<&[u8]> {
        raw.get(self.offset..self.offset.checked_add(self.size)?)
    }
}

/// One tracepoint of this kernel.
#[derive(Debug, Clone)]
pub(super) struct Format {
    pub(super) tracepoint: Tracepoint,
    /// Number in perf_event_open(2) and in samples.
    pub(super) number: u16,
    /// The fields named by [`Tracepoint::needs`].
    pub(super) fields: Vec<Field>,
    /// The operation's name (Linux 5.20).
    pub(super) operation: Option<Field>,
}

impl Format {
    /// Reads this kernel's description.
    ///
    /// # Errors
    /// Those of [`perf::tracefs`]; EIO if the description is malformed, ENOENT if a field is missing.
    pub(super) fn of(tracepoint: Tracepoint) -> Result<Self, Errno> {
        let path = format!("events/{}/format", tracepoint.name().replace(':', "/"));
        let path = CString::new(path).map_err(|_| Errno::INVAL)?;
        Self::parse(tracepoint, &perf::tracefs(&path, LONGEST_FORMAT)?)
    }

    pub(super) fn parse(tracepoint: Tracepoint, text: &str) -> Result<Self, Errno> {
        let number = text.lines().find_map(|line| line.strip_prefix("ID:"));
        let number = number.and_then(|number| number.trim().parse().ok()).ok_or(Errno::IO)?;
        let fields: Option<Vec<Field>> = tracepoint.needs().iter().map(|name| field(text, name)).collect();
        let operation = if tracepoint == Tracepoint::Submit { field(text, "op_str") } else { None };
        Ok(Self { tracepoint, number, fields: fields.ok_or(Errno::NOENT)?, operation })
    }
}

/// `field:unsigned int count; offset:16; size:4; signed:0;`
fn field(text: &str, name: &str) -> Option<Field> {
    text.lines().find_map(|line| {
        let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
        let declared = parts.next()?.rsplit([' ', '*']).next()?;
        if declared.split('[').next()? != name {
            return None;
        }
        let mut value = |key: &str| parts.next()?.strip_prefix(key)?.parse::<usize>().ok();
        Some(Field { offset: value("offset:")?, size: value("size:")?, is_signed: value("signed:")? == 1 })
    })
}
