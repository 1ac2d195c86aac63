//! Opening the source of a regular file. A small one is read, and perhaps stored in its new target, by the same
//! request.

use ferry_io::{
    CONFINED, Content, Dir, Error, FileKind, LoadAhead, Loaded, Name, NewMode, OpenHow, Permit, Stat, Xattr,
};

use crate::folder::{Dirs, Folder, Role};
use crate::identity::identity;
use crate::meta;
use crate::mode::TargetMode;
use crate::options::{Dereference, Make, Sparse};
use crate::place::Entry;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;
use crate::target::{Ahead, Seen};

/// An open source. Its bytes may have been read already, or even be stored in the target.
pub(super) struct Source<'a> {
    pub(super) stat: Stat,
    pub(super) xattrs: Vec<Xattr>,
    pub(super) content: Content,
    /// Permit to create the target.
    pub(super) making: Option<Permit<'a>>,
}

/// Choices for opening a source.
#[derive(Clone, Copy)]
pub(super) struct Opening {
    /// Set if its name is a link that is followed.
    pub(super) follow: bool,
    /// Set if the target may be created by the request that reads the source.
    pub(super) stores: bool,
}

/// Returns true if the target can be created before the source's attributes are known.
pub(super) fn may_store(run: &Run, entry: Entry<'_>, seen: &Seen) -> bool {
    let is_free = matches!(seen.ahead, Ahead::Free) && seen.stat.is_none();
    is_free && is_plain(run) && entry.source == entry.target
}

/// Returns true if the options let a new file be created as soon as its source is read.
fn is_plain(run: &Run) -> bool {
    let options = &run.options;
    let is_alone = !options.preserve.links || options.dereference == Dereference::Never;
    is_alone && !options.attributes_only && !options.atomic && !options.debug && options.bandwidth.is_none()
}

/// Returns true if files are opened without being read at once. Zeros become holes only where the bytes are examined;
/// `--debug` tries the calls of cp.
fn is_shaped(run: &Run, folder: &Folder) -> bool {
    let options = &run.options;
    options.sparse == Sparse::Always
        || options.attributes_only
        || options.debug
        || run.clones_small_files(folder)
}

/// Returns the memory to load small files with a folder's listing, if all of them will be copied: the folder's target is
/// to be made in one that this run has made.
pub(crate) fn ahead(run: &Run, folder: &Folder) -> Option<LoadAhead> {
    let options = &run.options;
    let above = folder.parent().filter(|_| folder.role == Role::Inner)?;
    let is_copied = above.facts().is_some_and(|facts| facts.is_new)
        && options.make == Make::Copy
        && !options.one_file_system
        && !run.asks();
    if !is_copied || !is_plain(run) || options.copy_contents || is_shaped(run, above) {
        return None;
    }
    let keeps = options.preserve;
    Some(LoadAhead {
        block: Some(run.io.ample_block()?),
        xattrs: keeps.mode || keeps.xattr,
        alone: keeps.links,
    })
}

/// Returns the mode of a target that is created before its source's mode is known.
fn first_mode(run: &Run, entry: Entry<'_>) -> NewMode {
    let of = |mode| TargetMode::entry(entry, FileKind::Regular, mode).first_mode(run.options.preserve);
    NewMode { fixed: of(0), of_source: of(0o777) & !of(0) }
}

