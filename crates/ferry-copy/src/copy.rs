//! A copy from its beginning to its summary: each operand in turn, by as many workers as it needs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ferry_io::{Dir, FileKind, Io, Jobs, Name, Paths, SetupError};

use crate::copier::{Copier, Met, Place, identity};
use crate::durable;
use crate::entry::{self, Found};
use crate::folder::{Folder, Role, Root};
use crate::options::{Dereference, Item, Options};
use crate::report::{FailureKind, Observer, Progress, Summary, Verb};
use crate::staging;
use crate::walk::{self, Job};

/// Copies every item, and returns when all is done and nothing of it runs any more.
///
/// SIGINT and SIGTERM end it early: what is in flight is removed, and the summary says so.
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
    let begun = Instant::now();
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
    Ok(Summary { io: stats, wall: begun.elapsed(), ..summary })
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
    let mut can_go_on = true;
    for (name, source_path) in opened.way {
        can_go_on = can_go_on && go_in(copier, &mut folder, name, source_path).await;
    }
    if let Some(is_folder) = repeats(copier, &folder, item, opened.source_name.as_ref()).await {
        copier.observer.repeated(&item.source, is_folder);
    } else if can_go_on {
        copy_operand(copier, &folder, item, opened.source_name, opened.target_name).await;
    }
    copier.progress.entries_done.add(1);
    walk::finish(copier, folder).await;
}

/// Whether an operand is the same as an earlier one, and is to have the same name in the same place: then, whether it is
/// a folder.
async fn repeats(copier: &Copier, folder: &Arc<Folder>, item: &Item, source: Option<&Name>) -> Option<bool> {
    if !copier.items_are_remembered.load(Ordering::Relaxed) {
        return None;
    }
    let follow = copier.options.dereference != Dereference::Never;
    let (above, _) = folder.dirs(&copier.open_folders).await.ok()?;
    let found = match source {
        Some(name) => above.stat_entry(name, follow).await,
        None if folder.role == Role::Way => open_folder(copier, &item.source).ok()?.stat().await,
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
    let name = item.source.file_name().map(ToOwned::to_owned);
    let operand = Met { source: identity(&found), above, name, relative: item.relative.clone() };
    copier.has_met(operand).then_some(is_folder)
}

/// What stands before a path's last slashes, as it is written: `link/.` is a folder, `link` the link to it.
fn folder_part(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let Some(slash) = bytes.iter().rposition(|&byte| byte == b'/') else { return Path::new(".") };
    let end = bytes[..slash].iter().rposition(|&byte| byte != b'/').map_or(1, |last| last + 1);
    Path::new(OsStr::from_bytes(&bytes[..end]))
}

/// Goes on to the next folder on the way to an operand, making it; whether that could be done.
async fn go_in(copier: &Copier, folder: &mut Arc<Folder>, name: Name, source_path: PathBuf) -> bool {
    let source = match open_folder(copier, &source_path) {
        Ok(source) => source,
        Err(error) => {
            let kind = FailureKind::Io { verb: Verb::StatWay, error };
            copier.fail_at(source_path, folder.target_path().join(name.as_os_str()), kind);
            return false;
        }
    };
    let inner = Folder::apart(folder, source, source_path, name, Role::Way);
    // What is pending in the outer one is now the inner one alone.
    let outer = std::mem::replace(folder, inner);
    walk::finish(copier, outer).await;
    copier.durable.await_end();
    walk::make_way(copier, folder).await
}

async fn copy_operand(
    copier: &Arc<Copier>,
    folder: &Arc<Folder>,
    item: &Item,
    source: Option<Name>,
    target: Option<Name>,
) {
    let place = Place { folder, source: source.as_ref(), target: target.as_ref() };
    let found = if source.is_some() && target.is_some() {
        entry::copy(copier, place, None, true).await
    } else if copier.options.recursive {
        // A folder without a name on one side: it can be nothing else.
        Found::Folder { follow: false }
    } else {
        copier.fail_at(item.source.clone(), item.base.join(&item.relative), FailureKind::OmittingDirectory);
        Found::Done
    };
    let Found::Folder { follow } = found else { return };
    let operand = match (&source, &target, folder.role) {
        // It is named by a path that ends in a slash or a dot: the folder on the way is not the one above it.
        (None, Some(target), Role::Way) => match open_folder(copier, &item.source) {
            Ok(dir) => Folder::apart(folder, dir, item.source.clone(), target.clone(), Role::Operand),
            Err(error) => {
                let kind = FailureKind::Io { verb: Verb::Stat, error };
                copier.fail_at(item.source.clone(), item.base.join(&item.relative), kind);
                return;
            }
        },
        _ => Folder::beneath(folder, source, target, follow, Role::Operand),
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
    /// Folders between the base and the copy (`--parents`): their names, and the paths of their sources.
    way: Vec<(Name, PathBuf)>,
    source_name: Option<Name>,
    target_name: Option<Name>,
}

/// What can't be opened is told with its path.
fn open(copier: &Copier, item: &Item) -> Result<Opened, (PathBuf, FailureKind)> {
    let (source_path, source_name) = split(&item.source);
    let mut way = way(&item.source);
    let target_name = item.relative.file_name().and_then(|name| Name::new(name.as_encoded_bytes()));
    way.pop();
    if item.relative.components().count() < 2 {
        way.clear();
    }
    // With folders on the way the source is opened when they are there: it may be missing.
    let above = if way.is_empty() { source_path } else { Path::new("") };
    let fail = |verb| {
        let path = item.source.clone();
        move |error| (path, FailureKind::Io { verb, error })
    };
    let root = Root {
        source: open_folder(copier, above).map_err(fail(Verb::Stat))?,
        target: open_folder(copier, &item.base).map_err(fail(Verb::CreateFile))?,
        source_path: above.to_path_buf(),
        // `SOURCE/.` is copied to `DIRECTORY/.`.
        target_path: match &target_name {
            None if !item.relative.as_os_str().is_empty() => item.base.join(&item.relative),
            Some(_) | None => item.base.clone(),
        },
    };
    Ok(Opened { root, way, source_name, target_name })
}

fn open_folder(copier: &Copier, path: &Path) -> ferry_io::Result<Dir> {
    copier.io.folder(&copier.paths, path)
}

/// The folders that a path goes through, and last the path itself, each with its name and its own path; what a `..`
/// takes back is left out, as in the copy's name.
fn way(source: &Path) -> Vec<(Name, PathBuf)> {
    let mut path = PathBuf::new();
    let mut way = Vec::new();
    for part in source.components() {
        path.push(part);
        match part {
            Component::Normal(name) => {
                way.extend(Name::new(name.as_encoded_bytes()).map(|name| (name, path.clone())))
            }
            Component::ParentDir => drop(way.pop()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    way
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
