//! The tracepoints that are sampled, and where their fields are, which each kernel says itself (tracefs' `format`).

use std::ffi::{CStr, CString};

use rustix::io::Errno;

use crate::perf;

/// A `format` file is a page at most.
const LONGEST_FORMAT: usize = 1 << 16;

/// What is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
}

impl Tracepoint {
    /// Every tracepoint.
    pub const ALL: [Self; 9] = [
        Self::TaskWorkRun,
        Self::LocalWorkRun,
        Self::TaskAdd,
        Self::Submit,
        Self::HandOver,
        Self::Complete,
        Self::Enter,
        Self::Leave,
        Self::Waking,
    ];

    /// Its name, as perf(1) has it.
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
        }
    }

    /// Whether the functions that led there may be recorded with it.
    pub(super) fn has_chain(self) -> bool {
        matches!(self, Self::TaskWorkRun | Self::LocalWorkRun | Self::TaskAdd | Self::Waking)
    }

    /// Whether it is sampled whoever runs: a thread is mostly woken while others do, by an interrupt. (The kernel would
    /// count such events for the woken thread too, but none of 6.18 were seen.)
    pub(super) fn is_of_anybody(self) -> bool {
        self == Self::Waking
    }

    /// Whether it is where a system call begins or ends.
    pub(super) fn is_of_system_call(self) -> bool {
        matches!(self, Self::Enter | Self::Leave)
    }

    /// What else a sample must be: a thread that polls for a ring (SQPOLL) runs task work each time around, mostly none.
    pub(super) fn filter(self) -> Option<&'static CStr> {
        matches!(self, Self::TaskWorkRun | Self::LocalWorkRun).then_some(c"count > 0")
    }

    /// The fields that are read, in this order in [`Format::fields`].
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
        }
    }
}

/// Where a field is in the bytes of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    offset: usize,
    size: usize,
    is_signed: bool,
}

impl Field {
    /// Its value; a negative one as its two's complement in 64 bits. None if it is not there.
    pub(super) fn of(self, raw: &[u8]) -> Option<u64> {
        let bytes = raw.get(self.offset..self.offset.checked_add(self.size)?)?;
        Some(match (bytes, self.is_signed) {
            (&[a], _) => u64::from(a),
            (&[a, b], _) => u64::from(u16::from_ne_bytes([a, b])),
            (&[a, b, c, d], false) => u64::from(u32::from_ne_bytes([a, b, c, d])),
            (&[a, b, c, d], true) => i64::from(i32::from_ne_bytes([a, b, c, d])).cast_unsigned(),
            _ => u64::from_ne_bytes(bytes.try_into().ok()?),
        })
    }
}

/// One tracepoint of this kernel.
#[derive(Debug, Clone)]
pub(super) struct Format {
    pub(super) tracepoint: Tracepoint,
    /// What perf_event_open(2) and the samples call it.
    pub(super) number: u16,
    /// Those that [`Tracepoint::needs`] names.
    pub(super) fields: Vec<Field>,
    /// The operation's name (Linux 5.20).
    pub(super) operation: Option<Field>,
}

impl Format {
    /// What this kernel says about it.
    ///
    /// # Errors
    /// Those of [`perf::tracefs`]; EIO if what it says is not understood, ENOENT if a field is missing.
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
