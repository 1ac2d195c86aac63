//! A copy from its beginning to its summary: each operand in turn, by as many workers as it needs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ferry_io::{Cause, Dir, Errno, Error, FileKind, Io, Jobs, Name, Operation, Paths, SetupError};

use crate::copier::{Copier, Met, Place, collapsed, identity};
use crate::durable;
use crate::entry::{self, Found};
use crate::folder::{Folder, Role, Root};
use crate::options::{Dereference, Item, Options};
use crate::report::{FailureKind, Observer, Progress, Summary, Verb};
use crate::staging;
use crate::through;
use crate::walk::{self, Job};

/// Copies every item, and returns when all is done and nothing of it runs any more.
///
/// SIGINT, SIGTERM and SIGHUP end it early: new targets in flight are removed, existing ones are marked and reported
/// ([`Observer::unfinished`]), and the summary says so.
///
/// # Errors
/// [`SetupError`] if the runtime can't be set up. What goes wrong with a path is told to the observer.
pub fn run(
    items: Vec<Item>,
    options: &Options,
    io_options: &ferry_io::Options,
    progress: Arc<Progress>,
    observer: Arc<dyn Observer>,
) -> Result<Summary, SetupError> {
    run_from(Paths::new(), items, options, io_options, progress, observer)
}

/// The same, by paths some of which may have been walked already: no folder is looked for a second time.
///
/// # Errors
/// Those of [`run`].
pub fn run_from(
    paths: Paths,
    items: Vec<Item>,
    options: &Options,
    io_options: &ferry_io::Options,
    progress: Arc<Progress>,
    observer: Arc<dyn Observer>,
) -> Result<Summary, SetupError> {
    let (summary, stats) = ferry_io::run(io_options, async |io: Io| {
        // Without handlers a signal kills the process, as it does cp.
        io.stop_on_signals().ok();
        let copier = Arc::new(Copier::new(io, paths, options.clone(), Arc::clone(&progress), observer));
        copier.items_are_remembered.store(items.len() > 1, Ordering::Relaxed);
        copier.syncs_each.store(options.fsync && items.len() <= FEW_FILES, Ordering::Relaxed);
        copier.walk_grows(items.len() as u64);
        for item in &items {
            if copier.io.is_stopped() {
                break;
            }
            copy_item(&copier, item).await;
        }
        progress.walk_ended.store(true, Ordering::Release);
        durable::end(&copier).await;
        copier.summary()
    })?;
    Ok(Summary { wall: stats.wall, io: stats, ..summary })
}

/// Up to so many operands that are files are synced one by one.
const FEW_FILES: usize = 16;

/// Copies one operand.
async fn copy_item(copier: &Arc<Copier>, item: &Item) {
    let opened = match open(copier, item) {
        Ok(opened) => opened,
        Err((source, kind)) => {
            copier.fail_at(source, item.base.join(&item.relative), kind);
            return;
        }
    };
    copier.progress.entries_found.add(1);
    let (source, target) = (opened.root.source.clone(), opened.root.target.clone());
    let mut folder = Folder::root(opened.root);
    copier.adapt_to(&folder, &source, &target).await;
    if opened.target_name.is_some() {
        staging::clear_leftovers(copier, &target).await;
    }
    let (mut can_go_on, mut way_is_new) = (true, false);
    let is_apart = !opened.way.is_empty();
    let mut way = opened.way.iter();
    while let Some(step) = way.next() {
        can_go_on = can_go_on && go(copier, &mut folder, step, (item, way.as_slice())).await;
        way_is_new |= folder.facts().is_some_and(|facts| facts.is_new);
    }
    if !can_go_on {
        folder.cut_short();
    }
    let operand = Operand {
        item,
        source: opened.source_name,
        target: opened.target_name,
        is_apart,
        is_new: way_is_new,
    };
    if let Some(is_folder) = repeats(copier, &folder, &operand).await {
        copier.observer.repeated(&item.source, is_folder);
    } else if can_go_on {
        copy_operand(copier, &folder, operand).await;
    }
    copier.progress.entries_done.add(1);
    walk::finish(copier, folder).await;
}

/// An operand in the folder that it is in.
struct Operand<'a> {
    item: &'a Item,
    /// Its name; `None` where it ends in a slash or a dot.
    source: Option<Name>,
    /// Its copy's; `None` where that is the folder itself.
    target: Option<Name>,
    /// Whether there is a way to it (`--parents`): then the source's folder is not what its path leads through.
    is_apart: bool,
    /// Whether a folder on that way was made.
    is_new: bool,
}

