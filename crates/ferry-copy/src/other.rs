//! Entries without bytes of their own: symbolic links, FIFOs, sockets and devices; and with `-s` links to the source.

use std::ffi::CString;
use std::sync::Arc;

use ferry_io::{Dir, Error, File, FileKind, Name, Stat, protect};

use crate::backup;
use crate::claim::{self, Ended};
use crate::folder::Dirs;
use crate::links::{FirstCopy, NameClaim};
use crate::meta;
use crate::mode::TargetMode;
use crate::place::Entry;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::{Details, Run};
use crate::staging;
use crate::target::{self, Ahead, Seen};

/// Copies a link as a link, or makes a FIFO, socket or device like the source.
pub(crate) async fn copy(run: &Arc<Run>, entry: Entry<'_>, seen: &Seen) -> Result<Ended, FailureKind> {
    let stat = match seen.stat {
        Some(stat) => stat,
        None => run.stat(entry, seen.follow).await?,
    };
    match claim::claim_unopened(run, entry, &stat, seen.look()).await? {
        NameClaim::Alone => make(run, entry, &stat, seen.ahead).await.map(|_| Ended::Settled),
        NameClaim::First(file) => Ok(Ended::First(file, make(run, entry, &stat, seen.ahead).await)),
        NameClaim::Left => Ok(Ended::Settled),
        NameClaim::Linked(file, first) => Ok(Ended::Later(file, first)),
    }
}

/// Makes a link or special file, with its kept attributes. Returns its identity if other names may be linked to it.
pub(crate) async fn make(
    run: &Arc<Run>,
    entry: Entry<'_>,
    stat: &Stat,
    ahead: Ahead,
) -> Result<Option<FirstCopy>, FailureKind> {
    if matches!(stat.kind, FileKind::Regular | FileKind::Directory) {
        // It was listed as another kind: mknod(2) would make an empty file of it.
        return Err(FailureKind::Replaced);
    }
    match ahead {
        Ahead::Stays | Ahead::IsNewer | Ahead::Made => return Ok(None),
        Ahead::Free | Ahead::Overwrite(_) | Ahead::Replace(_) | Ahead::BackUp | Ahead::Occupied => {}
    }
    let Dirs { source: source_dir, target: dir } = run.dirs(entry.folder).await.during(Verb::Stat)?;
    let text = if stat.kind == FileKind::Symlink {
        let text = source_dir.read_link(entry.source).await.during(Verb::ReadLink)?;
        Some(CString::new(text).unwrap_or_default())
    } else {
        None
    };
    let make = async |name: &Name| match &text {
        Some(text) => {
            run.expect_symlink().await?;
            dir.symlink(name, text.clone()).await
        }
        None => {
            let mode = TargetMode::entry(entry, stat.kind, stat.mode).first_mode(run.options.preserve);
            dir.make_node(name, stat.kind, mode, stat.special).await
        }
    };
    let verb = creating(stat.kind);
    let mut backup = None;
    // Not cancellable: an interruption would leave the entry half made.
    let made = protect(async {
        if !run.options.atomic {
            backup = target::clear(run, entry, ahead).await?;
            make(entry.target).await.during(verb)?;
            return keep_attributes(run, entry, &dir, stat).await;
        }
        let (hidden, ()) = staging::under_hidden_name(run, entry, &dir, make).await.during(verb)?;
        let (file, made) = reach_hidden(run, &dir, &hidden, stat).await.during(verb)?;
        let renamed = async {
            meta::keep_special(run, entry, &file, stat).await?;
            backup = target::clear(run, entry, ahead).await?;
            let replaces = matches!(ahead, Ahead::Replace(_));
            staging::rename(&dir, &hidden, entry.target, replaces).await.during(verb)
        };
        let renamed = renamed.await;
        if renamed.is_err() {
            staging::remove_own_hidden(&dir, &hidden, &made).await;
        }
        renamed.map(|()| Some(FirstCopy::of(&made)))
    })
    .await;
    match made {
        Ok(_) => {
            let counter = if text.is_some() { &run.tally.symlinks } else { &run.tally.specials };
            counter.add(1);
            run.note_made(entry.into(), stat.kind, &Details { backup: backup.as_ref(), means: None });
        }
        Err(_) => backup::take_back(run, entry, backup.as_ref()).await,
    }
    made
}

