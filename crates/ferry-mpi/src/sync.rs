//! A sync: all ranks copy the entries that the target lacks, then rank 0 runs `ferry sync`, which does all the rest.
//!
//! The first part changes no existing entry. It begins only if `ferry sync` accepts the trees. So each replacement and each
//! deletion is decided by `ferry sync` alone, and the messages and the exit code are its own.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use ferry::job::SyncCopies;
use ferry_cluster::{Stop, Totals};
use ferry_copy::Preserve;

use crate::failures::complain;
use crate::job::Ended;
use crate::note::Notes;
use crate::options::Sync;
use crate::place::Copy;
use crate::root;
use crate::rules::{self, Rules};
use crate::setup::{CopyOptions, Existing};
use crate::stats::{self, Shown};
use crate::wire::Wire;

/// Messages kept to explain why the first part has stopped. `ferry sync` repeats failures that remain.
const MESSAGES: usize = 8;
/// Bound on deletions unless another one is given. That of `ferry sync` counts the target's entries, and thus those that were
/// copied just before.
const MOST_DELETED: &str = "--max-delete=1000";

/// Runs the sync.
pub(crate) fn run(wire: &mut Wire, options: &Sync) -> ExitCode {
    let begun = Instant::now();
    let copies = ferry::job::sync_copies(&options.arguments);
    if let Some(Err(why)) = options.trace.as_deref().map(|path| check_trace(path, copies.as_ref().ok())) {
        complain(&why);
        wire.send_setup(None);
        return ExitCode::FAILURE;
    }
    let mut arguments = Vec::new();
    let (mut totals, mut is_written) = (Totals::default(), true);
    match copies {
        Ok(copies) => {
            if copies.counts_entries {
                arguments.push(MOST_DELETED.into());
            }
            match copy(wire, options, copies) {
                Ok(copied) => (totals, is_written) = copied,
                Err(code) => return code,
            }
        }
        Err(Some(option)) => {
            complain(&format!("with {option}, rank 0 does all the work"));
            if options.trace.is_some() {
                complain("--trace records nothing: it shows what the ranks copy together");
            }
            wire.send_setup(None);
        }
        // `ferry sync` reports what is wrong.
        Err(None) => wire.send_setup(None),
    }
    arguments.extend(options.arguments.iter().cloned());
    let (done, code) = ferry::job::sync_counted(&arguments);
    if let (Some(done), Some(stats)) = (done, options.stats) {
        let shown = Shown { stats, ranks: wire.ranks(), took: begun.elapsed() };
        if let Err(error) = stats::print_sync(&totals, &done, &shown) {
            complain(&format!("cannot print the totals: {error}"));
            is_written = false;
        }
    }
    if code == ExitCode::SUCCESS && !is_written { ExitCode::FAILURE } else { code }
}

/// Refuses a recording that can't be made, or that would be in one of the trees.
fn check_trace(path: &Path, copies: Option<&SyncCopies>) -> Result<(), String> {
    let trees = copies.map(|copies| [copies.source.as_path(), copies.target.as_path()]);
    ferry::job::check_recording(path, trees.as_ref().map_or(&[], |trees| trees))
}

/// Copies what the target lacks. Returns the totals, and false if the recording could not be written; or the exit code if the sync
/// ends with it.
fn copy(wire: &mut Wire, options: &Sync, copies: SyncCopies) -> Result<(Totals, bool), ExitCode> {
    let SyncCopies { source, target, fsync, progress, .. } = copies;
    let copy = Copy {
        source,
        target,
        inside: None,
        follows: false,
        existing: Existing::Kept,
        division: options.division.clone(),
        journaling: options.journaling.clone(),
        options: CopyOptions::Sync { fsync },
        deciding: rules::deciding(&Rules::of_sync(fsync, NonZeroUsize::MIN).options),
        is_plain: true,
        may_keep: false,
        preserve: Preserve { mode: true, ..Preserve::default() },
        fsync,
        progress,
        is_recorded: options.trace.is_some(),
    };
    let notes = Notes::default().with_trace(options.trace.clone());
    let mut last = VecDeque::new();
    let mut hear = |message: String| {
        last.truncate(MESSAGES - 1);
        last.push_front(message);
    };
    let ended = root::perform(wire, &copy, (notes, false), &mut hear);
    let Ended { totals, stopped, journal, notes } = match ended {
        Ok(ended) => ended,
        Err(why) => {
            complain(&why);
            return Err(ExitCode::FAILURE);
        }
    };
    match stopped {
        None => {
            let unwritten = notes.end();
            unwritten.iter().for_each(|why| complain(why));
            report(&totals, wire.ranks());
            let removed = journal.map_or(Ok(()), |journal| journal.remove());
            match removed {
                Ok(()) => Ok((totals, unwritten.is_empty())),
                Err(why) => {
                    complain(&why);
                    Err(ExitCode::FAILURE)
                }
            }
        }
        Some(Stop::Interrupted | Stop::NoSpace | Stop::Failed) => {
            last.into_iter().rev().for_each(|message| complain(&message));
            Err(root::end(Ended { totals, stopped, journal, notes }, None))
        }
    }
}

/// Reports what was copied: the closing line of `ferry sync` lacks it.
fn report(totals: &Totals, ranks: u32) {
    let Totals { files, symlinks, hard_links, specials, bytes, .. } = totals;
    let copied = files + symlinks + hard_links + specials;
    if copied > 0 {
        complain(&format!("{ranks} processes have copied {copied} files and links, {bytes} bytes"));
    }
}
