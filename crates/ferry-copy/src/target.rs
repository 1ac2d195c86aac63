//! What is at the target already, and what is to become of it: cp's rules for existing files.
//!
//! [`look`] decides before anything of the source is opened and changes nothing; [`open`] and the makers of links clear
//! the way only when the source is at hand. So whatever can't be read never costs the target that it had. Where
//! this run has made the folder nothing can be there, and nothing is asked.

use ferry_io::{Cause, Dir, Errno, Error, File, FileKind, Name, OpenHow, Operation, Permit, Stat, protect};

use crate::backup::{self, Control};
use crate::copier::{Copier, Place, identity};
use crate::entry::{names, note_skipped};
use crate::folder::Role;
use crate::meta;
use crate::mode::New;
use crate::options::{Dereference, Existing, Make};
use crate::question;
use crate::report::{FailureKind, Verb};
use crate::staging::{self, Staged};
use crate::through;

/// What stands where the copy goes, and what is to become of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ahead {
    /// Nothing is there.
    Free,
    /// A file to be overwritten in place.
    Overwrite(Stat),
    /// Something to be removed first.
    Replace,
    /// Something to be kept by another name.
    BackUp,
    /// Something that a link may take the place of only with `-f`.
    Occupied,
    /// Something that is to stay.
    Stays,
    /// Something that is not older than the source, and stays as its copy.
    IsNewer,
    /// What is to be made is there already.
    Made,
}

/// An open target.
pub(crate) struct Target<'a> {
    pub(crate) file: File,
    /// Nobody else writes to it meanwhile, whatever names it has: given back once it is closed.
    _turn: Option<Permit<'a>>,
    /// Where it is, if it was there: a link may have led to another filesystem than its folder's.
    pub(crate) device: Option<u64>,
    /// Whether this run made it: then it is removed if it can't be completed.
    pub(crate) is_new: bool,
    /// What it was before, if it was there.
    pub(crate) kind: FileKind,
    /// What was there is kept by this name.
    pub(crate) backup: Option<Name>,
    /// How it gets its name, if it has none before it is whole.
    pub(crate) staged: Option<Staged>,
}

impl<'a> Target<'a> {
    /// A new file that was made, and perhaps filled, as its source was read.
    pub(crate) fn stored(file: File, making: Option<Permit<'a>>) -> Self {
        Self {
            file,
            _turn: making,
            device: None,
            is_new: true,
            kind: FileKind::Regular,
            backup: None,
            staged: None,
        }
    }
}

fn io(verb: Verb) -> impl Fn(ferry_io::Error) -> FailureKind {
    move |error| FailureKind::Io { verb, error }
}

