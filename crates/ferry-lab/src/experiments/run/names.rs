//! Names of the measures and of the settled value.

/// Time from before the start until the end.
pub(super) const TIME: &str = "returned_s";
/// Processor time in programs.
pub(super) const USER: &str = "user_s";
/// Processor time in the kernel.
pub(super) const SYSTEM: &str = "system_s";
/// Largest resident memory of one process.
pub(super) const MEMORY: &str = "peak_memory_b";
/// Exit status of runs that may fail.
pub(super) const STATUS: &str = "exit_status";
/// Settled value: a peak of memory that is not larger is not known.
pub(super) const FLOOR: &str = "memory_floor_b";