/// Opens a source, and reads it if it is small.
pub(super) async fn open<'a>(
    run: &'a Run,
    entry: Entry<'_>,
    opening: Opening,
) -> Result<Source<'a>, FailureKind> {
    let Dirs { source: dir, target } = run.dirs(entry.folder).await.during(Verb::Open)?;
    let options = &run.options;
    let xattrs = options.preserve.mode || options.preserve.xattr;
    let source = if opening.follow || options.copy_contents || is_shaped(run, entry.folder) {
        Box::pin(open_step_by_step(run, entry, &dir, opening.follow, xattrs)).await?
    } else if let Some(loaded) = entry.take_loaded() {
        return store_loaded(run, entry, *loaded, &target, opening.stores).await;
    } else {
        let block = run.io.block().await.during(Verb::Open)?;
        // A file with several names is left open: a later name of a copied file need not be read.
        let alone = options.preserve.links;
        // The permit comes after the block: a fiber that waits for the makers may hold a block.
        let making = if opening.stores { run.turns.make().await.during(Verb::Open)? } else { None };
        let loaded = if making.is_some() {
            dir.transfer(entry.source, block, (xattrs, alone), &target, first_mode(run, entry)).await
        } else if alone {
            dir.load_alone(entry.source, block, xattrs).await
        } else {
            dir.load(entry.source, block, xattrs).await
        };
        match loaded {
            Ok(loaded) => {
                Source { stat: loaded.stat, xattrs: loaded.xattrs, content: loaded.content, making }
            }
            Err(error) if error.is_cancelled() => return Err(Verb::Open.failed(error)),
            // Retry step by step to find which call failed; some failures are not fatal.
            Err(_) => Source {
                making,
                ..Box::pin(open_step_by_step(run, entry, &dir, opening.follow, xattrs)).await?
            },
        }
    };
    if source.stat.kind != FileKind::Regular && !options.copy_contents && CONFINED {
        return Err(FailureKind::Replaced);
    }
    Ok(source)
}

/// Stores a file that was loaded with its folder's listing, unless its target is made later.
async fn store_loaded<'a>(
    run: &'a Run,
    entry: Entry<'_>,
    mut loaded: Loaded,
    target: &Dir,
    stores: bool,
) -> Result<Source<'a>, FailureKind> {
    let making = if stores { run.turns.make().await.during(Verb::Open)? } else { None };
    if making.is_some() {
        let mode = first_mode(run, entry);
        target.store(entry.target, &mut loaded, mode).await.during(Verb::Open)?;
    }
    let Loaded { stat, xattrs, content } = loaded;
    Ok(Source { stat, xattrs, content, making })
}

/// Opens without reading: where extents may be shared, the name leads through a link, or one request for all failed.
async fn open_step_by_step(
    run: &Run,
    entry: Entry<'_>,
    dir: &Dir,
    follow: bool,
    xattrs: bool,
) -> Result<Source<'static>, FailureKind> {
    let copies_contents = run.options.copy_contents;
    let mut how = OpenHow::read();
    if follow {
        how = how.following();
    }
    if copies_contents {
        // Opening a FIFO waits for its writer.
        how = how.waiting();
    }
    // Reading a FIFO changes its times, perhaps before they are asked for below.
    let before = match copies_contents {
        true => dir.stat_entry(entry.source, follow).await.ok(),
        false => None,
    };
    let file = match dir.open(entry.source, how).await {
        Ok(file) => file,
        Err(error) => return Err(Box::pin(unopened(dir, entry.source, follow, error)).await),
    };
    let opened = file.stat().await.during(Verb::Stat)?;
    let is_fifo = opened.kind == FileKind::Fifo;
    let before = before.filter(|before| is_fifo && identity(before) == identity(&opened));
    let stat = before.unwrap_or(opened);
    if stat.kind != FileKind::Regular && !copies_contents {
        return Err(FailureKind::Replaced);
    }
    let xattrs = if xattrs { meta::found(run, entry.into(), file.xattrs().await)? } else { Vec::new() };
    Ok(Source { stat, xattrs, content: Content::Open(file), making: None })
}

/// Returns the failure of a file that could not be opened. Perhaps not even its attributes can be had.
async fn unopened(dir: &Dir, name: &Name, follow: bool, error: Error) -> FailureKind {
    if error.is_cancelled() {
        return Verb::Open.failed(error);
    }
    match dir.stat_entry(name, follow).await {
        Err(error) => Verb::Stat.failed(error),
        Ok(_) => Verb::Open.failed(error),
    }
}
