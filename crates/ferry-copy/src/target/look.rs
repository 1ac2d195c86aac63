//! Looking at an existing target: cp's rules decide its fate before the source is opened.

use ferry_io::{Cause, Errno, Error, FileKind, Operation, Stat};

use super::same::{Sameness, sameness};
use crate::backup;
use crate::folder::Role;
use crate::links::NameLook;
use crate::naming::Control;
use crate::options::{Dereference, Existing, Make};
use crate::place::Entry;
use crate::question;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;

/// An entry as it was seen before it is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Set if its name is a link that is followed.
    pub(crate) follow: bool,
    /// Its attributes; `None` where nothing can be at the target.
    pub(crate) stat: Option<Stat>,
    /// Fate of the target.
    pub(crate) ahead: Ahead,
}

impl Seen {
    pub(crate) fn look(&self) -> NameLook {
        NameLook { follow: self.follow, found_free: matches!(self.ahead, Ahead::Free) }
    }
}

/// Existing target of an entry, and its fate.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ahead {
    /// No target exists.
    Free,
    /// A file to be overwritten in place.
    Overwrite(Stat),
    /// To be removed first; its attributes where a file takes its place.
    Replace(Option<Stat>),
    /// To be kept under another name.
    BackUp,
    /// To be replaced by a link only with `-f`.
    Occupied,
    /// To stay.
    Stays,
    /// Not older than the source: it stays, and counts as its copy.
    IsNewer,
    /// Equal already to the target that is to be made.
    Made,
}

/// Looks at the target; refuses one that must not be overwritten.
pub(crate) async fn look(run: &Run, entry: Entry<'_>, source: &Stat) -> Result<Ahead, FailureKind> {
    look_as(run, entry, source, run.asks()).await
}

/// Looks again at a target that has changed since the first look. `asks` is false if the user has been asked already.
/// The source is looked at again, too: another program may have made both names one file.
pub(crate) async fn look_again(
    run: &Run,
    entry: Entry<'_>,
    source: &Stat,
    asks: bool,
) -> Result<Ahead, FailureKind> {
    let ahead = look_as(run, entry, source, asks).await?;
    let Ahead::Overwrite(existing) = ahead else { return Ok(ahead) };
    let dir = run.dirs(entry.folder).await.during(Verb::Stat)?.source;
    let now = dir.stat_entry(entry.source, true).await;
    if now.is_ok_and(|now| now.is_same_file(&existing)) { Err(FailureKind::SameFile) } else { Ok(ahead) }
}

async fn look_as(run: &Run, entry: Entry<'_>, source: &Stat, asks: bool) -> Result<Ahead, FailureKind> {
    if entry.is_in_new_folder() {
        return Ok(Ahead::Free);
    }
    let options = &run.options;
    // A link is looked at itself, unless bytes go through it.
    let through = writes_through(run, source) || leads_to_stream(run, entry, source).await?;
    let Some(existing) = find(run, entry, through).await? else { return Ok(Ahead::Free) };
    if options.strict_kinds {
        refuse_kinds(source, &existing)?;
    }
    match options.existing {
        Existing::Keep => return Ok(Ahead::Stays),
        Existing::Refuse => return Err(FailureKind::NotReplaced),
        Existing::Replace | Existing::Ask => {}
    }
    match sameness(run, entry, source, &existing, through).await? {
        Sameness::Other => {}
        Sameness::Wanted => {
            // cp asks before it finds that a file is to be linked to itself.
            if options.make == Make::HardLink && asks && !options.update {
                question::agrees(run, entry, &existing).await?;
            }
            return Ok(Ahead::Made);
        }
        Sameness::Refused => return Err(FailureKind::SameFile),
    }
    if options.update && !is_older(run, entry, &existing, source).await? {
        return Ok(Ahead::IsNewer);
    }
    if asks && !question::agrees(run, entry, &existing).await? {
        return Ok(Ahead::Stays);
    }
    if existing.kind == FileKind::Directory {
        return Err(FailureKind::FileOverDirectory);
    }
    // Numbered backups keep this run's own copies, too.
    let keeps_all = options.backup.as_ref().is_some_and(|backup| backup.control == Control::Numbered);
    if let Some(made) = run.operands.made_before(&entry).filter(|_| !keeps_all) {
        return Err(if made == FileKind::Symlink && through {
            FailureKind::ThroughJustCreated
        } else {
            FailureKind::JustCreated
        });
    }
    if let Some(backup) = &options.backup {
        return match Box::pin(backup::destroys_source(run, entry, backup)).await? {
            true => Err(FailureKind::BackupDestroysSource),
            false => Ok(Ahead::BackUp),
        };
    }
    if options.make != Make::Copy && run.options.links_may_replace() {
        return Ok(Ahead::Occupied);
    }
    // Without bytes to copy, the existing file keeps its own; with `-f` a link replaces it nevertheless, as with cp.
    let keeps = options.attributes_only;
    let parts = !keeps && options.preserve.links && existing.links > 1;
    let may_give_way = !keeps || options.force && source.kind == FileKind::Symlink;
    let is_operand = matches!(entry.folder.role, Role::Root | Role::Way);
    let keeps_links = match options.dereference {
        Dereference::Never => true,
        // Links beneath an operand are not followed.
        Dereference::CommandLine => !is_operand,
        Dereference::Always => false,
    };
    let gives_way = keeps_links && may_give_way && source.kind != FileKind::Regular;
    Ok(match existing {
        // The target is a stream.
        existing if through && options.atomic => Ahead::Overwrite(existing),
        existing if run.options.replaces_whole() => Ahead::Replace(Some(existing)),
        _ if run.options.replaces_targets() || parts || gives_way => Ahead::Replace(None),
        existing if through => Ahead::Overwrite(existing),
        _ => Ahead::Occupied,
    })
}