/// Looks at what is there; refuses what must not be overwritten.
pub(crate) async fn look(copier: &Copier, place: Place<'_>, source: &Stat) -> Result<Ahead, FailureKind> {
    if place.folder.facts().is_some_and(|facts| facts.is_new) {
        return Ok(Ahead::Free);
    }
    let options = &copier.options;
    // Links as links, unless bytes are to go through them.
    let through = writes_through(copier, source) || leads_to_stream(copier, place, source).await?;
    let Some(existing) = find(copier, place, through).await? else { return Ok(Ahead::Free) };
    match options.existing {
        Existing::Keep => return Ok(Ahead::Stays),
        Existing::Refuse => return Err(FailureKind::NotReplaced),
        Existing::Replace | Existing::Ask => {}
    }
    match sameness(copier, place, source, &existing, through).await? {
        Sameness::Other => {}
        Sameness::Wanted => return Ok(Ahead::Made),
        Sameness::Refused => return Err(FailureKind::SameFile),
    }
    if options.update && !is_older(copier, place, &existing, source).await? {
        return Ok(Ahead::IsNewer);
    }
    if copier.asks() && !question::agrees(copier, place, &existing).await? {
        return Ok(Ahead::Stays);
    }
    if existing.kind == FileKind::Directory {
        return Err(FailureKind::FileOverDirectory);
    }
    // Numbered backups keep this run's own, too.
    let keeps_all = options.backup.as_ref().is_some_and(|backup| backup.control == Control::Numbered);
    if let Some(made) = copier.was_made(&place).filter(|_| !keeps_all) {
        return Err(if made == FileKind::Symlink && through {
            FailureKind::ThroughJustCreated
        } else {
            FailureKind::JustCreated
        });
    }
    if let Some(backup) = &options.backup {
        return match Box::pin(backup::destroys_source(copier, place, backup)).await? {
            true => Err(FailureKind::BackupDestroysSource),
            false => Ok(Ahead::BackUp),
        };
    }
    if options.make != Make::Copy && may_take_place(copier) {
        return Ok(Ahead::Occupied);
    }
    // Without bytes to copy, what is there keeps its own; with -f a link replaces it all the same, as with cp.
    let keeps = options.attributes_only;
    let parts = !keeps && options.preserve.links && existing.links > 1;
    let may_give_way = !keeps || options.force && source.kind == FileKind::Symlink;
    let is_operand = matches!(place.folder.role, Role::Root | Role::Way);
    let keeps_links = match options.dereference {
        Dereference::Never => true,
        // Within what is named on the command line they are not followed.
        Dereference::CommandLine => !is_operand,
        Dereference::Always => false,
    };
    let gives_way = keeps_links && may_give_way && source.kind != FileKind::Regular;
    Ok(match existing {
        // A stream.
        existing if through && options.atomic => Ahead::Overwrite(existing),
        _ if replaces(copier) || parts || gives_way => Ahead::Replace,
        existing if through => Ahead::Overwrite(existing),
        _ => Ahead::Occupied,
    })
}

/// Whether the target is older than its source (`-u`). Where a filesystem keeps whole seconds only, a copy that keeps
/// times has its source's without the fraction, and is not older.
async fn is_older(
    copier: &Copier,
    place: Place<'_>,
    existing: &Stat,
    source: &Stat,
) -> Result<bool, FailureKind> {
    let (was, is) = (existing.times.modified, source.times.modified);
    if was >= is {
        return Ok(false);
    }
    let is_cut_off = was.seconds == is.seconds && has_whole_seconds(existing);
    if !is_cut_off || !copier.options.preserve.timestamps {
        return Ok(true);
    }
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(io(Verb::StatTarget))?;
    // One file may have whole seconds by chance, or because it was given them.
    let folder = dir.stat().await.map_err(io(Verb::StatTarget))?;
    Ok(!has_whole_seconds(&folder))
}

fn has_whole_seconds(stat: &Stat) -> bool {
    stat.times.modified.nanoseconds == 0 && stat.times.accessed.nanoseconds == 0
}

/// What has the target's name, or what its link leads to if bytes go through it.
async fn find(copier: &Copier, place: Place<'_>, through: bool) -> Result<Option<Stat>, FailureKind> {
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(io(Verb::StatTarget))?;
    let name = names(&place).1;
    let is_free = |error: &ferry_io::Error| error.is(Errno::NOENT);
    let lost = match dir.stat_entry(name, through).await {
        Ok(found) => return Ok(Some(found)),
        Err(error) if through && (is_free(&error) || error.is(Errno::LOOP)) => error,
        Err(error) if is_free(&error) => return Ok(None),
        Err(error) => return Err(io(Verb::StatTarget)(error)),
    };
    match dir.stat_entry(name, false).await {
        Err(error) if is_free(&error) => Ok(None),
        Err(error) => Err(io(Verb::StatTarget)(error)),
        // A link into a circle may be replaced; one to nothing would be a file made in an unexpected place.
        Ok(link) if lost.is(Errno::LOOP) && copier.options.force => Ok(Some(link)),
        Ok(_) if lost.is(Errno::LOOP) => Err(io(Verb::StatTarget)(lost)),
        Ok(_) if copier.was_made(&place).is_some() => Err(FailureKind::JustCreated),
        // What is made there is made by following it.
        Ok(_) if copier.options.through_dangling => Ok(None),
        Ok(_) => Err(FailureKind::DanglingTarget),
    }
}

