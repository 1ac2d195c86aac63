//! A sync: all ranks copy the entries that the target lacks, then rank 0 runs `ferry sync`, which does all the rest.
//!
//! The first part changes no existing entry. It begins only if `ferry sync` accepts the trees. So each replacement and each
//! deletion is decided by `ferry sync` alone, and the messages and the exit code are its own.

use std::collections::VecDeque;
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
    if let Some(Err(why)) = options.trace.as_deref().map(|path| ferry::job::check_recording(path, &[])) {
        complain(&why);
        wire.send_setup(None);
        return ExitCode::FAILURE;
    }
    let mut arguments = Vec::new();
    let mut totals = Totals::default();
    match ferry::job::sync_copies(&options.arguments) {
        Ok(copies) => {
            if copies.counts_entries {
                arguments.push(MOST_DELETED.into());
            }
            match copy(wire, options, copies) {
                Ok(copied) => totals = copied,
                Err(code) => return code,
            }
        }
        Err(Some(option)) => {
            complain(&format!("with {option}, rank 0 does all the work"));
            wire.send_setup(None);
        }
        // `ferry sync` reports what is wrong.
        Err(None) => wire.send_setup(None),
    }
    arguments.extend(options.arguments.iter().cloned());
    let (done, code) = ferry::job::sync_counted(&arguments);
    if let (Some(done), Some(stats)) = (done, options.stats) {
        stats::print_sync(&totals, &done, &Shown { stats, ranks: wire.ranks(), took: begun.elapsed() });
    }
    code
}

/// Copies what the target lacks. Returns the totals, or the exit code if the sync ends with it.
fn copy(wire: &mut Wire, options: &Sync, copies: SyncCopies) -> Result<Totals, ExitCode> {
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
            if let Some(why) = notes.end() {
                complain(&why);
                return Err(ExitCode::FAILURE);
            }
            report(&totals, wire.ranks());
            let removed = journal.map_or(Ok(()), |journal| journal.remove());
            match removed {
                Ok(()) => Ok(totals),
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
