//! Ring modes that are measured: how completions arrive, and whether the blocks are registered.

use std::time::Duration;

use ferry_io::{RingFlag, RingMode};

use super::reads::RingSetup;

/// A mode by its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mode {
    /// Name on the command line and in records.
    pub(super) name: &'static str,
    /// Way in which completions arrive.
    pub(super) ring: RingMode,
    /// True if the blocks are registered with the ring.
    pub(super) registers: bool,
    /// The mode that it is compared with.
    pub(super) base: Option<&'static str>,
}

/// All modes.
pub(super) const MODES: &[Mode] = &[
    Mode { name: "plain", ring: RingMode::Plain, registers: false, base: None },
    Mode { name: "coop", ring: RingMode::Coop, registers: false, base: Some("plain") },
    Mode { name: "defer", ring: RingMode::Defer, registers: false, base: Some("plain") },
    Mode { name: "sqpoll", ring: RingMode::SqPoll, registers: false, base: Some("plain") },
    Mode { name: "iopoll", ring: RingMode::IoPoll, registers: false, base: Some("plain") },
    Mode { name: "registered", ring: RingMode::Defer, registers: true, base: Some("defer") },
];
/// Their names.
pub(super) const NAMES: &[&str] = &["plain", "coop", "defer", "sqpoll", "iopoll", "registered"];

/// Returns the mode with this name.
pub(super) fn named(name: &str) -> Option<&'static Mode> {
    MODES.iter().find(|mode| mode.name == name)
}

impl Mode {
    /// Returns the set-up of a ring in this mode.
    pub(super) fn setup(&self, sqpoll_idle: Duration) -> RingSetup {
        RingSetup { mode: self.ring, registers: self.registers, sqpoll_idle }
    }

    /// Returns the reason why a ring of this mode is unavailable. A ring that lacks the mode's own flag, or the
    /// registered buffers, counts as unavailable.
    pub(super) fn refusal(&self, sqpoll_idle: Duration) -> Option<String> {
        match ferry_io::run(&self.setup(sqpoll_idle).options(), async |_| ()) {
            Err(error) => Some(error.to_string()),
            Ok((_, stats)) => {
                let own = [RingFlag::DeferTaskrun, RingFlag::CoopTaskrun];
                let lacks_own = own.iter().any(|flag| stats.ring_flags_left_out.contains(flag));
                let lacks_buffers =
                    self.registers && stats.backend_reason.contains("without registered buffers");
                (lacks_own || lacks_buffers).then_some(stats.backend_reason)
            }
        }
    }
}
