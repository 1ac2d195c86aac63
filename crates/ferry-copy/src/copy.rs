//! A copy from its beginning to its summary: each operand in turn, by as many workers as it needs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ferry_io::{Cause, Dir, Errno, Error, FileKind, Io, Name, Operation, Paths, SetupError};

use crate::entry::{self, Listed, Outcome};
use crate::finish;
use crate::folder::{Folder, PathPair, Role, Root};
use crate::identity::identity;
use crate::operands::OperandKey;
use crate::options::{Dereference, Item, Options};
use crate::parents::{self, Step, Way};
use crate::paths::{collapsed, folder_part, folder_to_open, split_last};
use crate::place::Entry;
use crate::report::{FailureKind, Observer, Progress, Summary, Verb};
use crate::run::Run;
use crate::staging;
use crate::sync;
use crate::walk;

/// Copies every item, and returns once no part of the copy runs any more. Folders that `paths` holds already are not
/// looked up again.
///
/// SIGINT, SIGTERM and SIGHUP end it early: new targets in flight are removed, existing ones are marked and reported
/// ([`Observer::unfinished`]), and the summary says so.
///
/// # Errors
/// [`SetupError`] if the runtime can't be set up. A failure of one path is reported to the observer.
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
        run_in(&io, paths, &items, options, progress, observer).await
    })?;
    Ok(Summary { wall: stats.wall, io: stats, ..summary })
}

/// Copies every item as [`run_from`] does, within a run of the runtime that the caller has begun. It installs no signal
/// handlers: [`Io::stop`], from any thread, ends the copy early in the same way. Dropping the future instead leaves
/// incomplete targets behind.
///
/// [`Summary::wall`] and [`Summary::io`] keep their defaults, because [`ferry_io::run`] returns both.
pub async fn run_in(
    io: &Io,
    paths: Paths,
    items: &[Item],
    options: &Options,
    progress: Arc<Progress>,
    observer: Arc<dyn Observer>,
) -> Summary {
    let (io, descriptors) = (io.clone(), io.descriptors());
    let run = Arc::new(Run::new((io, descriptors), paths, options.clone(), Arc::clone(&progress), observer));
    run.operands.expect(items.len(), options.fsync);
    run.walk_grows(items.len() as u64);
    for item in items {
        if run.io.is_stopped() {
            break;
        }
        copy_item(&run, item).await;
    }
    progress.walk_ended.store(true, Ordering::Release);
    sync::filesystems(&run, true).await;
    run.summary()
}

async fn copy_item(run: &Arc<Run>, item: &Item) {
    if run.operands.are_several() {
        run.devices.begin_operand();
    }
    let opened = match open(run, item) {
        Ok(opened) => opened,
        Err(kind) => return run.fail_at(item.source.clone(), target_of(item), kind),
    };
    run.progress.entries_found.add(1);
    let (source, target) = (opened.root.source.clone(), opened.root.target.clone());
    let base = Folder::root(opened.root);
    run.adapt_to(&base, &source, &target).await;
    if run.options.recursive {
        run.devices.watch(&source, Some(&target));
    }
    if opened.target_name.is_some() {
        staging::clear_leftovers(run, &target).await;
    }
    let is_apart = !opened.steps.is_empty();
    let Way { folder, is_whole, is_new } = parents::go(run, base, item, &opened.steps).await;
    let operand = Operand {
        item,
        source: opened.source_name,
        target: opened.target_name,
        is_apart,
        is_in_new_way: is_new,
    };
    let mut is_done = true;
    if let Some(is_folder) = repeats(run, &folder, &operand).await {
        run.observer.repeated(&item.source, is_folder);
    } else if is_whole {
        match copy_entry(run, &folder, operand).await {
            Ok(Some(tree)) => {
                run.durable.await_end();
                walk::copy_tree(run, tree).await;
            }
            Ok(None) => {}
            Err(kind) if kind.is_cancelled() => is_done = false,
            Err(kind) => run.fail_at(item.source.clone(), target_of(item), kind),
        }
    }
    run.progress.entries_done.add(u64::from(is_done));
    finish::end_one(run, folder).await;
}

fn target_of(item: &Item) -> PathBuf {
    item.base.join(&item.relative)
}

/// An operand in the folder that it is in.
struct Operand<'a> {
    item: &'a Item,
    /// Its name; `None` if its path ends in a slash or a dot.
    source: Option<Name>,
    /// Its copy's name; `None` if the copy is the folder itself.
    target: Option<Name>,
    /// Set if folders on the way to it are copied (`--parents`). Its path then leads elsewhere than the source's
    /// folder.
    is_apart: bool,
    /// Set if one of these folders was made.
    is_in_new_way: bool,
}

