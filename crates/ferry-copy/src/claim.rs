//! Claiming a source: the first name of a file is copied, and later ones become links to that copy (`links.rs`).

use ferry_io::Stat;

use crate::folder::Role;
use crate::links::{First, FirstCopy, NameClaim, NameLook, SourceIdentity, WaitingName};
use crate::options::Dereference;
use crate::place::Entry;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;

/// End of the copy of one name, and the work left for the other names of its file.
#[must_use = "names that wait are linked only when this is settled"]
pub(crate) enum Ended {
    /// Nothing is left: no name waits, or the fiber of the file's first name links this one.
    Settled,
    /// First name of a file, with its copy: names may wait to be linked to it.
    First(SourceIdentity, Result<Option<FirstCopy>, FailureKind>),
    /// Later name of a file, to be linked to the copy of the first.
    Later(SourceIdentity, First),
}

/// Returns true if a file may be met again through a link that is followed, whatever its number of names.
pub(crate) fn is_met_by_links(run: &Run, entry: Entry<'_>) -> bool {
    let follows = match run.options.dereference {
        Dereference::Always => true,
        Dereference::CommandLine => matches!(entry.folder.role, Role::Root | Role::Way),
        Dereference::Never => false,
    };
    run.options.preserve.links && follows
}

/// Returns true if a file may be met again by another name, and so is claimed.
pub(crate) fn is_claimed(run: &Run, entry: Entry<'_>, stat: &Stat) -> bool {
    run.options.preserve.links && stat.links > 1 || is_met_by_links(run, entry)
}

/// Claims a file by attributes that hold its birth time.
pub(crate) fn claim(run: &Run, entry: Entry<'_>, stat: &Stat, look: NameLook) -> NameClaim {
    run.links.claim(SourceIdentity::of(stat), || WaitingName::of(entry, look))
}

/// Claims a source that is not opened, if it may be met again. It must still be the file that was seen.
pub(crate) async fn claim_unopened(
    run: &Run,
    entry: Entry<'_>,
    seen: &Stat,
    look: NameLook,
) -> Result<NameClaim, FailureKind> {
    if !is_claimed(run, entry, seen) {
        return Ok(NameClaim::Alone);
    }
    let stat = identify(run, entry, look.follow).await?;
    if stat.is_same_file(seen) { Ok(claim(run, entry, &stat, look)) } else { Err(FailureKind::Replaced) }
}

/// Returns a source's attributes with its birth time.
pub(crate) async fn identify(run: &Run, entry: Entry<'_>, follow: bool) -> Result<Stat, FailureKind> {
    let dir = run.dirs(entry.folder).await.during(Verb::Stat)?.source;
    dir.identify_entry(entry.source, follow).await.during(Verb::Stat)
}

/// Returns the file with the target's name, as the copy for other names; `None` if it can't be looked at.
pub(crate) async fn existing_copy(run: &Run, entry: Entry<'_>) -> Option<FirstCopy> {
    let dir = run.dirs(entry.folder).await.ok()?.target;
    dir.identify_entry(entry.target, false).await.ok().map(|found| FirstCopy::of(&found))
}
