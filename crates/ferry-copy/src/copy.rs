//! A copy from its beginning to its summary: each operand in turn, by as many workers as it needs.

use std::path::{Component, Path};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ferry_io::{Dir, Io, Name, SetupError};

use crate::copier::{Copier, Place};
use crate::entry::{self, Found};
use crate::folder::{Folder, Root};
use crate::options::{Item, Options};
use crate::report::{Failure, FailureKind, Observer, Progress, Summary, Verb};
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
    let begun = Instant::now();
    let (summary, stats) = ferry_io::run(io_options, async |io: Io| {
        // Without handlers a signal kills the process, as it does cp.
        io.stop_on_signals().ok();
        let copier = Arc::new(Copier::new(io, *options, Arc::clone(&progress), observer));
        copier.items_are_remembered.store(items.len() > 1, Ordering::Relaxed);
        for item in &items {
            if copier.io.is_stopped() {
                break;
            }
            copy_item(&copier, item).await;
        }
        progress.walk_ended.store(true, Ordering::Relaxed);
        make_durable(&copier, &items).await;
        copier.summary()
    })?;
    Ok(Summary { io: stats, wall: begun.elapsed(), ..summary })
}

/// Copies one operand.
async fn copy_item(copier: &Arc<Copier>, item: &Item) {
    let (root, source_name, target_names) = match open_root(copier, item) {
        Ok(opened) => opened,
        Err(kind) => {
            let (source, target) = (item.source.clone(), item.base.join(&item.relative));
            copier.tally.failed.fetch_add(1, Ordering::Relaxed);
            copier.observer.failed(&Failure { source, target, kind });
            return;
        }
    };
    Progress::add(&copier.progress.entries_found, 1);
    let folder = Folder::root(root);
    let target_name = target_names.into_iter().next_back();
    let place = Place { folder: &folder, source: source_name.as_ref(), target: target_name.as_ref() };
    let found = match (&source_name, &target_name) {
        (Some(_), Some(_)) => entry::copy(copier, place, None, true).await,
        // A folder without a name on one side: it can be nothing else.
        _ if copier.options.recursive => Found::Folder { follow: false },
        _ => {
            copier.fail(&place, FailureKind::OmittingDirectory);
            Found::Done
        }
    };
    if let Found::Folder { follow } = found {
        let top = Folder::beneath(&folder, source_name, target_name, follow);
        let at_once = copier.folders_at_once;
        let workers = Arc::clone(copier);
        copier
            .io
            .share(vec![Job::Enter(top)], at_once, async move |jobs, job| {
                walk::run(&workers, jobs, job).await
            })
            .await;
    }
    Progress::add(&copier.progress.entries_done, 1);
    walk::finish(copier, folder).await;
}

/// Opens the folders that hold an operand and its copy, by the paths that the user gave.
fn open_root(copier: &Copier, item: &Item) -> Result<(Root, Option<Name>, Vec<Name>), FailureKind> {
    let open = |path: &Path, verb| copier.io.open_dir(path).map_err(|error| FailureKind::Io { verb, error });
    let (source_path, source_name) = split(&item.source);
    let source: Dir = open(source_path, Verb::Stat)?;
    let target: Dir = open(&item.base, Verb::CreateFile)?;
    let names = item.relative.components().filter_map(|part| match part {
        Component::Normal(name) => Name::new(name.as_encoded_bytes()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    });
    let root = Root {
        source,
        target,
        source_path: if source_name.is_some() {
            parent_as_written(&item.source)
        } else {
            item.source.clone()
        },
        target_path: item.base.clone(),
    };
    Ok((root, source_name, names.collect()))
}

/// A path as the folder to open and the name in it; no name where the path itself is that folder.
fn split(path: &Path) -> (&Path, Option<Name>) {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.ends_with(b"/") || bytes.ends_with(b"/.") {
        return (path, None);
    }
    match (path.parent(), path.file_name().and_then(|name| Name::new(name.as_encoded_bytes()))) {
        (Some(parent), Some(name)) => (parent, Some(name)),
        _ => (path, None),
    }
}

/// The part before the name, so that joined with the name it reads as the user wrote it.
fn parent_as_written(path: &Path) -> std::path::PathBuf {
    path.parent().unwrap_or(Path::new("")).to_path_buf()
}

/// `--fsync`: what was made is durable on return.
async fn make_durable(copier: &Copier, items: &[Item]) {
    if !copier.options.fsync || copier.io.is_stopped() {
        return;
    }
    for item in items {
        let synced = match copier.io.open_dir(&item.base) {
            Ok(base) => base.sync_filesystem().await,
            Err(error) => Err(error),
        };
        if let Err(error) = synced {
            copier.tally.failed.fetch_add(1, Ordering::Relaxed);
            copier.observer.failed(&Failure {
                source: item.source.clone(),
                target: item.base.join(&item.relative),
                kind: FailureKind::Io { verb: Verb::Sync, error },
            });
        }
    }
}
