//! The program's side of a recording: a program on ferry-io is asked for it by its environment, and it is joined with
//! the kernel's side if there is exactly one.
//!
//! The program records into a folder of its own, so that the command does not meet the file in what it copies. Every
//! user may write there, because the command may change its user.
//!
//! Limits: numbers of threads are unique in one PID namespace, and for one run of a process. So several runs are not
//! joined. A program that cannot reach the folder, for example in a chroot, refuses to run.

use std::fs::{File, Permissions};
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ferry_io::event::{FILE_VARIABLE, KERNEL_VARIABLE};
use ferry_trace::join::join;
use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;

use crate::complete_file::CompleteFile;
use crate::output::describe;

/// The program's side, as far as it was asked for.
pub(super) enum ProgramSide {
    /// Runs on ferry-io are recorded into this folder.
    Asked(TempDir),
    /// It is left out, for this reason if that was not requested.
    LeftOut(Option<String>),
}

/// Sides in a finished recording.
pub(super) enum Sides {
    Both,
    /// Lines that explain why there is no program's side; none if that was requested.
    Kernel(Vec<String>),
}

impl ProgramSide {
    /// Asks for the program's side.
    pub(super) fn ask(command: &mut Command) -> Self {
        if std::env::var_os(FILE_VARIABLE).is_some_and(|file| !file.is_empty()) {
            return Self::LeftOut(Some(format!("the other goes to {FILE_VARIABLE}'s file")));
        }
        match folder() {
            Ok(folder) => {
                command.env(FILE_VARIABLE, folder.path().join("%n")).env(KERNEL_VARIABLE, "0");
                Self::Asked(folder)
            }
            Err(error) => Self::LeftOut(Some(format!("no temporary directory: {}", describe(&error)))),
        }
    }

    /// Joins the program's side with the kernel's in `file`, after the command has ended.
    pub(super) fn join(self, file: &Path) -> Sides {
        let folder = match self {
            Self::Asked(folder) => folder,
            Self::LeftOut(why) => return Sides::Kernel(why.into_iter().collect()),
        };
        match found(folder.path()).as_slice() {
            [] => Sides::Kernel(vec!["no run on ferry-io was recorded".to_owned()]),
            [only] => match join_with(file, only) {
                Ok(()) => Sides::Both,
                Err(why) => Sides::Kernel(vec![format!("the other can't be joined: {why}")]),
            },
            several => Sides::Kernel(vec![
                format!("{} runs on ferry-io can't be joined", several.len()),
                format!("set {FILE_VARIABLE}=FILE.%n to get a recording of each run"),
            ]),
        }
    }
}

/// Makes a folder in which every user may make files.
fn folder() -> std::io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("ferry-record-").tempdir()?;
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o1777))?;
    Ok(folder)
}

/// Recordings in the folder: a number is their name.
fn found(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_number = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    };
    entries.map(|entry| entry.path()).filter(is_number).collect()
}

/// Replaces `file` by its recording joined with the program's; leaves it as it is if that fails.
fn join_with(file: &Path, program: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| describe(&error);
    // Others may write to the folder: links and FIFOs are not followed or waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let program = rustix::fs::open(program, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
    let both = CompleteFile::create(file).map_err(failed)?;
    let (kernel, program) =
        (BufReader::new(File::open(file).map_err(failed)?), BufReader::new(File::from(program)));
    join(kernel, program, both.file().map_err(failed)?).map_err(|broken| broken.to_string())?;
    both.keep().map_err(failed)
}
