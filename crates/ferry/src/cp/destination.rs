//! Where copies go: GNU cp's rules for SOURCE... DEST, `-t`, `-T`, `--parents` and trailing slashes.
//!
//! Called once, before anything is copied. What can be seen to be impossible from the names alone (a target
//! whose folder is not there) is refused here, in GNU's words; whatever depends on what the source is when it
//! is opened is left to the copier. The folders that were reached for that are handed on with the plan: whatever has
//! their paths later, it is they that are copied into.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ferry_copy::{Dereference, Failure, FailureKind, Item, Make, Options, Verb};
use ferry_io::{Cause, Errno, FileKind, Operation, Paths, Stat};

use crate::arguments::Usage;
use crate::quote::quote;

#[cfg(test)]
mod tests;

/// The names on the command line, and the options that say how they are taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Operands {
    /// The operands, in order.
    pub(crate) paths: Vec<PathBuf>,
    /// `-t`.
    pub(crate) target_directory: Option<PathBuf>,
    /// `-T`.
    pub(crate) no_target_directory: bool,
    /// `--parents`.
    pub(crate) parents: bool,
    /// `--strip-trailing-slashes`.
    pub(crate) strip_trailing_slashes: bool,
}

/// What is to be copied where, and what is not.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// What the copier gets.
    pub(crate) items: Vec<Item>,
    /// What it does not get, failed as the copier would have.
    pub(crate) refused: Vec<Failure>,
    /// Whether the items' base is the working folder without the user having named it.
    pub(crate) base_is_implied: bool,
    /// Where paths led: the copier goes on from there.
    pub(crate) paths: Paths,
}

/// Applies the rules.
///
/// # Errors
/// What cp says when the operands make no sense together.
pub(crate) fn plan(operands: Operands, options: &mut Options) -> Result<Plan, Usage> {
    let Operands { mut paths, target_directory, no_target_directory, parents, strip_trailing_slashes } =
        operands;
    let target = match (&target_directory, paths.len()) {
        (_, 0) => return Err(Usage::with_hint("missing file operand")),
        (None, 1) => {
            let name = quote(&paths[0]);
            return Err(Usage::with_hint(format!("missing destination file operand after {name}")));
        }
        (Some(_), _) if no_target_directory => {
            let text = "cannot combine --target-directory (-t) and --no-target-directory (-T)";
            return Err(Usage::plain(text));
        }
        (None, 3..) if no_target_directory => {
            return Err(Usage::with_hint(format!("extra operand {}", quote(&paths[2]))));
        }
        (None, _) => paths.pop(),
        (Some(_), _) => None,
    };
    if strip_trailing_slashes {
        paths.iter_mut().for_each(|path| *path = without_trailing_slashes(path).to_owned());
    }
    let mut plan = Plan::default();
    let Some(target) = target else {
        let folder = target_directory.unwrap_or_default();
        plan.must_be_folder(&folder, "target directory")?;
        plan.add_beneath(paths, &folder, parents);
        return Ok(plan);
    };
    if paths.len() > 1 {
        plan.must_be_folder(&target, "target")?;
        plan.add_beneath(paths, &target, parents);
        return Ok(plan);
    }
    if !no_target_directory && plan.folder(&target).is_ok() {
        plan.add_beneath(paths, &target, parents);
        return Ok(plan);
    }
    if parents {
        return Err(Usage::with_hint("with --parents, the destination must be a directory"));
    }
    let Some(source) = paths.pop() else { return Ok(plan) };
    let target = match plan.own_backup(&source, &target, options) {
        Some(backup) => {
            options.backup = None;
            backup
        }
        None => target,
    };
    plan.add_named(source, &target, options);
    Ok(plan)
}

impl Plan {
    fn add(&mut self, item: Item) {
        if item.source.as_os_str().is_empty() {
            let target = item.base.join(&item.relative);
            self.refused.push(failed(item.source, target, Verb::Stat, Errno::NOENT));
        } else {
            self.items.push(item);
        }
    }

    fn status(&self, path: &Path, follow: bool) -> Result<Stat, Errno> {
        self.paths.stat(path, follow).map_err(|error| error.as_errno().unwrap_or(Errno::IO))
    }

    /// Reaches a folder, which is kept for the copier.
    fn folder(&self, path: &Path) -> Result<(), Errno> {
        if path.as_os_str().is_empty() {
            return Err(Errno::NOENT);
        }
        self.paths.folder(path).map(drop).map_err(|error| error.as_errno().unwrap_or(Errno::IO))
    }

