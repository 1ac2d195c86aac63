//! A sync: all ranks copy the entries that the target lacks, then rank 0 runs `ferry sync`, which does all the rest.
//!
//! The first part changes no existing entry. It begins only if `ferry sync` accepts the trees. So each replacement and each
//! deletion is decided by `ferry sync` alone, and the messages and the exit code are its own.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::process::ExitCode;

use ferry::job::SyncCopies;
use ferry_cluster::{Stop, Totals};

use crate::failures::complain;
use crate::job::Ended;
use crate::options::{Copy, Sync};
use crate::root;
use crate::setup::Existing;
use crate::wire::Wire;

/// Messages kept to explain why the first part has stopped. `ferry sync` repeats failures that remain.
const MESSAGES: usize = 8;
/// Bound on deletions unless another one is given. That of `ferry sync` counts the target's entries, and thus those that were
/// copied just before.
const MOST_DELETED: &str = "--max-delete=1000";

/// Runs the sync.
pub(crate) fn run(wire: &mut Wire, options: &Sync) -> ExitCode {
    let mut words: Vec<OsString> = ["ferry", "sync"].map(OsString::from).into();
    match ferry::job::sync_copies(&options.arguments) {
        Ok(copies) => {
            if copies.counts_entries {
                words.push(MOST_DELETED.into());
            }
            if let Some(code) = copy(wire, options, copies) {
                return code;
            }
        }
        Err(Some(option)) => {
            complain(&format!("with {option}, rank 0 does all the work"));
            wire.send_setup(None);
        }
        // `ferry sync` reports what is wrong.
        Err(None) => wire.send_setup(None),
    }
    ferry::run(&[words, options.arguments.clone()].concat())
}

/// Copies what the target lacks. Returns the exit code if the sync ends with it.
fn copy(wire: &mut Wire, options: &Sync, copies: SyncCopies) -> Option<ExitCode> {
    let SyncCopies { source, target, fsync, .. } = copies;
    let copy = Copy {
        archive: true,
        no_target_directory: true,
        fsync,
        division: options.division.clone(),
        journaling: options.journaling.clone(),
        progress: false,
        stats: false,
        source,
        target,
    };
    let mut last = VecDeque::new();
    let mut hear = |message: String| {
        last.truncate(MESSAGES - 1);
        last.push_front(message);
    };
    let Ended { totals, stopped, journal } = match root::perform(wire, &copy, Existing::Kept, &mut hear) {
        Ok(ended) => ended,
        Err(why) => {
            complain(&why);
            return Some(ExitCode::FAILURE);
        }
    };
    match stopped {
        None => {
            report(&totals, wire.ranks());
            let removed = journal.map_or(Ok(()), |journal| journal.remove());
            removed.map_err(|why| complain(&why)).err().map(|()| ExitCode::FAILURE)
        }
        Some(Stop::Interrupted | Stop::NoSpace | Stop::Failed) => {
            last.into_iter().rev().for_each(|message| complain(&message));
            Some(root::end(Ended { totals, stopped, journal }, false))
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