/// Whether the source's bytes go into what the target's name leads to.
fn writes_through(copier: &Copier, source: &Stat) -> bool {
    moves_bytes(copier, source) && !replaces(copier)
}

/// Whether a file's bytes are copied.
fn moves_bytes(copier: &Copier, source: &Stat) -> bool {
    let has_bytes =
        source.kind == FileKind::Regular || copier.options.copy_contents && source.kind != FileKind::Symlink;
    has_bytes && copier.options.make == Make::Copy
}

/// Whether what is there gives way to the copy rather than being overwritten.
fn replaces(copier: &Copier) -> bool {
    let options = &copier.options;
    let by_copy = options.atomic && options.make == Make::Copy && !options.attributes_only;
    options.remove_destination || options.backup.is_some() || by_copy
}

/// Whether bytes that would replace a file go into something that is none, and is never whole: a pipe or a device.
async fn leads_to_stream(copier: &Copier, place: Place<'_>, source: &Stat) -> Result<bool, FailureKind> {
    let options = &copier.options;
    let is_removed = options.remove_destination || options.backup.is_some();
    if !options.atomic || is_removed || !moves_bytes(copier, source) {
        return Ok(false);
    }
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(io(Verb::StatTarget))?;
    let led = dir.stat_entry(names(&place).1, true).await;
    Ok(led.is_ok_and(|led| !matches!(led.kind, FileKind::Regular | FileKind::Directory)))
}

/// How source and target are related.
enum Sameness {
    /// Two files.
    Other,
    /// One, which is what is asked for.
    Wanted,
    /// One, which would be lost.
    Refused,
}