/// Returns the step of creating an entry of this kind.
fn creating(kind: FileKind) -> Verb {
    match kind {
        FileKind::Symlink => Verb::CreateSymlink,
        FileKind::Fifo => Verb::CreateFifo,
        FileKind::Regular
        | FileKind::Directory
        | FileKind::Socket
        | FileKind::CharDevice
        | FileKind::BlockDevice => Verb::CreateSpecial,
    }
}

/// Opens an entry that was just made under a hidden name. One that can't be opened is removed.
async fn reach_hidden(run: &Run, dir: &Dir, hidden: &Name, source: &Stat) -> ferry_io::Result<(File, Stat)> {
    let reached = meta::reach_made(run, dir, hidden, source).await;
    if reached.is_err()
        && let Ok(found) = dir.stat_entry(hidden, false).await
        && found.kind == source.kind
        && found.links <= 1
    {
        staging::remove_own_hidden(dir, hidden, &found).await;
    }
    reached
}

/// Sets the kept attributes of a link or special file that was just made. Returns its identity if other names may be
/// linked to it.
async fn keep_attributes(
    run: &Run,
    entry: Entry<'_>,
    dir: &Dir,
    source: &Stat,
) -> Result<Option<FirstCopy>, FailureKind> {
    let is_claimed = claim::is_claimed(run, entry, source);
    if !is_claimed && !meta::changes_special(run, entry, source) {
        return Ok(None);
    }
    let made = meta::reach_made(run, dir, entry.target, source).await;
    let (file, made) = made.during(creating(source.kind))?;
    meta::keep_special(run, entry, &file, source).await?;
    Ok(is_claimed.then(|| FirstCopy::of(&made)))
}

/// `-s`: makes a symbolic link to the source, by the path that the user gave.
pub(crate) async fn link_to_source(run: &Arc<Run>, entry: Entry<'_>, seen: &Seen) -> Result<(), FailureKind> {
    let failed = |error: Error| Verb::CreateSymlink.failed(error);
    let dir = run.dirs(entry.folder).await.map_err(failed)?.target;
    let source = match seen.stat {
        Some(source) => source,
        None => run.stat(entry, seen.follow).await?,
    };
    let path = entry.source_path();
    if path.is_relative() && !is_working_folder(run, entry, &dir).await.map_err(failed)? {
        return Err(FailureKind::RelativeSymlink);
    }
    let backup = target::clear(run, entry, seen.ahead).await?;
    let text = CString::new(path.into_os_string().into_encoded_bytes()).unwrap_or_default();
    run.expect_symlink().await.map_err(failed)?;
    let link = async |name: &Name| dir.symlink(name, text.clone()).await;
    if let Err(error) = target::put(run, entry, seen.ahead, &dir, link).await {
        backup::take_back(run, entry, backup.as_ref()).await;
        return Err(failed(error));
    }
    if run.options.preserve.timestamps {
        // The only attribute that cp gives to such a link.
        let link = Stat { kind: FileKind::Symlink, ..source };
        let set = match meta::reach_made(run, &dir, entry.target, &link).await {
            Ok((file, _)) => file.set_times(source.times).await,
            Err(error) => Err(error),
        };
        run.note_attribute(entry.into(), Verb::SetTimes, set)?;
    }
    run.tally.symlinks.add(1);
    run.note_made(entry.into(), FileKind::Symlink, &Details { backup: backup.as_ref(), means: None });
    Ok(())
}

/// Returns true if a relative path means the same in the target's folder as to the user.
async fn is_working_folder(run: &Run, entry: Entry<'_>, dir: &Dir) -> ferry_io::Result<bool> {
    if entry.is_in_new_folder() {
        return Ok(false);
    }
    let working = run.io.reach_dir(".".as_ref())?.stat().await?;
    Ok(dir.stat().await?.is_same_file(&working))
}
