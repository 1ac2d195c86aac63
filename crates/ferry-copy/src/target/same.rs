//! Whether source and target are one file, by which names, and what cp makes of it.

use ferry_io::{Dir, FileKind, Stat};

use super::{io, replaces};
use crate::copier::{Copier, Place, identity};
use crate::entry::names;
use crate::options::Make;
use crate::report::{FailureKind, Verb};

/// How source and target are related.
pub(super) enum Sameness {
    /// Two files.
    Other,
    /// One, which is what is asked for.
    Wanted,
    /// One, which would be lost.
    Refused,
}

/// Finds out whether the target is the source by another name: then replacing it may lose both.
pub(super) async fn sameness(
    copier: &Copier,
    place: Place<'_>,
    source: &Stat,
    existing: &Stat,
    through: bool,
) -> Result<Sameness, FailureKind> {
    let make = copier.options.make;
    let one = if make == Make::HardLink { Sameness::Wanted } else { Sameness::Refused };
    if through {
        return Ok(if existing.is_same_file(source) { one } else { Sameness::Other });
    }
    let (source_dir, target_dir) =
        place.folder.dirs(&copier.open_folders).await.map_err(io(Verb::StatTarget))?;
    let (source_name, target_name) = names(&place);
    let is_link = source.kind == FileKind::Symlink;
    if existing.kind == FileKind::Symlink {
        let itself = source_dir.stat_entry(source_name, false).await.map_err(io(Verb::Stat))?;
        if !itself.is_same_file(existing) {
            let leads_back = make == Make::Copy
                && !is_link
                && !replaces(copier)
                && target_dir.stat_entry(target_name, true).await.is_ok_and(|led| led.is_same_file(source));
            return Ok(if leads_back { Sameness::Refused } else { Sameness::Other });
        }
        let backs_up = copier.options.backup.is_some();
        let replaces = copier.options.force || replaces(copier);
        return Ok(match is_one_name(&place, &source_dir, &target_dir).await? {
            true if backs_up && make == Make::SymbolicLink => Sameness::Other,
            false if backs_up && make != Make::HardLink => Sameness::Other,
            true if is_link => one,
            // It would be removed before it is followed.
            true if replaces && (backs_up || !(make == Make::HardLink && copier.options.force)) => {
                Sameness::Refused
            }
            false if is_link => Sameness::Wanted,
            true | false => Sameness::Other,
        });
    }
    if is_link {
        let led = source_dir.stat_entry(source_name, true).await;
        let is_kept = copier.options.backup.is_some() && make != Make::HardLink;
        let leads_there = !is_kept && led.is_ok_and(|led| led.is_same_file(existing));
        return Ok(if leads_there { one } else { Sameness::Other });
    }
    if !existing.is_same_file(source) {
        return Ok(Sameness::Other);
    }
    // A further name of the file may be replaced by a copy.
    let may_part = make != Make::HardLink && replaces(copier);
    if may_part && !is_one_name(&place, &source_dir, &target_dir).await? {
        let itself = source_dir.stat_entry(source_name, false).await.map_err(io(Verb::Stat))?;
        return Ok(if itself.kind == FileKind::Symlink { one } else { Sameness::Other });
    }
    Ok(one)
}

/// Whether source and target are the same name in the same folder.
async fn is_one_name(place: &Place<'_>, source: &Dir, target: &Dir) -> Result<bool, FailureKind> {
    let (source_name, target_name) = names(place);
    if source_name != target_name {
        return Ok(false);
    }
    let source = source.stat().await.map_err(io(Verb::Stat))?;
    let target = target.stat().await.map_err(io(Verb::StatTarget))?;
    Ok(identity(&source) == identity(&target))
}
