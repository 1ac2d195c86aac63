//! Making and taking back backups of existing targets.
//!
//! An existing target gets another name by rename(2), whatever its kind. A copy that fails afterwards gives it its name
//! back.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use ferry_io::{Cause, Dir, Errno, Error, Name, Operation, protect};

use crate::folder::Dirs;
use crate::naming::{Backup, Control, cut};
use crate::place::Entry;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;

/// Tries to find a free number while other programs take them.
const ATTEMPTS: u32 = 100;

/// Returns the name of an entry's backup, and true if it is numbered.
async fn find(dir: &Dir, backup: &Backup, original: &Name) -> ferry_io::Result<(OsString, bool)> {
    let mut naming = backup.of(original.as_os_str());
    // From the start, and then from the descriptor's own position.
    let mut from = Some(0);
    let mut is_over = !naming.looks_around();
    while !is_over {
        is_over = match dir.list(from).await {
            Ok(found) => {
                found.entries.iter().for_each(|entry| naming.see(entry.name.as_os_str()));
                found.next.is_none()
            }
            // The folder may be searched, but not listed.
            Err(error) if error.is(Errno::BADF) => true,
            Err(error) => return Err(error),
        };
        from = None;
    }
    Ok((naming.name(), naming.is_numbered()))
}

/// Returns true if the backup would replace the source.
pub(crate) async fn destroys_source(
    run: &Run,
    entry: Entry<'_>,
    backup: &Backup,
) -> Result<bool, FailureKind> {
    let Dirs { source: source_dir, target: target_dir } =
        run.dirs(entry.folder).await.during(Verb::BackUp)?;
    let (source, target) = (entry.source, entry.target);
    if backup.control == Control::Numbered {
        return Ok(false);
    }
    let Some(lost) = Name::new(&backup.simple(target.as_bytes())) else { return Ok(false) };
    let Ok(lost_stat) = target_dir.stat_entry(&lost, false).await else { return Ok(false) };
    let is_led_to = match source_dir.stat_entry(source, false).await {
        Ok(itself) if itself.kind == ferry_io::FileKind::Symlink => {
            source_dir.stat_entry(source, true).await.is_ok_and(|led| led.is_same_file(&lost_stat))
        }
        Ok(itself) => source.as_bytes() == lost.as_bytes() && itself.is_same_file(&lost_stat),
        Err(_) => false,
    };
    if !is_led_to || backup.control == Control::Simple {
        return Ok(is_led_to);
    }
    // Numbered backups replace nothing.
    let _turn = run.backing_up.acquire().await.during(Verb::BackUp)?;
    find(&target_dir, backup, target).await.map(|(_, is_numbered)| !is_numbered).during(Verb::BackUp)
}

/// Renames an existing target to its backup's name, and returns that; `None` if the target is gone.
pub(crate) async fn make(run: &Run, entry: Entry<'_>) -> Result<Option<Name>, FailureKind> {
    let Some(backup) = &run.options.backup else { return Ok(None) };
    let dir = run.dirs(entry.folder).await.during(Verb::BackUp)?.target;
    let original = entry.target;
    // A listing has one position, and two would find the same number free.
    let _turn = run.backing_up.acquire().await.during(Verb::BackUp)?;
    let mut last = Errno::EXIST;
    for _ in 0..ATTEMPTS {
        let (found, is_numbered) = find(&dir, backup, original).await.during(Verb::BackUp)?;
        let Some(name) = Name::new(found.as_bytes()) else {
            last = Errno::NAMETOOLONG;
            break;
        };
        match protect(dir.rename(original, &dir, &name, !is_numbered)).await {
            Ok(()) => {
                if !is_numbered {
                    // rename(2) does nothing if both names are the same file.
                    leave_name(&dir, original, &name).await.during(Verb::BackUp)?;
                }
                return Ok(Some(name));
            }
            Err(error) if error.is(Errno::NOENT) => return Ok(None),
            // A shortened name would be the same in the next attempt.
            Err(error) if is_numbered && error.is(Errno::EXIST) && !is_cut(original, &name) => {}
            Err(error) => return Err(Verb::BackUp.failed(error)),
        }
    }
    Err(Verb::BackUp.failed(Error { operation: Operation::Rename, cause: Cause::Errno(last) }))
}

fn is_cut(original: &Name, backup: &Name) -> bool {
    backup.as_bytes() == cut(original.as_bytes())
}

async fn leave_name(dir: &Dir, original: &Name, backup: &Name) -> ferry_io::Result<()> {
    let (Ok(left), Ok(made)) = (dir.stat_entry(original, false).await, dir.stat_entry(backup, false).await)
    else {
        return Ok(());
    };
    if left.is_same_file(&made) { dir.unlink(original).await } else { Ok(()) }
}

/// Gives a backup its name back after the copy has failed; an error is reported.
pub(crate) async fn take_back(run: &Run, entry: Entry<'_>, backup: Option<&Name>) {
    let Some(backup) = backup else { return };
    let taken_back = protect(async {
        let dir = run.dirs(entry.folder).await?.target;
        dir.rename(backup, &dir, entry.target, false).await
    });
    match taken_back.await {
        Ok(()) if run.options.verbose => {
            run.observer.taken_back(&entry.path_beside(backup), &entry.target_path());
        }
        Ok(()) => {}
        Err(error) => run.fail(entry, Verb::TakeBack.failed(error)),
    }
}
