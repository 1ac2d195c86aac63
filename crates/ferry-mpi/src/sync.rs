//! A sync: all ranks copy what the target lacks, then rank 0 runs `ferry sync`, which does all the rest.
//!
//! The first part is a copy that compares each entry with its target. So the result, the messages and the exit code are
//! those of `ferry sync`, which finds most of its work done.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::process::ExitCode;

use ferry::job::SyncCopies;
use ferry_cluster::Stop;

use crate::failures::complain;
use crate::options::{Copy, Sync};
use crate::root;
use crate::setup::Existing;
use crate::wire::Wire;

/// Messages kept to explain why the first part has stopped. `ferry sync` repeats failures that remain.
const MESSAGES: usize = 8;

/// Runs the sync.
pub(crate) fn run(wire: &mut Wire, options: &Sync) -> ExitCode {
    match ferry::job::sync_copies(&options.arguments) {
        Ok(copies) if copies.source.is_dir() => {
            if let Some(code) = copy(wire, options, copies) {
                return code;
            }
        }
        Err(Some(option)) => {
            complain(&format!("with {option}, rank 0 does all the work"));
            wire.send_setup(None);
        }
        // It says what is wrong.
        Ok(_) | Err(None) => wire.send_setup(None),
    }
    let words: Vec<OsString> = ["ferry", "sync"].map(OsString::from).into();
    ferry::run(&[words, options.arguments.clone()].concat())
}

/// Copies what the target lacks. Returns the exit code if the sync ends with it.
fn copy(wire: &mut Wire, options: &Sync, copies: SyncCopies) -> Option<ExitCode> {
    let SyncCopies { source, target, replaces, fsync } = copies;
    let existing = if replaces { Existing::Compared } else { Existing::Kept };
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
    let ended = match root::perform(wire, &copy, existing, &mut hear) {
        Ok(ended) => ended,
        Err(why) => {
            complain(&why);
            return Some(ExitCode::FAILURE);
        }
    };
    match ended.stopped {
        None => {
            let removed = ended.journal.map_or(Ok(()), |journal| journal.remove());
            removed.map_err(|why| complain(&why)).err().map(|()| ExitCode::FAILURE)
        }
        Some(Stop::Interrupted | Stop::NoSpace | Stop::Failed) => {
            last.into_iter().rev().for_each(|message| complain(&message));
            Some(root::end(ended, false))
        }
    }
}
