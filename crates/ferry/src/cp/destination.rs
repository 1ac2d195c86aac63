//! Where copies go: GNU cp's rules for SOURCE... DEST, `-t`, `-T`, `--parents` and trailing slashes.
//!
//! Called once, before anything is copied. What can be seen to be impossible from the names alone (a target
//! whose folder is not there) is refused here, in GNU's words; whatever depends on what the source is when it
//! is opened is left to the copier.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use ferry_copy::{Dereference, Failure, FailureKind, Item, Make, Options, Verb};
use ferry_io::{Cause, Operation};
use rustix::io::Errno;

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
    /// What it does not get, and why.
    pub(crate) refused: Vec<Refused>,
    /// Whether the items' base is the working folder without the user having named it.
    pub(crate) base_is_implied: bool,
}

/// Why an operand is not copied.
#[derive(Debug)]
pub(crate) enum Refused {
    /// As the copier would have failed.
    Failed(Failure),
    /// Named twice with the same target; a warning, not a failure.
    Repeated {
        /// The second name.
        source: PathBuf,
        /// Whether it is a folder.
        folder: bool,
    },
}

/// Applies the rules.
///
/// # Errors
/// What cp says when the operands make no sense together.
pub(crate) fn plan(operands: Operands, options: &Options) -> Result<Plan, Usage> {
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
    let Some(target) = target else {
        let folder = target_directory.unwrap_or_default();
        must_be_folder(&folder, "target directory")?;
        return Ok(into_folder(paths, &folder, parents, options));
    };
    if paths.len() > 1 {
        must_be_folder(&target, "target")?;
        return Ok(into_folder(paths, &target, parents, options));
    }
    let is_folder = status(&target, true).is_ok_and(|found| found.is_dir());
    if is_folder && !no_target_directory {
        return Ok(into_folder(paths, &target, parents, options));
    }
    if parents {
        return Err(Usage::with_hint("with --parents, the destination must be a directory"));
    }
    Ok(paths.pop().map_or_else(Plan::default, |source| as_named(source, target, options)))
}

fn must_be_folder(path: &Path, what: &str) -> Result<(), Usage> {
    let errno = match status(path, true) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => Errno::NOTDIR,
        Err(errno) => errno,
    };
    Err(Usage::plain(format!("{what} {}: {}", quote(path), Cause::Errno(errno))))
}

/// Each source keeps its name, or with `--parents` its path, beneath `folder`.
fn into_folder(sources: Vec<PathBuf>, folder: &Path, parents: bool, options: &Options) -> Plan {
    let mut plan = Plan::default();
    let mut met = HashSet::new();
    let several = sources.len() > 1;
    for source in sources {
        let mut base = without_trailing_slashes(folder).to_owned();
        let relative = if parents {
            path_beneath(&source, &mut base)
        } else {
            name_beneath(&source).map(PathBuf::from).unwrap_or_default()
        };
        let found = if several { status(&source, follows_operands(options)).ok() } else { None };
        if let Some(found) = found.filter(|found| options.recursive || !found.is_dir())
            && !met.insert((
                found.dev(),
                found.ino(),
                without_trailing_slashes(&source).file_name().map(OsStr::to_owned),
                relative.clone(),
            ))
        {
            plan.refused.push(Refused::Repeated { source, folder: found.is_dir() });
            continue;
        }
        plan.add(Item { source, base, relative });
    }
    plan
}

/// The one source gets the name `target`, which is not a folder, or with `-T` may be one to merge into.
fn as_named(source: PathBuf, target: PathBuf, options: &Options) -> Plan {
    let mut plan = Plan::default();
    if status(&target, false).is_ok_and(|found| found.is_dir()) {
        let (base, name) = split(&target);
        let base_is_implied = base.is_none();
        let (base, relative) = (base.unwrap_or(Path::new(".")).to_owned(), PathBuf::from(name));
        match status(&source, follows_operands(options)) {
            Ok(found) if found.is_dir() => {
                plan.add(Item { source, base: target, relative: PathBuf::new() });
            }
            // Whether it is refused depends on more than names.
            Ok(_) if name_beneath(&target).is_some() => {
                plan.base_is_implied = base_is_implied;
                plan.add(Item { source, base, relative });
            }
            Ok(_) => {
                let failure = Failure { source, target, kind: FailureKind::FileOverDirectory };
                plan.refused.push(Refused::Failed(failure));
            }
            Err(errno) => {
                plan.refused.push(Refused::Failed(failed(source, target, Verb::Stat, errno)));
            }
        }
        return plan;
    }
    let (base, name) = split(&target);
    let creation = match status(&target, true) {
        Ok(_) => Ok(()),
        Err(Errno::NOENT) if name.is_empty() => Err(Errno::NOENT),
        Err(Errno::NOENT) if ends_with_slash(&target) => slash_after_nothing(&source, &target, options),
        Err(Errno::NOENT) => Ok(()),
        // A link to itself may be replaced.
        Err(Errno::LOOP) if status(&target, false).is_ok() => Ok(()),
        Err(errno) => {
            let failure = match status(&source, follows_operands(options)) {
                Ok(_) => failed(target.clone(), target, Verb::Stat, errno),
                Err(errno) => failed(source, target, Verb::Stat, errno),
            };
            plan.refused.push(Refused::Failed(failure));
            return plan;
        }
    };
    let folder = base.unwrap_or(Path::new("."));
    let creation = creation
        .and_then(|()| status(folder, true))
        .and_then(|found| if found.is_dir() { Ok(()) } else { Err(Errno::NOTDIR) });
    match creation {
        Ok(()) => {
            plan.base_is_implied = base.is_none();
            plan.add(Item { source, base: folder.to_owned(), relative: name.into() });
        }
        Err(errno) => plan.refused.push(Refused::Failed(not_created(source, target, errno, options))),
    }
    plan
}

