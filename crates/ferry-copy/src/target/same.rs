//! Source and target that are one file: cp's rules for replacing it.

use ferry_io::{Dir, FileKind, Stat};

use crate::folder::Dirs;
use crate::identity::identity;
use crate::options::Make;
use crate::place::Entry;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;

/// Relation of source and target.
pub(super) enum Sameness {
    /// Two files.
    Other,
    /// One file, as requested.
    Wanted,
    /// One file, which would be lost.
    Refused,
}

/// Finds out if the target is the source by another name: replacing it may then lose both.
pub(super) async fn sameness(
    run: &Run,
    entry: Entry<'_>,
    source: &Stat,
    existing: &Stat,
    through: bool,
) -> Result<Sameness, FailureKind> {
    let make = run.options.make;
    let one = if make == Make::HardLink { Sameness::Wanted } else { Sameness::Refused };
    if through {
        return Ok(if existing.is_same_file(source) { one } else { Sameness::Other });
    }
    let Dirs { source: source_dir, target: target_dir } =
        run.dirs(entry.folder).await.during(Verb::StatTarget)?;
    let (source_name, target_name) = (entry.source, entry.target);
    let is_link = source.kind == FileKind::Symlink;
    if existing.kind == FileKind::Symlink {
        let itself = source_dir.stat_entry(source_name, false).await.during(Verb::Stat)?;
        if !itself.is_same_file(existing) {
            let leads_back = make == Make::Copy
                && !is_link
                && !run.options.replaces_targets()
                && target_dir.stat_entry(target_name, true).await.is_ok_and(|led| led.is_same_file(source));
            return Ok(if leads_back { Sameness::Refused } else { Sameness::Other });
        }
        let backs_up = run.options.backup.is_some();
        let replaces = run.options.force || run.options.replaces_targets();
        return Ok(match is_one_name(entry, &source_dir, &target_dir).await? {
            true if backs_up && make == Make::SymbolicLink => Sameness::Other,
            false if backs_up && make != Make::HardLink => Sameness::Other,
            true if is_link => one,
            // It would be removed before it is followed.
            true if replaces && (backs_up || !(make == Make::HardLink && run.options.force)) => {
                Sameness::Refused
            }
            false if is_link => Sameness::Wanted,
            true | false => Sameness::Other,
        });
    }
    if is_link {
        let led = source_dir.stat_entry(source_name, true).await;
        let is_kept = run.options.backup.is_some() && make != Make::HardLink;
        let leads_there = !is_kept && led.is_ok_and(|led| led.is_same_file(existing));
        return Ok(if leads_there { one } else { Sameness::Other });
    }
    if !existing.is_same_file(source) {
        return Ok(Sameness::Other);
    }
    // A further name of the file may be replaced by a copy.
    let may_part = make != Make::HardLink && run.options.replaces_targets();
    if may_part && !is_one_name(entry, &source_dir, &target_dir).await? {
        let itself = source_dir.stat_entry(source_name, false).await.during(Verb::Stat)?;
        return Ok(if itself.kind == FileKind::Symlink { one } else { Sameness::Other });
    }
    Ok(one)
}

/// Returns true if source and target are the same name in the same folder.
async fn is_one_name(entry: Entry<'_>, source: &Dir, target: &Dir) -> Result<bool, FailureKind> {
    let (source_name, target_name) = (entry.source, entry.target);
    if source_name != target_name {
        return Ok(false);
    }
    let source = source.stat().await.during(Verb::Stat)?;
    let target = target.stat().await.during(Verb::StatTarget)?;
    Ok(identity(&source) == identity(&target))
}
