//! The end of the line about a run that was stopped: the fate of its files, and how to go on.

use ferry_copy::Side;

use crate::units::bytes;

#[cfg(test)]
mod tests;

/// Reason why a run ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Signal,
    TimeLimit,
    Space,
    /// The device of this side fails or is gone.
    Device(Side),
    /// The devices of some of several sources fail or are gone. The others were copied.
    Operand,
}

impl Cause {
    /// Formats the beginning of the line, before the figures of progress.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Signal => "interrupted after",
            Self::TimeLimit => "stopped by --time-limit after",
            Self::Space => "stopped early, because the target's space or quota is used up, after",
            Self::Device(Side::Source) => {
                "stopped early, because the source's device fails or is gone, after"
            }
            Self::Device(Side::Target) => {
                "stopped early, because the target's device fails, is gone or has become read-only, after"
            }
            Self::Operand => {
                "not every source was copied to its end, because a device fails or is gone; the copy ended after"
            }
        }
    }

    /// Formats the line without figures; `None` for an interruption, whose reason the user knows.
    pub(crate) fn line(self) -> Option<&'static str> {
        match self {
            Self::Signal | Self::TimeLimit => None,
            Self::Space => Some("stopped early: the target's space or quota is used up"),
            Self::Device(Side::Source) => Some("stopped early: the source's device fails or is gone"),
            Self::Device(Side::Target) => {
                Some("stopped early: the target's device fails, is gone or has become read-only")
            }
            Self::Operand => Some("not every source was copied to its end: a device fails or is gone"),
        }
    }
}

/// Bytes of the files that were not complete when a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Incomplete {
    /// Bytes that are copied again.
    pub(crate) removed: u64,
    /// Bytes that the next run goes on after.
    pub(crate) kept: u64,
}

impl Incomplete {
    /// Formats `34 MB of incomplete files removed, complete ones kept`.
    pub(crate) fn text(self) -> String {
        let [removed, kept] = [self.removed, self.kept].map(bytes);
        match (self.removed, self.kept) {
            (0, 0) => "complete files kept".to_owned(),
            (_, 0) => format!("{removed} of incomplete files removed, complete ones kept"),
            (0, _) => format!("{kept} of incomplete files kept, and all complete ones"),
            (_, _) => {
                format!("{kept} of incomplete files kept, and all complete ones; {removed} are copied again")
            }
        }
    }
}

/// Formats how to go on: the same command continues, with an option that it lacked if `with` has one.
pub(crate) fn way_on(cause: Cause, with: Option<&str>) -> String {
    let with = with.map(|option| format!("with {option} ")).unwrap_or_default();
    match cause {
        Cause::Signal | Cause::TimeLimit => format!("{with}the same command continues"),
        Cause::Space => format!("once there is space, {with}the same command continues"),
        Cause::Device(_) | Cause::Operand => {
            format!("once the device is back, {with}the same command continues")
        }
    }
}