    /// Where a file goes that is copied onto itself with `-f` and backups: it is its own backup.
    fn own_backup(&self, source: &Path, target: &Path, options: &Options) -> Option<PathBuf> {
        // As they are written: `name/` is no file's name.
        let is_itself = source.as_os_str() == target.as_os_str();
        let backup = options.backup.as_ref().filter(|_| options.force && is_itself)?;
        self.status(source, true).ok().filter(|found| found.kind == FileKind::Regular)?;
        let (folder, name) = split(target);
        let mut naming = backup.of(name);
        if naming.looks_around() {
            let beside = self.paths.names(folder.unwrap_or(Path::new("."))).unwrap_or_default();
            beside.iter().for_each(|name| naming.see(name));
        }
        Some(target.with_file_name(naming.name()))
    }

    fn must_be_folder(&self, path: &Path, what: &str) -> Result<(), Usage> {
        self.folder(path)
            .map_err(|errno| Usage::plain(format!("{what} {}: {}", quote(path), Cause::Errno(errno))))
    }

    /// Each source keeps its name, or with `--parents` its path, beneath `folder`.
    fn add_beneath(&mut self, sources: Vec<PathBuf>, folder: &Path, parents: bool) {
        for source in sources {
            let mut base = without_trailing_slashes(folder).to_owned();
            let relative = if parents {
                path_beneath(&source, &mut base)
            } else {
                name_beneath(&source).map(PathBuf::from).unwrap_or_else(|| dot_of(&source))
            };
            self.add(Item { source, base, relative });
        }
    }

    /// The one source gets the name `target`, which is not a folder, or with `-T` may be one to merge into.
    fn add_named(&mut self, source: PathBuf, target: &Path, options: &Options) {
        let (base, name) = split(target);
        if self.status(target, false).is_ok_and(is_folder) {
            return self.add_onto_folder(source, target, options);
        }
        let folder = base.unwrap_or(Path::new("."));
        let creation = match self.status(target, true) {
            Ok(_) => Ok(()),
            Err(Errno::NOENT) if name.is_empty() => Err(Errno::NOENT),
            Err(Errno::NOENT) if ends_with_slash(target) => {
                self.folder(folder).and_then(|()| self.slash_after_nothing(&source, target, options))
            }
            Err(Errno::NOENT) => Ok(()),
            // A link that leads nowhere may be replaced.
            Err(Errno::LOOP | Errno::NOTDIR) if self.status(target, false).is_ok() => Ok(()),
            Err(errno) => {
                let target = target.to_owned();
                self.refused.push(match self.status(&source, follows_operands(options)) {
                    Ok(found) if is_folder(found) && !options.recursive => {
                        Failure { source, target, kind: FailureKind::OmittingDirectory }
                    }
                    Ok(found) => {
                        // With `-f` what can't be opened is to be removed.
                        let is_removed = errno == Errno::LOOP
                            && options.force
                            && options.make == Make::Copy
                            && found.kind == FileKind::Regular;
                        let verb = if is_removed { Verb::Remove } else { Verb::Stat };
                        failed(target.clone(), target, verb, errno)
                    }
                    Err(errno) => failed(source, target, Verb::Stat, errno),
                });
                return;
            }
        };
        match creation.and_then(|()| self.folder(folder)) {
            Ok(()) => {
                self.base_is_implied = base.is_none();
                self.add(Item { source, base: folder.to_owned(), relative: name.into() });
            }
            Err(errno) => {
                let failure = self.not_created(source, target.to_owned(), errno, options);
                self.refused.push(failure);
            }
        }
    }

    /// `-T`, where the target is a folder.
    fn add_onto_folder(&mut self, source: PathBuf, target: &Path, options: &Options) {
        let (base, name) = split(target);
        match self.status(&source, follows_operands(options)) {
            Ok(found) if is_folder(found) => {
                self.add(Item { source, base: target.to_owned(), relative: PathBuf::new() });
            }
            // Whether it is refused depends on more than names.
            Ok(_) if name_beneath(target).is_some() => {
                self.base_is_implied = base.is_none();
                let base = base.unwrap_or(Path::new(".")).to_owned();
                self.add(Item { source, base, relative: PathBuf::from(name) });
            }
            Ok(_) => {
                let target = target.to_owned();
                self.refused.push(Failure { source, target, kind: FailureKind::FileOverDirectory });
            }
            Err(errno) => self.refused.push(failed(source, target.to_owned(), Verb::Stat, errno)),
        }
    }

    /// Only a folder can be made as `name/`, and not where a link to nothing has the name.
    fn slash_after_nothing(&self, source: &Path, target: &Path, options: &Options) -> Result<(), Errno> {
        let found = self.status(source, follows_operands(options));
        if !found.is_ok_and(is_folder) {
            let is_file = found.is_ok_and(|found| {
                let by_content = options.copy_contents && found.kind != FileKind::Symlink;
                found.kind == FileKind::Regular || by_content
            });
            return Err(if is_file && options.make == Make::Copy { Errno::NOTDIR } else { Errno::NOENT });
        }
        match self.status(without_trailing_slashes(target), false) {
            Ok(_) => Err(Errno::EXIST),
            Err(_) => Ok(()),
        }
    }

