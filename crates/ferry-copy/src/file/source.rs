//! Opening the source of a regular file. A small one is read, and perhaps stored in its new target, by the same
//! request.

use ferry_io::{
    AtOnce, CONFINED, Content, Dir, Error, FileKind, Loaded, Name, NewMode, OpenHow, Permit, Rest, Stat,
    Xattr,
};

use crate::folder::Dirs;
use crate::identity::identity;
use crate::meta;
use crate::mode::TargetMode;
use crate::options::{Dereference, Options, Sparse};
use crate::place::Entry;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;
use crate::target::{Ahead, Seen};

/// An open source. Its bytes may have been read already, or even be stored in the target.
pub(super) struct Source<'a> {
    pub(super) stat: Stat,
    pub(super) xattrs: Vec<Xattr>,
    pub(super) content: Content,
    /// Set if a new target with the source's mode needs no other owner and no other mode.
    pub(super) is_like_source: bool,
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
    is_free && entry.source == entry.target && let_store(&run.options)
}

/// Returns true if no option keeps a target from being created before the source's attributes are known.
pub(super) fn let_store(options: &Options) -> bool {
    let is_alone = !options.preserve.links || options.dereference == Dereference::Never;
    is_alone
        && !(options.attributes_only
            || options.atomic
            || options.verify
            || options.debug
            || options.digest.is_some())
        && options.bandwidth.is_none()
}

/// Returns the mode of a target that is created before its source's mode is known.
pub(super) fn first_mode(run: &Run, entry: Entry<'_>) -> NewMode {
    let of = |mode| TargetMode::entry(entry, FileKind::Regular, mode).first_mode(run.options.preserve);
    NewMode { fixed: of(0), of_source: of(0o777) & !of(0), at_once: at_once(run, entry) }
}

/// Returns the condition for giving a new file its kept mode at its creation, in a folder without a default ACL on a
/// filesystem that gives new files the mode and owner that were asked for.
fn at_once(run: &Run, entry: Entry<'_>) -> Option<AtOnce> {
    let preserve = run.options.preserve;
    let facts = entry.folder.facts().filter(|facts| preserve.mode && !facts.gives_acl)?;
    let gives_owner = facts.gives_owner?;
    let is_local = entry.folder.abilities().is_some_and(|known| known.is_local());
    let owner = preserve.ownership.then_some(gives_owner);
    is_local.then_some(AtOnce { owner, umask: run.user.umask })
}

/// Returns true if a new target of a small file needs no other owner and no other mode than the first.
fn is_like_source(first_mode: NewMode, stat: &Stat, xattrs: &[Xattr], content: &Content) -> bool {
    !matches!(content, Content::Open(_)) && first_mode.is_whole(stat, xattrs)
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
    // Zeros become holes only where the bytes are examined; `--debug` tries the calls of cp.
    let is_shaped = options.sparse == Sparse::Always
        || options.attributes_only
        || options.debug
        || run.clones_small_files(entry.folder);
    let source = if opening.follow || options.copy_contents || is_shaped {
        Box::pin(open_step_by_step(run, entry, &dir, opening.follow, xattrs)).await?
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
        of_loaded(run, entry, loaded, making).await?
    };
    checked(run, source)
}

/// Goes on with a source that a run of plain files has left, and with the permit to create its target.
pub(super) async fn go_on<'a>(
    run: &'a Run,
    entry: Entry<'_>,
    rest: Rest,
    making: Permit<'a>,
) -> Result<Source<'a>, FailureKind> {
    let loaded = rest.load().await;
    checked(run, of_loaded(run, entry, loaded, Some(making)).await?)
}

/// Returns a source that was loaded by its own name.
async fn of_loaded<'a>(
    run: &'a Run,
    entry: Entry<'_>,
    loaded: Result<Loaded, Error>,
    making: Option<Permit<'a>>,
) -> Result<Source<'a>, FailureKind> {
    match loaded {
        Ok(Loaded { stat, xattrs, content }) => {
            let is_like_source = is_like_source(first_mode(run, entry), &stat, &xattrs, &content);
            Ok(Source { stat, xattrs, content, is_like_source, making })
        }
        Err(error) if error.is_cancelled() => Err(Verb::Open.failed(error)),
        // Retry step by step to find which call failed; some failures are not fatal.
        Err(_) => {
            let dir = run.dirs(entry.folder).await.during(Verb::Open)?.source;
            let xattrs = run.options.preserve.mode || run.options.preserve.xattr;
            let opened = Box::pin(open_step_by_step(run, entry, &dir, false, xattrs)).await?;
            Ok(Source { making, ..opened })
        }
    }
}

/// Refuses a source that is no file any more.
fn checked<'a>(run: &Run, source: Source<'a>) -> Result<Source<'a>, FailureKind> {
    if source.stat.kind != FileKind::Regular && !run.options.copy_contents && CONFINED {
        return Err(FailureKind::Replaced);
    }
    Ok(source)
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
    Ok(Source { stat, xattrs, content: Content::Open(file), is_like_source: false, making: None })
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
