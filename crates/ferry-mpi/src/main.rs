//! `ferry-mpi`: copies, compares and syncs trees by the processes of an MPI job.
//!
//! Rank 0 grants leases and keeps the journal of a copy (`job.rs`). Every rank performs them: by the copier of `ferry-copy`
//! (`perform.rs`), or by the comparison of `ferry-tree` (`compare.rs`). `ferry-cluster` decides which rank gets what, and what a kill
//! costs.
//!
//! The main thread of each process calls MPI and nothing else; a second thread performs leases. Rank 0 has one, too.

mod compare;
mod failures;
mod job;
mod journal;
mod note;
mod options;
mod perform;
mod performer;
mod place;
mod recording;
mod root;
mod rules;
mod setup;
mod stats;
mod sync;
mod talk;
mod unjoined;
mod verify;
mod wire;
mod wording;

use std::process::ExitCode;

use options::Command;
use performer::{Performer, Said};
use talk::PAUSE;
use wire::Wire;

fn main() -> ExitCode {
    let variable = |name: &str| std::env::var(name).ok();
    if let Some(advice) = unjoined::advice(&mpi::environment::library_version().unwrap_or_default(), variable)
    {
        failures::complain(advice);
    }
    let Some((universe, _)) = mpi::initialize_with_threading(mpi::Threading::Funneled) else {
        eprintln!("ferry-mpi: cannot initialise MPI");
        return ExitCode::FAILURE;
    };
    let mut wire = Wire::new(universe.world());
    let options = match options::parse() {
        Ok(options) => options,
        Err(error) => {
            // All ranks have the same arguments.
            if wire.is_root() && error.print().is_err() {
                return ExitCode::FAILURE;
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    if let Some(why) = unjoined::refusal(wire.ranks(), variable) {
        failures::complain(&why);
        return ExitCode::FAILURE;
    }
    if !wire.is_root() {
        follow(&mut wire);
        wire.await_dismissal();
        // Rank 0 ends with the exit code of the job.
        return ExitCode::SUCCESS;
    }
    let code = match options.task() {
        Command::Cp(copy) => root::run(&mut wire, copy),
        Command::Verify(options) => verify::run(&mut wire, options),
        Command::Sync(options) => sync::run(&mut wire, options),
    };
    wire.dismiss();
    code
}

/// Runs a rank that follows rank 0.
fn follow(wire: &mut Wire) {
    // Rank 0 has reported why there is none.
    let Some(setup) = wire.receive_setup() else { return };
    if setup.is_recorded {
        wire.answer_clock();
    }
    let rank = Performer::start(setup, wire.workers());
    loop {
        let mut is_quiet = true;
        for (_, message) in wire.receive() {
            is_quiet = false;
            match serde_json::from_slice(&message) {
                Ok(message) => rank.pass(message),
                Err(error) => wire.abort(&format!("a message of rank 0: {error}")),
            }
        }
        match rank.next() {
            Said::Message(message) => {
                is_quiet = false;
                wire.send_json(0, &message);
            }
            Said::Nothing => {}
            Said::Ended => return,
        }
        if is_quiet {
            std::thread::sleep(PAUSE);
        }
    }
}