    /// Whether a target is in another folder than the working one.
    fn is_elsewhere(&self, target: &Path) -> bool {
        let Some(base) = split(target).0 else { return false };
        let (base, working) = (self.status(base, true), self.status(Path::new("."), true));
        matches!((base, working), (Ok(base), Ok(working)) if !base.is_same_file(&working))
    }

    /// The failure of making `target`, in terms of what would have been made.
    fn not_created(&self, source: PathBuf, target: PathBuf, errno: Errno, options: &Options) -> Failure {
        let found = match self.status(&source, follows_operands(options)) {
            Ok(found) => found.kind,
            Err(errno) => return failed(source, target, Verb::Stat, errno),
        };
        if found == FileKind::Directory && !options.recursive {
            return Failure { source, target, kind: FailureKind::OmittingDirectory };
        }
        let is_linked = options.make == Make::SymbolicLink && found != FileKind::Directory;
        if is_linked && source.is_relative() && self.is_elsewhere(&target) {
            return Failure { source, target, kind: FailureKind::RelativeSymlink };
        }
        let verb = match (options.make, found) {
            (_, FileKind::Directory) => Verb::CreateDirectory,
            (Make::HardLink, _) => Verb::CreateLink,
            (Make::SymbolicLink, _) | (Make::Copy, FileKind::Symlink) => Verb::CreateSymlink,
            (Make::Copy, FileKind::Regular) => Verb::CreateFile,
            (Make::Copy, _) if options.copy_contents => Verb::CreateFile,
            (Make::Copy, FileKind::Fifo) => Verb::CreateFifo,
            (Make::Copy, FileKind::Socket | FileKind::CharDevice | FileKind::BlockDevice) => {
                Verb::CreateSpecial
            }
        };
        failed(source, target, verb, errno)
    }
}

fn is_folder(found: Stat) -> bool {
    found.kind == FileKind::Directory
}

fn failed(source: PathBuf, target: PathBuf, verb: Verb, errno: Errno) -> Failure {
    let operation = if verb == Verb::Stat { Operation::Stat } else { Operation::Open };
    let error = ferry_io::Error { operation, cause: Cause::Errno(errno) };
    Failure { source, target, kind: FailureKind::Io { verb, error } }
}

fn follows_operands(options: &Options) -> bool {
    match options.dereference {
        Dereference::Never => false,
        Dereference::CommandLine | Dereference::Always => true,
    }
}

/// The last component, unless it is the folder itself: `.`, `..` or the root.
fn name_beneath(source: &Path) -> Option<&OsStr> {
    let (_, name) = split(source);
    (!matches!(name.as_bytes(), b"" | b"." | b"..")).then_some(name)
}

/// `folder/.` is copied to `DIRECTORY/.`, as messages tell it; `..` is not.
fn dot_of(source: &Path) -> PathBuf {
    if split(source).1 == "." { PathBuf::from(".") } else { PathBuf::new() }
}

/// The source's whole path without the root, as it is written. What climbs above `base` is taken into it: a leading `..`,
/// and one further in with all that it takes back.
fn path_beneath(source: &Path, base: &mut PathBuf) -> PathBuf {
    let path = without_trailing_slashes(source).as_os_str().as_bytes();
    let (mut depth, mut relative) = (0_usize, path);
    let mut rest = path;
    while !rest.is_empty() {
        let (part, after) = match rest.iter().position(|byte| *byte == b'/') {
            Some(slash) => (&rest[..slash], &rest[slash + 1..]),
            None => (rest, &b""[..]),
        };
        rest = after;
        match part {
            b"" | b"." => {}
            b".." if depth == 0 => {
                base.push("..");
                relative = rest;
            }
            b".." => depth -= 1,
            _ => depth += 1,
        }
    }
    let root = relative.iter().take_while(|byte| **byte == b'/').count();
    PathBuf::from(OsStr::from_bytes(&relative[root..]))
}

/// The folder part, if there is one, and the last component, without trailing slashes; empty for the root.
fn split(path: &Path) -> (Option<&Path>, &OsStr) {
    let bytes = without_trailing_slashes(path).as_os_str().as_bytes();
    match bytes.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => {
            let folder = without_trailing_slashes(Path::new(OsStr::from_bytes(&bytes[..=slash])));
            (Some(folder), OsStr::from_bytes(&bytes[slash + 1..]))
        }
        None => (None, OsStr::from_bytes(bytes)),
    }
}

fn ends_with_slash(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"/")
}

/// `a//` is `a`; `//` is `/`.
fn without_trailing_slashes(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(bytes.len().min(1), |last| last + 1);
    Path::new(OsStr::from_bytes(&bytes[..end]))
}