/// Only a folder can be made as `name/`, and not where a link to nothing has the name.
fn slash_after_nothing(source: &Path, target: &Path, options: &Options) -> Result<(), Errno> {
    let found = status(source, follows_operands(options));
    if !found.as_ref().is_ok_and(Metadata::is_dir) {
        let plain = found.is_ok_and(|found| found.is_file()) && options.make == Make::Copy;
        return Err(if plain { Errno::NOTDIR } else { Errno::NOENT });
    }
    match status(without_trailing_slashes(target), false) {
        Ok(_) => Err(Errno::EXIST),
        Err(_) => Ok(()),
    }
}

/// The failure of making `target`, in terms of what would have been made.
fn not_created(source: PathBuf, target: PathBuf, errno: Errno, options: &Options) -> Failure {
    let found = match status(&source, follows_operands(options)) {
        Ok(found) => found.file_type(),
        Err(errno) => return failed(source, target, Verb::Stat, errno),
    };
    if found.is_dir() && !options.recursive {
        return Failure { source, target, kind: FailureKind::OmittingDirectory };
    }
    let special = found.is_fifo() || found.is_socket() || found.is_block_device() || found.is_char_device();
    let verb = match options.make {
        _ if found.is_dir() => Verb::CreateDirectory,
        Make::HardLink => Verb::CreateLink,
        Make::SymbolicLink => Verb::CreateSymlink,
        Make::Copy if found.is_symlink() => Verb::CreateSymlink,
        Make::Copy if special && !options.copy_contents => Verb::CreateSpecial,
        Make::Copy => Verb::CreateFile,
    };
    failed(source, target, verb, errno)
}

fn failed(source: PathBuf, target: PathBuf, verb: Verb, errno: Errno) -> Failure {
    let operation = if verb == Verb::Stat { Operation::Stat } else { Operation::Open };
    let error = ferry_io::Error { operation, cause: Cause::Errno(errno) };
    Failure { source, target, kind: FailureKind::Io { verb, error } }
}

impl Plan {
    fn add(&mut self, item: Item) {
        if item.source.as_os_str().is_empty() {
            let target = item.base.join(&item.relative);
            let failure = failed(item.source, target, Verb::Stat, Errno::NOENT);
            self.refused.push(Refused::Failed(failure));
        } else {
            self.items.push(item);
        }
    }
}

fn follows_operands(options: &Options) -> bool {
    match options.dereference {
        Dereference::Never => false,
        Dereference::CommandLine | Dereference::Always => true,
    }
}

fn status(path: &Path, follow: bool) -> Result<Metadata, Errno> {
    let found = if follow { std::fs::metadata(path) } else { std::fs::symlink_metadata(path) };
    found.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// The last component, unless it is the folder itself: `.`, `..` or the root.
fn name_beneath(source: &Path) -> Option<&OsStr> {
    let (_, name) = split(source);
    (!matches!(name.as_bytes(), b"" | b"." | b"..")).then_some(name)
}

/// The source's whole path without the root. A leading `..` climbs from `base`, one further in takes its
/// predecessor back, which in the target is always a folder.
fn path_beneath(source: &Path, base: &mut PathBuf) -> PathBuf {
    let mut relative = PathBuf::new();
    for component in source.components() {
        match component {
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
            Component::ParentDir => {
                if !relative.pop() {
                    base.push("..");
                }
            }
            Component::Normal(name) => relative.push(name),
        }
    }
    relative
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