/// Whether an operand is the same as an earlier one, and is to have the same name in the same place: then, whether it is
/// a folder.
async fn repeats(copier: &Copier, folder: &Arc<Folder>, operand: &Operand<'_>) -> Option<bool> {
    let item = operand.item;
    if !copier.items_are_remembered.load(Ordering::Relaxed) {
        return None;
    }
    let follow = copier.options.dereference != Dereference::Never;
    let (above, _) = folder.dirs(&copier.open_folders).await.ok()?;
    let found = match &operand.source {
        Some(name) => above.stat_entry(name, follow).await,
        None if operand.is_apart => open_folder(copier, &item.source).ok()?.stat().await,
        None => above.stat().await,
    };
    let found = found.ok()?;
    let is_folder = found.kind == FileKind::Directory;
    let above = match is_folder {
        true if copier.options.recursive => None,
        false if copier.options.backup.is_none() => {
            Some(identity(&copier.paths.stat(folder_part(&item.source), false).ok()?))
        }
        // Without `-r` a folder is left out; with backups a file's second copy need not cost the first.
        true | false => return None,
    };
    let name = OsStr::from_bytes(last_part(item.source.as_os_str().as_bytes())).to_owned();
    let operand = Met { source: identity(&found), above, name, relative: collapsed(&item.relative) };
    copier.has_met(operand).then_some(is_folder)
}

/// What stands before a path's last slashes, as it is written: `link/.` is a folder, `link` the link to it.
fn folder_part(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let Some(slash) = bytes.iter().rposition(|&byte| byte == b'/') else { return Path::new(".") };
    Path::new(OsStr::from_bytes(without_slashes(&bytes[..=slash])))
}

/// Goes on by one step on the way to an operand, making its folder; whether that could be done.
async fn go(
    copier: &Copier,
    folder: &mut Arc<Folder>,
    step: &Step,
    (item, further): (&Item, &[Step]),
) -> bool {
    let Step { name, climbs, source_path, target_path } = step.clone();
    let source = match open_folder(copier, &source_path) {
        Ok(source) => source,
        Err(error) => {
            let preserve = copier.options.preserve;
            let keeps = preserve.mode || preserve.ownership || preserve.timestamps;
            // As cp, which looks at the target first, and at the source's folders only where one is to be made like them.
            match end_of_way(copier, folder, step, further).await {
                Some(End::Folder) => {
                    let target = item.base.join(&item.relative);
                    let kind = FailureKind::Io { verb: Verb::Stat, error };
                    copier.fail_at(item.source.clone(), target, kind);
                }
                Some(End::File(at, is_whole)) if is_whole || !keeps => {
                    copier.fail_at(source_path, at, FailureKind::WayIsFile);
                }
                Some(End::File(..)) | None => {
                    let kind = FailureKind::Io { verb: Verb::StatWay, error };
                    copier.fail_at(source_path, target_path, kind);
                }
            }
            return false;
        }
    };
    let paths = (source_path, target_path);
    let (next, is_made) = match name {
        Some(name) => (Folder::apart(folder, source, name, paths, Role::Way), false),
        None => {
            let once = folder.once();
            // What is above is a folder that the way has come through.
            let at = if climbs { once.parent().map_or(once, |above| above.once()) } else { once };
            match at.dirs(&copier.open_folders).await {
                Ok((_, target)) => (Folder::again(at, (source, target), paths), true),
                Err(error) => {
                    copier.fail_at(paths.0, paths.1, FailureKind::Io { verb: Verb::CreateWay, error });
                    return false;
                }
            }
        }
    };
    // What is pending in the one before is now the next alone.
    let before = std::mem::replace(folder, next);
    walk::finish(copier, before).await;
    copier.durable.await_end();
    is_made || walk::make_way(copier, folder).await
}

/// Where the target's part of a way leads.
enum End {
    /// To a folder: all of it is there.
    Folder,
    /// To something else that has this path; whether that is where it ends.
    File(PathBuf, bool),
}

/// Where the way goes from a step on in the target; `None` where something of it is missing.
async fn end_of_way(copier: &Copier, folder: &Arc<Folder>, step: &Step, further: &[Step]) -> Option<End> {
    let (_, mut at) = folder.dirs(&copier.open_folders).await.ok()?;
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
            // Of what comes after it there is nothing to be told.
            return (is_whole || index == 0).then(|| End::File(step.target_path.clone(), is_whole));
        }
        at = through::open_folder(copier, &at, name).await.ok()?;
    }
    Some(End::Folder)
}