/// Refuses an existing target by the rules of [`crate::Options::strict_kinds`].
fn refuse_kinds(source: &Stat, existing: &Stat) -> Result<(), FailureKind> {
    if source.kind == FileKind::Symlink {
        let error = Error { operation: Operation::Symlink, cause: Cause::Errno(Errno::EXIST) };
        return Err(Verb::CreateSymlink.failed(error));
    }
    if existing.kind.is_special() { Err(FailureKind::SpecialTarget) } else { Ok(()) }
}

/// Returns true if the target is older than its source (`-u`). On a filesystem that stores whole seconds, a copy that
/// keeps times lacks its source's fraction, and is not older.
async fn is_older(run: &Run, entry: Entry<'_>, existing: &Stat, source: &Stat) -> Result<bool, FailureKind> {
    let (was, is) = (existing.times.modified, source.times.modified);
    if was >= is {
        return Ok(false);
    }
    let is_cut_off = was.seconds == is.seconds && has_whole_seconds(existing);
    if !is_cut_off || !run.options.preserve.timestamps {
        return Ok(true);
    }
    let dir = run.dirs(entry.folder).await.during(Verb::StatTarget)?.target;
    // A single file may have whole seconds by chance, so its folder is checked, too.
    let folder = dir.stat().await.during(Verb::StatTarget)?;
    Ok(!has_whole_seconds(&folder))
}

fn has_whole_seconds(stat: &Stat) -> bool {
    stat.times.modified.nanoseconds == 0 && stat.times.accessed.nanoseconds == 0
}

/// Returns the attributes of the target, or of the file that its link leads to if bytes go `through` it.
async fn find(run: &Run, entry: Entry<'_>, through: bool) -> Result<Option<Stat>, FailureKind> {
    let dir = run.dirs(entry.folder).await.during(Verb::StatTarget)?.target;
    let name = entry.target;
    let is_free = |error: &ferry_io::Error| error.is(Errno::NOENT);
    let lost = match dir.stat_entry(name, through).await {
        Ok(found) => return Ok(Some(found)),
        Err(error) if through && (is_free(&error) || error.is(Errno::LOOP)) => error,
        Err(error) if is_free(&error) => return Ok(None),
        Err(error) => return Err(Verb::StatTarget.failed(error)),
    };
    match dir.stat_entry(name, false).await {
        Err(error) if is_free(&error) => Ok(None),
        Err(error) => Err(Verb::StatTarget.failed(error)),
        // Another program has just made it.
        Ok(found) if found.kind != FileKind::Symlink => Ok(Some(found)),
        // A circular link may be replaced; a dangling one would have a file made in an unexpected place.
        Ok(link) if lost.is(Errno::LOOP) && run.options.force => Ok(Some(link)),
        Ok(_) if lost.is(Errno::LOOP) => Err(Verb::StatTarget.failed(lost)),
        Ok(_) if run.operands.made_before(&entry).is_some() => Err(FailureKind::JustCreated),
        // The file is created by following it.
        Ok(_) if run.options.through_dangling => Ok(None),
        Ok(_) => Err(FailureKind::DanglingTarget),
    }
}

/// Returns true if bytes go into the file that the target's name leads to.
fn writes_through(run: &Run, source: &Stat) -> bool {
    moves_bytes(run, source) && !run.options.replaces_targets()
}

fn moves_bytes(run: &Run, source: &Stat) -> bool {
    let has_bytes =
        source.kind == FileKind::Regular || run.options.copy_contents && source.kind != FileKind::Symlink;
    has_bytes && run.options.make == Make::Copy
}

/// Returns true if bytes that would replace a file go into a pipe or a device, which is never complete.
async fn leads_to_stream(run: &Run, entry: Entry<'_>, source: &Stat) -> Result<bool, FailureKind> {
    let options = &run.options;
    let is_removed = options.remove_destination || options.backup.is_some();
    if !options.atomic || is_removed || !moves_bytes(run, source) {
        return Ok(false);
    }
    let dir = run.dirs(entry.folder).await.during(Verb::StatTarget)?.target;
    let led = dir.stat_entry(entry.target, true).await;
    Ok(led.is_ok_and(|led| !matches!(led.kind, FileKind::Regular | FileKind::Directory)))
}
