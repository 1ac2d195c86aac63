//! `ferry cp` for a program that copies one directory by many processes: its options, operands and messages.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ferry_copy::{Copied, Dereference, Existing, Explained, Failure, Item, Make, Options, Unfinished};
use ferry_io::Paths;
use ferry_io::event::file::{Broken, Reader};

use crate::arguments::{CommandError, Dialect, Parsed, Usage};
use crate::complete_file::{CompleteFile, is_in};
use crate::cp::{self, Destination, Note, Request, StatsFormat, Wording};
use crate::output::{columns, describe};
use crate::progress::When;
use crate::quote::quote;
use crate::{complain, print};

/// Failures are those of copies whose paths are as the user gave them.
pub(super) const WORDING: Wording = Wording { make: Make::Copy, base_is_implied: false };
/// Name of the program in messages about its arguments.
const PROGRAM: &str = "ferry-mpi cp";

/// A copy of one directory.
#[derive(Debug)]
pub struct CpCopies {
    /// The directory to copy, as the user named it.
    pub source: PathBuf,
    /// The copy.
    pub target: PathBuf,
    /// The last operand, if an existing directory of this name gets the copy in it.
    pub inside: Option<PathBuf>,
    /// Options of the copier.
    pub options: Options,
    /// Set by `--progress` and `--progress=always`.
    pub progress: bool,
    /// Form of the totals at the end.
    pub stats: Option<Stats>,
    /// File of `--errors`.
    pub errors: Option<PathBuf>,
    /// File of the recording.
    pub trace: Option<PathBuf>,
    /// Warnings about the options.
    pub warnings: Vec<String>,
}

/// Form of totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stats {
    /// Lines, on standard error.
    Text,
    /// A JSON object, on standard output.
    Json,
}

/// Reason why nothing is copied.
#[derive(Debug)]
pub enum NoCopy {
    /// Everything was printed.
    Printed(ExitCode),
    /// A message for the user.
    Refused(String),
}

/// Options of the copier and of the runtime, for each process.
#[derive(Debug)]
pub struct CpSettings {
    /// Options of the copier.
    pub options: Options,
    /// Options of the runtime, with the profile of this machine.
    pub io: ferry_io::Options,
    /// Number of workers, if one is given.
    pub workers: Option<NonZeroUsize>,
}

/// Reads the arguments after the name of `cp`, and finds the copy's place.
///
/// # Errors
/// The reason why many processes can't copy this.
pub fn cp_copies(arguments: &[OsString]) -> Result<CpCopies, NoCopy> {
    let wrong = |usage| NoCopy::Printed(complain(&CommandError { program: PROGRAM, usage, code: 1 }, &[]));
    let request = match cp::parse(Dialect::Ferry, arguments) {
        Ok(Parsed::Run(request)) => *request,
        Ok(Parsed::Print(text, command)) => return Err(NoCopy::Printed(print(text, *command))),
        Err(usage) => return Err(wrong(usage)),
    };
    if let Some((option, why)) = refusal(&request) {
        return Err(NoCopy::Refused(format!("{option} is not possible with many processes: {why}")));
    }
    let Request { operands, mut options, mut io, profile, progress, stats, errors, trace, warning, .. } =
        request;
    let is_inside = !operands.no_target_directory && operands.target_directory.is_none();
    let inside = operands.paths.last().filter(|_| is_inside).cloned();
    let Destination { items, refused, .. } = cp::destination(operands, &mut options).map_err(wrong)?;
    if let Some(failure) = refused.first() {
        return Err(NoCopy::Refused(WORDING.failure(failure)));
    }
    let Some(item) = items.into_iter().next() else { return Err(wrong(Usage::plain("no SOURCE"))) };
    let profile = match profile {
        cp::ProfileUse::Auto => cp::apply_profile(&Paths::new(), std::slice::from_ref(&item), true, &mut io),
        cp::ProfileUse::None => None,
    };
    let profile = match profile {
        Some(Note::Warning(text)) => Some(format!("warning: {text}")),
        Some(Note::Explained(_)) | None => None,
    };
    let warnings = warning.map(str::to_owned).into_iter().chain(profile).collect();
    let Item { source, base, relative } = item;
    let is_base = relative.as_os_str().is_empty() || relative == Path::new(".");
    let target = if is_base { base } else { base.join(relative) };
    let stats = stats.map(|format| match format {
        StatsFormat::Text => Stats::Text,
        StatsFormat::Json => Stats::Json,
    });
    let progress = progress == Some(When::Always);
    let trace = cp::recording_file(trace.as_deref(), std::env::var_os("FERRY_TRACE"));
    if let Some(path) = &trace {
        check_recording(path, &[&source, &target]).map_err(NoCopy::Refused)?;
    }
    Ok(CpCopies { source, target, inside, options, progress, stats, errors, trace, warnings })
}