async fn copy_operand(copier: &Arc<Copier>, folder: &Arc<Folder>, operand: Operand<'_>) {
    let Operand { item, source, target, is_apart, is_new } = operand;
    let fail = |kind| copier.fail_at(item.source.clone(), item.base.join(&item.relative), kind);
    // It is named by a path that ends in a slash or a dot: the folder on the way is not the one above it.
    let given = if is_apart && source.is_none() {
        match open_folder(copier, &item.source) {
            Ok(dir) => Some(dir),
            Err(error) => return fail(FailureKind::Io { verb: Verb::Stat, error }),
        }
    } else {
        None
    };
    let place = Place { folder, source: source.as_ref(), target: target.as_ref() };
    let found = if source.is_some() && target.is_some() {
        entry::copy(copier, place, None, true).await
    } else if copier.options.recursive {
        // A folder without a name on one side: it can be nothing else. One that a link leads to is named as it is in `-T link t`.
        Found::Folder { follow: source.is_some() && copier.options.dereference != Dereference::Never }
    } else {
        fail(FailureKind::OmittingDirectory);
        Found::Done
    };
    let Found::Folder { follow } = found else { return };
    let operand = match (given, target) {
        // As by cp: what was made for its own way it would not make again.
        (Some(_), None) if is_new => {
            let error = Error { operation: Operation::MakeDirectory, cause: Cause::Errno(Errno::EXIST) };
            return fail(FailureKind::Io { verb: Verb::CreateDirectory, error });
        }
        (Some(dir), Some(target)) => {
            let paths = (item.source.clone(), item.base.join(&item.relative));
            Folder::apart(folder, dir, target, paths, Role::Operand)
        }
        (_, target) => Folder::beneath(folder, source, target, follow, Role::Operand),
    };
    copier.durable.await_end();
    let job = Job::Enter(operand);
    let work = {
        let copier = Arc::clone(copier);
        async move |jobs: &Jobs<Job>, job| walk::run(&copier, jobs, job).await
    };
    copier.io.share(vec![job], copier.folders_at_once, work).await;
}

/// An operand's folders, opened by the paths that the user gave.
struct Opened {
    root: Root,
    /// What is between the base and the copy (`--parents`).
    way: Vec<Step>,
    source_name: Option<Name>,
    target_name: Option<Name>,
}

/// What can't be opened is told with its path.
fn open(copier: &Copier, item: &Item) -> Result<Opened, (PathBuf, FailureKind)> {
    let (source_path, source_name) = split(&item.source);
    let way = way(item);
    let target_name = match last_part(item.relative.as_os_str().as_bytes()) {
        b"" | b"." | b".." => None,
        name => Name::new(name),
    };
    // With folders on the way the source is opened when they are there: it may be missing.
    let above = if way.is_empty() { source_path } else { Path::new("") };
    let fail = |verb| {
        let path = item.source.clone();
        move |error| (path, FailureKind::Io { verb, error })
    };
    let root = Root {
        source: open_folder(copier, above).map_err(fail(Verb::Stat))?,
        target: open_target(copier, item).map_err(|(verb, error)| fail(verb)(error))?,
        source_path: above.to_path_buf(),
        // `SOURCE/.` is copied to `DIRECTORY/.`.
        target_path: match &target_name {
            None if way.is_empty() && !item.relative.as_os_str().is_empty() => item.base.join(&item.relative),
            Some(_) | None => item.base.clone(),
        },
    };
    Ok(Opened { root, way, source_name, target_name })
}

/// Opens what an item's copy is in.
fn open_target(copier: &Copier, item: &Item) -> Result<Dir, (Verb, Error)> {
    let base = open_folder(copier, &item.base).map_err(|error| (Verb::CreateFile, error))?;
    // Without `-r` it is left out, wherever it was to go.
    if copier.options.recursive && item.relative.as_os_str() == "." {
        // It is to be looked at in there.
        open_folder(copier, &item.base.join(".")).map_err(|error| (Verb::StatTarget, error))?;
    }
    Ok(base)
}

fn open_folder(copier: &Copier, path: &Path) -> ferry_io::Result<Dir> {
    copier.io.folder(&copier.paths, path)
}

/// One component of the way from an item's base to its copy.
#[derive(Clone)]
struct Step {
    /// The folder that is gone into; `None` for `.` and `..`.
    name: Option<Name>,
    /// Whether it is `..`.
    climbs: bool,
    source_path: PathBuf,
    target_path: PathBuf,
}

/// The way to an item's copy, without what the copy itself is named; `.` matters only there.
fn way(item: &Item) -> Vec<Step> {
    let relative = item.relative.as_os_str().as_bytes();
    let source = without_slashes(item.source.as_os_str().as_bytes());
    let Some(lead) = source.strip_suffix(relative).filter(|_| relative.contains(&b'/')) else {
        return Vec::new();
    };
    let mut way = Vec::new();
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
        way.extend(name.map(|name| Step {
            name,
            climbs: part == b"..",
            source_path: Path::new(OsStr::from_bytes(&source[..lead.len() + end])).to_owned(),
            target_path: item.base.join(OsStr::from_bytes(&relative[..end])),
        }));
        end += 1;
    }
    way
}

/// The last component, as it is written.
fn last_part(path: &[u8]) -> &[u8] {
    let path = without_slashes(path);
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// `a//` is `a`.
fn without_slashes(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(path.len().min(1), |last| last + 1);
    &path[..end]
}

/// A path as the folder to open and the name in it; no name where the path itself is that folder.
fn split(path: &Path) -> (&Path, Option<Name>) {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.ends_with(b"/") || bytes.ends_with(b"/.") {
        return (path, None);
    }
    match path.file_name().and_then(|name| Name::new(name.as_encoded_bytes())) {
        // As it is written, slashes and all: so it is told.
        Some(name) => {
            (Path::new(OsStr::from_bytes(&bytes[..bytes.len() - name.as_bytes().len()])), Some(name))
        }
        None => (path, None),
    }
}
