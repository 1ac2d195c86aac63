//! Maps operands to targets by GNU cp's rules for SOURCE... DEST, `-t`, `-T`, `--parents` and trailing
//! slashes.
//!
//! `plan` runs once before the copy. It refuses, in GNU cp's words, everything that the paths alone show to
//! be impossible, such as a missing parent directory. The copier decides everything that depends on the
//! opened source. The plan passes on the directories opened here, so the copier uses the same directories
//! even if their paths change.

use std::path::{Path, PathBuf};

use ferry_copy::{Dereference, Failure, FailureKind, Item, Make, Options, Verb};
use ferry_io::{Cause, Errno, FileKind, Operation, Paths, Stat};

use super::path::{dot_of, ends_with_slash, name_beneath, path_beneath, split, without_trailing_slashes};
use crate::arguments::Usage;
use crate::quote::quote;

#[cfg(test)]
mod tests;

/// Operands, and the options that affect their meaning.
#[derive(Debug, Clone, Default)]
pub(crate) struct Operands {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) target_directory: Option<PathBuf>,
    pub(crate) no_target_directory: bool,
    pub(crate) parents: bool,
    pub(crate) strip_trailing_slashes: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) items: Vec<Item>,
    /// Failures found here, in the form that the copier would report.
    pub(crate) refused: Vec<Failure>,
    /// True if the base `.` is not part of the path that the user wrote.
    pub(crate) base_is_implied: bool,
    /// Directories opened so far, for the copier.
    pub(crate) paths: Paths,
    /// The target as a folder, for the paths of a manifest: the folder that the copies are put into, or the copy itself.
    pub(crate) root: PathBuf,
}

/// Applies the rules; may turn off backups in `options`.
///
/// # Errors
/// Operands that cp rejects as a whole.
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

    /// Opens a directory and keeps it for the copier.
    fn folder(&self, path: &Path) -> Result<(), Errno> {
        if path.as_os_str().is_empty() {
            return Err(Errno::NOENT);
        }
        self.paths.folder(path).map(drop).map_err(|error| error.as_errno().unwrap_or(Errno::IO))
    }

    /// Target of a file that `-f` and backups copy onto itself: the backup's name.
    fn own_backup(&self, source: &Path, target: &Path, options: &Options) -> Option<PathBuf> {
        // Compare the text: `name/` cannot name a file.
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

    /// Adds sources that keep their name, or their path with `--parents`, below `folder`.
    fn add_beneath(&mut self, sources: Vec<PathBuf>, folder: &Path, parents: bool) {
        self.root = without_trailing_slashes(folder).to_owned();
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

    /// Adds the only source with `target` as its name. `target` is a directory only with `-T`.
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
            // A link that leads nowhere can be replaced.
            Err(Errno::LOOP | Errno::NOTDIR) if self.status(target, false).is_ok() => Ok(()),
            Err(errno) => {
                let target = target.to_owned();
                self.refused.push(match self.status(&source, follows_operands(options)) {
                    Ok(found) if is_folder(found) && !options.recursive => {
                        Failure { source, target, kind: FailureKind::OmittingDirectory }
                    }
                    Ok(found) => {
                        // With `-f`, cp removes a target that it cannot open.
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
                self.root = folder.join(name);
                self.add(Item { source, base: folder.to_owned(), relative: name.into() });
            }
            Err(errno) => {
                let failure = self.not_created(source, target.to_owned(), errno, options);
                self.refused.push(failure);
            }
        }
    }

    /// Handles `-T` with an existing directory as the target.
    fn add_onto_folder(&mut self, source: PathBuf, target: &Path, options: &Options) {
        let (base, name) = split(target);
        match self.status(&source, follows_operands(options)) {
            Ok(found) if is_folder(found) => {
                self.root = target.to_owned();
                self.add(Item { source, base: target.to_owned(), relative: PathBuf::new() });
            }
            // The copier decides, because this depends on the source's type.
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

    /// Checks a missing target that ends in a slash. Only a directory can have it, and only if no dangling
    /// link has the name.
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

    /// Returns true if the target's directory is not the working directory.
    fn is_elsewhere(&self, target: &Path) -> bool {
        let Some(base) = split(target).0 else { return false };
        let (base, working) = (self.status(base, true), self.status(Path::new("."), true));
        matches!((base, working), (Ok(base), Ok(working)) if !base.is_same_file(&working))
    }

    /// Failure to create `target`, with the verb that fits the source's type.
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
