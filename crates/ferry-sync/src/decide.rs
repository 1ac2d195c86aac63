//! The action that makes one name of the target equal to the source's. Pure: decided from facts that were read before.

use ferry_copy::kept_mode;
use ferry_io::{FileKind, Stat, Time};
use serde::{Deserialize, Serialize};

use crate::grain::Grain;

#[cfg(test)]
mod tests;

/// Which files count as equal, and what happens to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// What is compared of two files.
    pub(crate) comparison: Comparison,
    /// Set if a target that is newer than its source stays (`--newer`).
    pub(crate) keeps_newer: bool,
    /// Set if owners are set and compared: only root can.
    pub(crate) owners: bool,
    /// The times that the target's filesystem stores.
    pub(crate) grain: Grain,
    /// Set if the target's filesystem stores extended attributes.
    pub(crate) xattrs: bool,
    /// Modification time of targets that an interrupted run left incomplete, as that filesystem stores it.
    pub(crate) unfinished: Time,
    /// Set if a run ended with its session: files of the target that were changed since may lack bytes.
    pub(crate) doubted_since: Option<Time>,
}

/// What is compared of two regular files to find out whether their bytes are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Size and modification time.
    SizeAndTime,
    /// Size alone (`--size-only`).
    Size,
    /// Size, then the bytes (`--checksum`).
    Content,
}

/// An action on one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decision {
    /// Both are equal, as far as the facts say.
    Equal,
    /// The target is missing: copy the source.
    Create,
    /// The bytes differ, or the link's text, or the device number: replace the target.
    Replace(Reason),
    /// The kinds differ: take the target away, then copy the source.
    Exchange,
    /// Both are files of one size, and their content is still to be compared.
    CompareContent,
    /// The target is newer and stays.
    KeepNewer,
    /// Only attributes differ.
    SetAttributes,
}

/// Why a target is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The sizes differ.
    Size,
    /// The modification times differ.
    Time,
    /// The bytes differ.
    Content,
    /// The texts of two symbolic links differ.
    Text,
    /// The device numbers differ.
    Device,
    /// An interrupted run left it.
    Unfinished,
    /// It is linked to other names than its source.
    Links,
    /// It is excluded, and excluded entries are deleted.
    Excluded,
}

impl Reason {
    /// Returns the reason in one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Time => "time",
            Self::Content => "content",
            Self::Text => "text",
            Self::Device => "device",
            Self::Unfinished => "unfinished",
            Self::Links => "links",
            Self::Excluded => "excluded",
        }
    }
}

/// Decides about a name that the source has. Texts of symbolic links and extended attributes are compared apart, because
/// reading them costs calls of their own.
pub(crate) fn decide(source: &Stat, target: Option<&Stat>, rules: &Rules) -> Decision {
    let Some(target) = target else { return Decision::Create };
    if source.kind != target.kind {
        return Decision::Exchange;
    }
    let by_attributes =
        if has_equal_attributes(source, target, rules) { Decision::Equal } else { Decision::SetAttributes };
    match source.kind {
        FileKind::Regular => {
            let decision = decide_file(source, target, rules);
            if decision == Decision::Equal { by_attributes } else { decision }
        }
        FileKind::CharDevice | FileKind::BlockDevice if source.special != target.special => {
            Decision::Replace(Reason::Device)
        }
        FileKind::Directory
        | FileKind::Symlink
        | FileKind::Fifo
        | FileKind::Socket
        | FileKind::CharDevice
        | FileKind::BlockDevice => by_attributes,
    }
}

fn decide_file(source: &Stat, target: &Stat, rules: &Rules) -> Decision {
    let wanted = rules.grain.stored(source.times.modified);
    let found = target.times.modified;
    if found == rules.unfinished {
        // If the source has this time, too, only the bytes tell.
        return if wanted == found && source.size == target.size {
            Decision::CompareContent
        } else {
            Decision::Replace(Reason::Unfinished)
        };
    }
    if rules.keeps_newer && found > wanted {
        return Decision::KeepNewer;
    }
    if source.size != target.size {
        return Decision::Replace(Reason::Size);
    }
    let is_doubted = rules.doubted_since.is_some_and(|since| target.changed >= since);
    match rules.comparison {
        Comparison::SizeAndTime if !rules.grain.stores(source.times.modified, found) => {
            Decision::Replace(Reason::Time)
        }
        Comparison::SizeAndTime | Comparison::Size if is_doubted => Decision::CompareContent,
        Comparison::SizeAndTime | Comparison::Size => Decision::Equal,
        Comparison::Content => Decision::CompareContent,
    }
}

/// Returns true if mode, owner and modification time are equal. A link has no mode.
fn has_equal_attributes(source: &Stat, target: &Stat, rules: &Rules) -> bool {
    let is_link = source.kind == FileKind::Symlink;
    let has_owner = (source.uid, source.gid) == (target.uid, target.gid);
    let mode = if has_owner || rules.owners { source.mode } else { kept_mode(source.kind, source.mode) };
    (is_link || mode == target.mode)
        && (!rules.owners || has_owner)
        && rules.grain.stores(source.times.modified, target.times.modified)
}