/// Finds out whether the target is the source by another name: then replacing it may lose both.
async fn sameness(
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

/// Clears the way for a link or special file; the backup's name, if there is one.
pub(crate) async fn clear(
    copier: &Copier,
    place: Place<'_>,
    ahead: Ahead,
) -> Result<Option<Name>, FailureKind> {
    match ahead {
        // The new one takes its place in one step.
        Ahead::Replace if copier.options.atomic => Ok(None),
        Ahead::Replace => remove_first(copier, place).await.map(|()| None),
        Ahead::BackUp => backup::make(copier, place).await,
        Ahead::Free | Ahead::Overwrite(_) | Ahead::Occupied | Ahead::Stays | Ahead::IsNewer | Ahead::Made => {
            Ok(None)
        }
    }
}

/// Removes what is to be replaced, and tells of it.
pub(crate) async fn remove_first(copier: &Copier, place: Place<'_>) -> Result<(), FailureKind> {
    remove(copier, place).await?;
    if copier.options.verbose {
        copier.observer.removed(&place.target_path());
    }
    Ok(())
}

/// Makes a link. With `-f`, with `--atomic`, or if the user agreed, it takes the place of what is there in one step, by
/// way of a hidden name: the target is never missing, and what is there may be the very link that leads to the source.
pub(crate) async fn put(
    copier: &Copier,
    place: Place<'_>,
    ahead: Ahead,
    dir: &Dir,
    link: impl AsyncFn(&Name) -> ferry_io::Result<()>,
) -> ferry_io::Result<()> {
    let in_one_step = copier.options.atomic && matches!(ahead, Ahead::Replace);
    let may_replace = may_take_place(copier) || in_one_step;
    match link(names(&place).1).await {
        Err(error) if may_replace && error.is(Errno::EXIST) => {
            staging::replace(copier, place, dir, link).await
        }
        linked => linked,
    }
}

/// Whether a link may take the place of what is there: a hard link also where the user has agreed.
fn may_take_place(copier: &Copier) -> bool {
    copier.options.force || copier.options.make == Make::HardLink && copier.asks()
}

/// Removes what is in the way.
pub(crate) async fn remove(copier: &Copier, place: Place<'_>) -> Result<(), FailureKind> {
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(io(Verb::Remove))?;
    match dir.unlink(names(&place).1).await {
        Err(error) if error.is(Errno::NOENT) => Ok(()),
        answer => answer.map_err(io(Verb::Remove)),
    }
}

/// Whether two names are one file.
pub(crate) async fn is_same(a_dir: &Dir, a: &Name, b_dir: &Dir, b: &Name) -> bool {
    match (a_dir.stat_entry(a, false).await, b_dir.stat_entry(b, false).await) {
        (Ok(a), Ok(b)) => a.is_same_file(&b),
        _ => false,
    }
}

/// Opens the target of a regular file's copy; `None` if what is there stays.
pub(crate) async fn open<'a>(
    copier: &'a Copier,
    place: Place<'_>,
    source: &Stat,
    ahead: Ahead,
    making: Option<Permit<'a>>,
) -> Result<Option<Target<'a>>, FailureKind> {
    let failed = io(Verb::CreateFile);
    let (_, dir) = place.folder.dirs(&copier.open_folders).await.map_err(&failed)?;
    match ahead {
        Ahead::Stays | Ahead::IsNewer => {
            note_skipped(copier, &place);
            Ok(None)
        }
        Ahead::Made => Ok(None),
        Ahead::Overwrite(existing) => match Box::pin(overwrite(copier, place, &dir, &existing)).await {
            Ok(target) => {
                if target.kind == FileKind::Regular {
                    Box::pin(meta::withhold(copier, &target.file, &existing, source)).await;
                }
                Ok(Some(target))
            }
            Err(error) if copier.options.force && !error.is_cancelled() => {
                Box::pin(remove_first(copier, place)).await?;
                create(copier, place, &dir, source, making).await.map_err(failed).map(Some)
            }
            Err(error) => Err(failed(error)),
        },
        Ahead::Replace | Ahead::Occupied | Ahead::BackUp | Ahead::Free if copier.options.atomic => {
            Box::pin(stage(copier, place, &dir, source, ahead)).await.map_err(failed).map(Some)
        }
        Ahead::Replace | Ahead::Occupied => {
            Box::pin(remove_first(copier, place)).await?;
            create(copier, place, &dir, source, making).await.map_err(failed).map(Some)
        }
        Ahead::BackUp => {
            let backup = Box::pin(backup::make(copier, place)).await?;
            match create(copier, place, &dir, source, making).await {
                Ok(target) => Ok(Some(Target { backup, ..target })),
                Err(error) => {
                    Box::pin(backup::take_back(copier, place, backup.as_ref())).await;
                    Err(failed(error))
                }
            }
        }
        Ahead::Free => create(copier, place, &dir, source, making).await.map_err(failed).map(Some),
    }
}

/// Opens what is there, to be overwritten when it is its turn.
async fn overwrite<'a>(
    copier: &'a Copier,
    place: Place<'_>,
    dir: &Dir,
    existing: &Stat,
) -> ferry_io::Result<Target<'a>> {
    let (name, kind) = (names(&place).1, existing.kind);
    if kind != FileKind::Regular {
        // It may keep its writer waiting for a reader, and has nothing to be mixed with.
        let (file, _) = through::open(copier, dir, name, OpenHow::write().waiting()).await?;
        let device = Some(existing.device);
        return Ok(Target { file, _turn: None, device, is_new: false, kind, backup: None, staged: None });
    }
    let turn = copier.turns.of(existing).await?;
    let keeps = copier.options.attributes_only;
    let how = if keeps { OpenHow::write() } else { OpenHow::write().truncated() };
    let (file, turn, device) = match dir.open(name, how).await {
        Ok(file) if file.stat().await?.is_same_file(existing) => (file, turn, existing.device),
        // Another has its name since it was looked at.
        Ok(_) => return Err(stale()),
        Err(error) if error.is(Errno::LOOP) => {
            drop(turn);
            through_link(copier, dir, name).await?
        }
        Err(error) => return Err(error),
    };
    if copier.options.fsync && !copier.durable.has_met(device) {
        // By a descriptor of its own: this one is to be closed as soon as it is written, and may fail to be.
        match through::open(copier, dir, name, OpenHow::write()).await {
            Ok((other, _)) => copier.durable.meet(device, || other, || place.target_path()),
            Err(_) => copier.durable.meet_unknown(),
        }
    }
    Ok(Target {
        file,
        _turn: Some(turn),
        device: Some(device),
        is_new: false,
        kind,
        backup: None,
        staged: None,
    })
}

