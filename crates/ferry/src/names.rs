//! Names of the subcommands that have subcommands or modes of their own, as messages and manual pages give them.

/// Measures copiers and devices.
pub(crate) const LAB: &str = "ferry lab";
/// Records programs and shows recordings.
pub(crate) const TRACE: &str = "ferry trace";
/// Measures mounts.
pub(crate) const TUNE: &str = "ferry tune";
