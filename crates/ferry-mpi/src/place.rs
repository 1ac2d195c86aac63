//! A copy's paths: its target, which an interrupted job may have made, and its journal.

use std::fs;
use std::path::{Path, PathBuf};

use ferry_copy::Preserve;

use crate::options::{Division, Journaling};
use crate::setup::{CopyOptions, Existing, text};
use crate::wording::cannot;

/// Paths of a job, absolute.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) journal: PathBuf,
}

/// A copy to be made, with paths as the user gave them.
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    /// The directory in which the copy is made, if it may be the copy of an interrupted job.
    pub(crate) inside: Option<PathBuf>,
    /// Set if the source may be a symbolic link.
    pub(crate) follows: bool,
    pub(crate) existing: Existing,
    pub(crate) division: Division,
    pub(crate) journaling: Journaling,
    pub(crate) options: CopyOptions,
    /// The options that decide what is made, as the journal has them.
    pub(crate) deciding: String,
    /// Set if a new copy needs no hidden names.
    pub(crate) is_plain: bool,
    /// Set if existing files may stay in the target.
    pub(crate) may_keep: bool,
    /// Attributes that are kept.
    pub(crate) preserve: Preserve,
    /// Set if the journal is made durable line by line.
    pub(crate) fsync: bool,
    pub(crate) progress: bool,
    /// Set if ranks measure spans for a recording.
    pub(crate) is_recorded: bool,
}

/// Finds the copy's place.
///
/// # Errors
/// A message for the user.
pub(crate) fn find(copy: &Copy) -> Result<Place, String> {
    let source = absolute(&copy.source)?;
    let found = if copy.follows { fs::metadata(&source) } else { fs::symlink_metadata(&source) };
    if !found.map_err(cannot("stat", &source))?.is_dir() {
        return Err(format!("'{}' is not a directory: copy it by `ferry cp`", source.display()));
    }
    let begun = copy.inside.as_deref().map(absolute).transpose()?.filter(|inside| is_begun(inside, copy));
    let target = match begun {
        Some(begun) => begun,
        None => absolute(&copy.target)?,
    };
    refuse_overlap(&source, &target)?;
    let journal = match &copy.journaling.journal {
        Some(journal) => absolute(journal)?,
        None => beside(&target).ok_or_else(|| format!("'{}' has no name", target.display()))?,
    };
    Ok(Place { source, target, journal })
}

/// Returns true if an interrupted job has made this copy: then it exists, and is the target all the same.
fn is_begun(target: &Path, copy: &Copy) -> bool {
    let journal = copy.journaling.journal.clone().or_else(|| beside(target));
    let header = journal.and_then(|journal| crate::journal::header(&journal));
    let task = Existing::Replaced.task().as_bytes();
    header.is_some_and(|header| header.target == text(target) && header.task.as_bytes() == task)
}

fn beside(target: &Path) -> Option<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name()?);
    name.push(".ferry-mpi");
    Some(target.with_file_name(name))
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(cannot("find", path))
}

/// Refuses a copy into itself.
fn refuse_overlap(source: &Path, target: &Path) -> Result<(), String> {
    let parent = target.parent().unwrap_or(target);
    let real_source = source.canonicalize().map_err(cannot("stat", source))?;
    let mut real_target = parent.canonicalize().map_err(cannot("stat", parent))?;
    real_target.extend(target.file_name());
    if real_target.starts_with(&real_source) || target.canonicalize().is_ok_and(|real| real == real_source) {
        let (source, target) = (source.display(), target.display());
        return Err(format!("cannot copy a directory, '{source}', into itself, '{target}'"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Journal;

    fn place(flags: &str, source: &Path, target: &Path) -> Result<Place, String> {
        find(&crate::root::of_words(&[flags, source.to_str().unwrap(), target.to_str().unwrap()]))
    }

    #[test]
    fn an_existing_directory_gets_the_copy_in_it_unless_a_job_has_begun_to_make_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("source")).unwrap();
        let target = |flags: &str| place(flags, &path("source"), &path("target")).unwrap().target;
        assert_eq!(target("-a"), path("target"));
        fs::create_dir(path("target")).unwrap();
        assert_eq!(target("-a"), path("target/source"));
        assert_eq!(target("-aT"), path("target"));
        let settings = ferry_cluster::Settings::new(1);
        let journal = |task: &str| {
            let paths = (text(path("source")), text(path("target")));
            let header = ferry_cluster::Header::new(task, paths, (0, 0), settings);
            let journal = Journal::open(&path(".target.ferry-mpi"), true, false).map(|found| found.journal);
            journal.unwrap().begin(&header).unwrap();
        };
        journal("sync");
        assert_eq!(target("-a"), path("target/source"), "it is that of a sync");
        journal("cp");
        assert_eq!(target("-a"), path("target"), "it goes on");
    }

    #[test]
    fn a_target_in_the_source_is_refused_also_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("source")).unwrap();
        std::os::unix::fs::symlink("source", path("link")).unwrap();
        for target in ["source", "source/inner", "link/inner"] {
            let refused = place("-aT", &path("source"), &path(target));
            assert!(refused.is_err_and(|why| why.contains("into itself")), "{target}");
        }
    }
}