/// Opens what a link leads to; it may be what this run is making just now.
async fn through_link<'a>(
    copier: &'a Copier,
    dir: &Dir,
    name: &Name,
) -> ferry_io::Result<(File, Permit<'a>, u64)> {
    /// Files that it may lead to one after another before giving up.
    const ATTEMPTS: u32 = 100;
    copier.turns.meet_link().await?;
    for _ in 0..ATTEMPTS {
        let expected = dir.stat_entry(name, true).await?;
        let turn = copier.turns.of(&expected).await?;
        let (file, found) = through::open(copier, dir, name, OpenHow::write()).await?;
        if found.is_same_file(&expected) {
            if !copier.options.attributes_only {
                file.truncate(0).await?;
            }
            return Ok((file, turn, found.device));
        }
    }
    Err(stale())
}

fn stale() -> Error {
    Error { operation: Operation::Open, cause: Cause::Errno(Errno::STALE) }
}

/// A new file.
async fn create<'a>(
    copier: &'a Copier,
    place: Place<'_>,
    dir: &Dir,
    source: &Stat,
    making: Option<Permit<'a>>,
) -> ferry_io::Result<Target<'a>> {
    let new = New::entry(&place, FileKind::Regular, source.mode);
    let mode = new.first_mode(copier.options.preserve);
    let turn = match making {
        Some(making) => Some(making),
        None => copier.turns.make().await?,
    };
    if ferry_io::is_cancelled() {
        return Err(Error { operation: Operation::Open, cause: Cause::Cancelled });
    }
    // Given up while it is on its way, it might be made nevertheless, and nobody would know to remove it.
    let name = names(&place).1;
    let (file, is_new) = match protect(dir.open(name, OpenHow::create(mode))).await {
        Err(error) if copier.options.through_dangling && error.is(Errno::EXIST) => {
            let file = protect(dir.open(name, OpenHow::create_through(mode))).await?;
            file.truncate(0).await?;
            // Were it removed, the link would be.
            (file, false)
        }
        opened => (opened?, true),
    };
    let turn = match turn {
        Some(turn) => turn,
        None => match Box::pin(first_turn(copier, &file)).await {
            Ok(turn) => turn,
            Err(error) => {
                if is_new {
                    Box::pin(protect(remove(copier, place))).await.ok();
                }
                return Err(error);
            }
        },
    };
    Ok(Target { is_new, ..Target::stored(file, Some(turn)) })
}

/// A new file that nobody sees before it is whole, so that nobody else can write to it.
async fn stage<'a>(
    copier: &Copier,
    place: Place<'_>,
    dir: &Dir,
    source: &Stat,
    ahead: Ahead,
) -> ferry_io::Result<Target<'a>> {
    let mode = New::entry(&place, FileKind::Regular, source.mode).first_mode(copier.options.preserve);
    let (file, mut staged) = staging::create(copier, place, dir.clone(), mode).await?;
    staged.replaces = matches!(ahead, Ahead::Replace | Ahead::Occupied);
    staged.backs_up = matches!(ahead, Ahead::BackUp);
    Ok(Target { staged: Some(staged), ..Target::stored(file, None) })
}

/// The turn of a file that this run has made; somebody may have written to it already through a link.
async fn first_turn<'a>(copier: &'a Copier, file: &File) -> ferry_io::Result<Permit<'a>> {
    let turn = copier.turns.of(&file.stat().await?).await?;
    file.truncate(0).await?;
    Ok(turn)
}