/// Returns an option that one process alone could obey, and the reason.
fn refusal(request: &Request) -> Option<(&'static str, &'static str)> {
    let Request { operands, options, .. } = request;
    let sources = operands.paths.len().saturating_sub(usize::from(operands.target_directory.is_none()));
    let own = "a job that goes on after a kill would take its own copies for files that were there before";
    let follows = options.dereference == Dereference::Always;
    let refused = [
        (!options.recursive, "a copy without -r", "they copy one directory with its content"),
        (sources > 1, "more than one SOURCE", "they copy one directory; start a job for each"),
        (operands.parents, "--parents", "they copy one directory without those above it"),
        (options.backup.is_some(), "--backup", own),
        (options.existing == Existing::Refuse, "--update=none-fail", own),
        (options.existing == Existing::Ask, "--interactive", "they have no terminal"),
        (options.copy_contents, "--copy-contents", "after a kill, a FIFO can't be read again"),
        (options.debug, "--debug", "its lines are those of a copy by one process"),
        (
            options.make == Make::SymbolicLink,
            "--symbolic-link",
            "they find SOURCE by another path than the one given",
        ),
        (
            follows && options.preserve.links,
            "--dereference with hard links kept",
            "a process doesn't see which links lead others to the same file; add --no-preserve=links",
        ),
        (
            options.keep_directory_symlink,
            "--keep-directory-symlink",
            "a link could lead two of them to one directory",
        ),
        (request.events.is_some(), "--events", "events are those of one process; see --verbose and --errors"),
        (
            request.manifest.is_some(),
            "--manifest",
            "a job that goes on lacks the hashes of what was copied before; use `ferry-mpi sync --manifest` afterwards",
        ),
    ];
    refused.into_iter().find(|(is_given, ..)| *is_given).map(|(_, option, why)| (option, why))
}

/// Returns the settings of a process that takes part. The arguments are those of [`cp_copies`], which has accepted them.
#[must_use]
pub fn cp_settings(arguments: &[OsString], source: &Path) -> Option<CpSettings> {
    let Ok(Parsed::Run(request)) = cp::parse(Dialect::Ferry, arguments) else { return None };
    let Request { options, mut io, workers, profile, .. } = *request;
    if profile == cp::ProfileUse::Auto {
        let item = Item { source: source.to_owned(), base: PathBuf::new(), relative: PathBuf::new() };
        // Rank 0 has reported a profile that can't be used.
        cp::apply_profile(&Paths::new(), &[item], true, &mut io);
    }
    Some(CpSettings { options, io, workers })
}

/// Returns the line of `--verbose` about a copied entry.
#[must_use]
pub fn copied_line(copied: &Copied<'_>) -> String {
    format!("{} -> {}", quote(copied.source), quote(copied.target))
}

/// Returns the line of `--verbose` about a target that was removed.
#[must_use]
pub fn removed_line(target: &Path) -> String {
    format!("removed {}", quote(target))
}

/// Returns the line of `--verbose --explain` about a file.
#[must_use]
pub fn explained_line(explained: &Explained<'_>) -> String {
    let Explained { source, method, why, .. } = *explained;
    format!("{}: {method}: {why}", quote(source))
}

/// Returns the message about an incomplete target.
#[must_use]
pub fn unfinished_message(unfinished: &Unfinished) -> String {
    WORDING.unfinished(unfinished)
}

/// Returns the line of `--errors` about a failure.
#[must_use]
pub fn failure_line(failure: &Failure) -> Vec<u8> {
    let errno = failure.kind.error().and_then(ferry_io::Error::as_errno);
    cp::failure_line((&failure.source, &failure.target), &WORDING.failure(failure), errno)
}

/// Opens and empties the file of `--errors`, unless it is one of the `named` files.
///
/// # Errors
/// A message for the user.
pub fn open_errors(path: &Path, named: &[PathBuf]) -> Result<std::fs::File, String> {
    cp::open_record(path, named).map_err(|error| cp::no_record("failures", Some(path), &error).message)
}

/// Returns an error if a recording can't be made at a path: a file that is no recording stays, one of `trees` would have it in it, or
/// its folder is missing.
///
/// # Errors
/// A message for the user.
pub fn check_recording(path: &Path, trees: &[&Path]) -> Result<(), String> {
    let cannot = |why: &str| Err(format!("cannot record to {}: {why}", quote(path)));
    if let Some(tree) = trees.iter().find(|tree| is_in(path, tree)) {
        return cannot(&format!("it is in {}", quote(tree)));
    }
    match std::fs::File::open(path).map(Reader::new) {
        Ok(Ok(_) | Err(Broken::Empty | Broken::Version(_))) => Ok(()),
        Ok(Err(_)) => cannot("the file is no recording"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let above = path.parent().filter(|above| !above.as_os_str().is_empty());
            match above.unwrap_or(Path::new(".")).metadata() {
                Ok(_) => Ok(()),
                Err(error) => cannot(&describe(&error)),
            }
        }
        Err(error) => cannot(&describe(&error)),
    }
}

/// Makes a recording, which gets its name when it is complete.
///
/// # Errors
/// A message for the user.
pub fn write_recording(
    path: &Path,
    write: impl FnOnce(std::fs::File) -> std::io::Result<()>,
) -> Result<(), String> {
    let written = CompleteFile::create(path).and_then(|complete| {
        write(complete.file()?)?;
        complete.keep()
    });
    written.map_err(|error| format!("cannot record to {}: {}", quote(path), describe(&error)))
}

/// Files and bytes that were copied in one way, for one reason.
#[derive(Debug, Clone)]
pub struct Way {
    /// Name of the way.
    pub way: String,
    /// Number of files.
    pub files: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Reason.
    pub why: String,
}

/// Returns the table of `--explain`.
#[must_use]
pub fn ways_table(ways: &[Way]) -> String {
    let rows = ways.iter().map(|Way { way, files, bytes, why }| (way.as_str(), *files, *bytes, why.as_str()));
    cp::ways_table(rows, columns())
}
