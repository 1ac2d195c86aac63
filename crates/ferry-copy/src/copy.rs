//! A copy from its beginning to its summary: each operand in turn, by as many workers as it needs.

use std::path::{Component, Path};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ferry_io::{Io, Jobs, Name, SetupError};

use crate::copier::{Copier, Place};
use crate::entry::{self, Found};
use crate::folder::{Folder, Role, Root};
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
    let opened = match open(copier, item) {
        Ok(opened) => opened,
        Err(kind) => {
            let (source, target) = (item.source.clone(), item.base.join(&item.relative));
            copier.tally.failed.fetch_add(1, Ordering::Relaxed);
            copier.observer.failed(&Failure { source, target, kind });
            return;
        }
    };
    Progress::add(&copier.progress.entries_found, 1);
    copier.adapt_to(&opened.root.target);
    let mut folder = Folder::root(opened.root);
    let mut can_go_on = true;
    for name in opened.way {
        // What is pending in the outer one is now the inner one alone.
        let inner = Folder::beneath(&folder, Some(name.clone()), Some(name), true, Role::Way);
        walk::finish(copier, folder).await;
        can_go_on = can_go_on && walk::make_way(copier, &inner).await;
        folder = inner;
    }
    if can_go_on {
        copy_operand(copier, &folder, opened.source_name, opened.target_name).await;
    }
    Progress::add(&copier.progress.entries_done, 1);
    walk::finish(copier, folder).await;
}

async fn copy_operand(
    copier: &Arc<Copier>,
    folder: &Arc<Folder>,
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
        copier.fail(&place, FailureKind::OmittingDirectory);
        Found::Done
    };
    let Found::Folder { follow } = found else { return };
    let job = Job::Enter(Folder::beneath(folder, source, target, follow, Role::Operand));
    let work = {
        let copier = Arc::clone(copier);
        async move |jobs: &Jobs<Job>, job| walk::run(&copier, jobs, job).await
    };
    copier.io.share(vec![job], copier.folders_at_once, work).await;
}

/// An operand's folders, opened by the paths that the user gave.
struct Opened {
    root: Root,
    /// Folders between the base and the copy (`--parents`), by their names.
    way: Vec<Name>,
    source_name: Option<Name>,
    target_name: Option<Name>,
}

fn open(copier: &Copier, item: &Item) -> Result<Opened, FailureKind> {
    let open = |path: &Path, verb| copier.io.open_dir(path).map_err(|error| FailureKind::Io { verb, error });
    let mut way: Vec<Name> = item
        .relative
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Name::new(name.as_encoded_bytes()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect();
    let target_name = way.pop();
    let (mut source_path, source_name) = split(&item.source);
    for _ in &way {
        source_path = source_path.parent().unwrap_or(Path::new(""));
    }
    let root = Root {
        source: open(source_path, Verb::Stat)?,
        target: open(&item.base, Verb::CreateFile)?,
        source_path: source_path.to_path_buf(),
        target_path: item.base.clone(),
    };
    Ok(Opened { root, way, source_name, target_name })
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
