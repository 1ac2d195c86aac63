//! Where the copy goes: cp's rule for an existing target, and where its journal is.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failures::cannot;
use crate::options::Copy;
use crate::setup::{Existing, text};

/// Paths of a job, absolute.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) journal: PathBuf,
}

/// Finds the copy's place.
///
/// # Errors
/// A message for the user.
pub(crate) fn find(options: &Copy) -> Result<Place, String> {
    let source = absolute(&options.source)?;
    let is_folder = fs::symlink_metadata(&source).map_err(cannot("stat", &source))?.is_dir();
    if !is_folder {
        return Err(format!("'{}' is not a directory: copy it by `ferry cp -a`", source.display()));
    }
    let given = absolute(&options.target)?;
    let inner = source.file_name().map(|name| given.join(name));
    let is_copy_itself = options.no_target_directory || !given.is_dir() || is_begun(&given, options);
    let target = match inner {
        Some(inner) if !is_copy_itself => inner,
        Some(_) | None => given,
    };
    refuse_overlap(&source, &target)?;
    let journal = match &options.journaling.journal {
        Some(journal) => absolute(journal)?,
        None => beside(&target).ok_or_else(|| format!("'{}' has no name", target.display()))?,
    };
    Ok(Place { source, target, journal })
}

/// Returns true if an interrupted job has made this copy: then it exists, and is the target all the same.
fn is_begun(target: &Path, options: &Copy) -> bool {
    let journal = options.journaling.journal.clone().or_else(|| beside(target));
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
    use std::ffi::OsString;

    use clap::Parser as _;

    use super::*;
    use crate::journal::Journal;
    use crate::options::Options;

    fn place(flags: &str, source: &Path, target: &Path) -> Result<Place, String> {
        let words = ["ferry-mpi", "cp", flags].map(OsString::from);
        let paths = [source.into(), target.into()];
        let options = Options::try_parse_from(words.into_iter().chain(paths)).unwrap();
        find(options.copy())
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
            let paths = (text(&path("source")), text(&path("target")));
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