/// Returns true for a folder and false for a file if an equal operand with the same target was copied; else `None`.
async fn repeats(run: &Run, folder: &Arc<Folder>, operand: &Operand<'_>) -> Option<bool> {
    let item = operand.item;
    if !run.operands.are_several() {
        return None;
    }
    let follow = run.options.dereference != Dereference::Never;
    let above = run.dirs(folder).await.ok()?.source;
    let found = match &operand.source {
        Some(name) => above.stat_entry(name, follow).await,
        None if operand.is_apart => open_folder(run, &item.source).ok()?.stat().await,
        None => above.stat().await,
    };
    let found = found.ok()?;
    let is_folder = found.kind == FileKind::Directory;
    let above = match is_folder {
        true if run.options.recursive => None,
        false if run.options.backup.is_none() => {
            Some(identity(&run.paths.stat(folder_part(&item.source), false).ok()?))
        }
        // Without `-r` a folder is left out; with backups a file's second copy need not cost the first.
        true | false => return None,
    };
    let key = OperandKey {
        source: identity(&found),
        above,
        name: split_last(&item.source).1.to_owned(),
        relative: collapsed(&item.relative),
    };
    run.operands.is_repeated(key).then_some(is_folder)
}

/// Copies an operand, unless it is a folder: then returns the folder to be walked.
async fn copy_entry(
    run: &Arc<Run>,
    folder: &Arc<Folder>,
    operand: Operand<'_>,
) -> Result<Option<Arc<Folder>>, FailureKind> {
    let Operand { item, source, target, is_apart, is_in_new_way } = operand;
    // A path that ends in a slash or a dot leads elsewhere than the folders on the way.
    let given = if is_apart && source.is_none() {
        Some(open_folder(run, &item.source).map_err(|error| Verb::Stat.failed(error))?)
    } else {
        None
    };
    let outcome = if let (Some(source), Some(target)) = (&source, &target) {
        let entry = Entry { folder, source, target };
        match entry::copy(run, entry, Listed { kind: None, is_operand: true }).await {
            Ok(outcome) => outcome,
            Err(kind) if kind.is_cancelled() => return Err(kind),
            Err(kind) => {
                run.fail(entry, kind);
                Outcome::Done
            }
        }
    } else if run.options.recursive {
        // Without a name on one side it is a folder. One that a link leads to has a name (`-T link t`).
        let follow = source.is_some() && run.options.dereference != Dereference::Never;
        Outcome::Folder { follow }
    } else {
        return Err(FailureKind::OmittingDirectory);
    };
    let Outcome::Folder { follow } = outcome else { return Ok(None) };
    Ok(Some(match (given, target) {
        // A folder that was made for the operand's own way is not made again, as with cp.
        (Some(_), None) if is_in_new_way => {
            let error = Error { operation: Operation::MakeDirectory, cause: Cause::Errno(Errno::EXIST) };
            return Err(Verb::CreateDirectory.failed(error));
        }
        (Some(dir), Some(target)) => {
            let paths = PathPair { source: item.source.clone(), target: target_of(item) };
            Folder::apart(folder, dir, target, paths, Role::Operand)
        }
        (_, target) => Folder::beneath(folder, source, target, follow, Role::Operand),
    }))
}

/// An operand's folders, opened by the paths that the user gave.
struct Opened {
    root: Root,
    /// Folders between the base and the copy (`--parents`).
    steps: Vec<Step>,
    source_name: Option<Name>,
    target_name: Option<Name>,
}

fn open(run: &Run, item: &Item) -> Result<Opened, FailureKind> {
    let (source_path, source_name) = folder_to_open(&item.source);
    let steps = parents::steps(item);
    let target_name = match split_last(&item.relative).1.as_bytes() {
        b"" | b"." | b".." => None,
        name => Name::new(name),
    };
    // With folders on the way, the source is opened once they are made: it may be missing.
    let above = if steps.is_empty() { source_path } else { Path::new("") };
    let root = Root {
        source: open_folder(run, above).map_err(|error| Verb::Stat.failed(error))?,
        target: open_target(run, item)?,
        source_path: above.to_path_buf(),
        // `SOURCE/.` is copied to `DIRECTORY/.`.
        target_path: match &target_name {
            None if steps.is_empty() && !item.relative.as_os_str().is_empty() => target_of(item),
            Some(_) | None => item.base.clone(),
        },
    };
    Ok(Opened { root, steps, source_name, target_name })
}

/// Opens the folder that an item's copy is in.
fn open_target(run: &Run, item: &Item) -> Result<Dir, FailureKind> {
    let base = open_folder(run, &item.base).map_err(|error| Verb::CreateFile.failed(error))?;
    // Without `-r` a folder is left out, so its target does not matter.
    if run.options.recursive && item.relative.as_os_str() == OsStr::new(".") {
        // The copy is looked at in there.
        open_folder(run, &item.base.join(".")).map_err(|error| Verb::StatTarget.failed(error))?;
    }
    Ok(base)
}

fn open_folder(run: &Run, path: &Path) -> ferry_io::Result<Dir> {
    run.io.folder(&run.paths, path)
}
