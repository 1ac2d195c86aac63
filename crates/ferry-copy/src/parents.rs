//! `--parents`: the folders between an item's base and its copy are made, as those above its source are.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferry_io::{FileKind, Name};

use crate::finish;
use crate::folder::{Dirs, Folder, PathPair, Role};
use crate::options::Item;
use crate::paths::without_trailing_slashes;
use crate::report::{FailureKind, Verb};
use crate::run::Run;
use crate::through;
use crate::walk;

/// One component between an item's base and its copy.
#[derive(Clone)]
pub(crate) struct Step {
    /// Folder to enter; `None` for `.` and `..`.
    name: Option<Name>,
    /// Set for `..`.
    climbs: bool,
    source_path: PathBuf,
    target_path: PathBuf,
}

/// Returns the steps to an item's copy, without its own name. A `.` matters only as the last component.
pub(crate) fn steps(item: &Item) -> Vec<Step> {
    let relative = item.relative.as_os_str().as_bytes();
    let source = without_trailing_slashes(&item.source).as_os_str().as_bytes();
    let Some(lead) = source.strip_suffix(relative).filter(|_| relative.contains(&b'/')) else {
        return Vec::new();
    };
    let mut steps = Vec::new();
    let mut end = 0;
    for part in relative.split(|&byte| byte == b'/') {
        end += part.len();
        let is_last = end == relative.len();
        let name = match part {
            b".." => Some(None),
            b"." if is_last => Some(None),
            b"" | b"." => None,
            _ if is_last => None,
            part => Name::new(part).map(Some),
        };
        steps.extend(name.map(|name| Step {
            name,
            climbs: part == b"..",
            source_path: Path::new(OsStr::from_bytes(&source[..lead.len() + end])).to_owned(),
            target_path: item.base.join(OsStr::from_bytes(&relative[..end])),
        }));
        end += 1;
    }
    steps
}

/// Outcome of making the folders up to an operand.
pub(crate) struct Way {
    pub(crate) folder: Arc<Folder>,
    /// Set if the operand can be reached; a failure has been reported otherwise.
    pub(crate) is_whole: bool,
    /// Set if one of its folders is new.
    pub(crate) is_new: bool,
}

/// Goes from an item's base to the folder of its copy, and makes the folders that are missing.
pub(crate) async fn go(run: &Run, base: Arc<Folder>, item: &Item, steps: &[Step]) -> Way {
    let mut way = Way { folder: base, is_whole: true, is_new: false };
    let mut steps = steps.iter();
    while let Some(step) = steps.next() {
        way.is_whole = way.is_whole && take(run, &mut way.folder, item, step, steps.as_slice()).await;
        way.is_new |= way.folder.facts().is_some_and(|facts| facts.is_new);
    }
    if !way.is_whole {
        way.folder.cut_short();
    }
    way
}

/// Takes one step. Returns true if it could be taken.
async fn take(run: &Run, folder: &mut Arc<Folder>, item: &Item, step: &Step, further: &[Step]) -> bool {
    let Step { name, climbs, source_path, target_path } = step.clone();
    let source = match run.io.folder(&run.paths, &source_path) {
        Ok(source) => source,
        Err(error) => {
            let preserve = run.options.preserve;
            let keeps = preserve.mode || preserve.ownership || preserve.timestamps;
            // cp looks at the target first, and at the source's folders only where one is to be made like them.
            match end_of_way(run, folder, step, further).await {
                Some(End::Folder) => {
                    let target = item.base.join(&item.relative);
                    run.fail_at(item.source.clone(), target, Verb::Stat.failed(error));
                }
                Some(End::File { path, is_whole }) if is_whole || !keeps => {
                    run.fail_at(source_path, path, FailureKind::WayIsFile);
                }
                Some(End::File { .. }) | None => {
                    run.fail_at(source_path, target_path, Verb::StatWay.failed(error));
                }
            }
            return false;
        }
    };
    let paths = PathPair { source: source_path, target: target_path };
    let (next, is_made) = match name {
        Some(name) => (Folder::apart(folder, source, name, paths, Role::Way), false),
        None => {
            let once = folder.once();
            // The folder above is one that the way has come through.
            let at = if climbs { once.parent().map_or(once, |above| above.once()) } else { once };
            match run.dirs(at).await {
                Ok(Dirs { target, .. }) => (Folder::again(at, Dirs { source, target }, paths), true),
                Err(error) => {
                    run.fail_at(paths.source, paths.target, Verb::CreateWay.failed(error));
                    return false;
                }
            }
        }
    };
    // Only the next one is pending in the folder before.
    let before = std::mem::replace(folder, next);
    finish::end_one(run, before).await;
    run.durable.await_end();
    is_made || walk::enter(run, folder, None).await.is_some()
}

/// End of an existing way in the target.
enum End {
    /// All of it leads through folders.
    Folder,
    /// A file of this path is in the way; it `is_whole` if the way ends there.
    File { path: PathBuf, is_whole: bool },
}

/// Follows the target's part of a way from a step on; `None` if some of it is missing.
async fn end_of_way(run: &Run, folder: &Arc<Folder>, step: &Step, further: &[Step]) -> Option<End> {
    let mut at = run.dirs(folder).await.ok()?.target;
    for (index, step) in std::iter::once(step).chain(further).enumerate() {
        let Some(name) = &step.name else {
            if step.climbs {
                at = at.parent().await.ok()?;
            }
            continue;
        };
        let existing = at.stat_entry(name, true).await.ok()?;
        if existing.kind != FileKind::Directory {
            let is_whole = further[index..].iter().all(|step| step.name.is_none() && !step.climbs);
            // A file further in is not reported.
            let path = step.target_path.clone();
            return (is_whole || index == 0).then_some(End::File { path, is_whole });
        }
        at = through::open_folder(run, &at, name).await.ok()?;
    }
    Some(End::Folder)
}
