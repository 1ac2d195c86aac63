//! `ferry-mpi`: copies a tree by the processes of an MPI job.
//!
//! Rank 0 holds the journal and grants leases (`root.rs`); every rank performs them (`perform.rs`) by the copier of
//! `ferry-copy`. Who gets what, and what a kill costs, is decided by `ferry-cluster`.
//!
//! The main thread of each process calls MPI and nothing else; a second thread runs the copier. Rank 0 has one, too.

mod failures;
mod journal;
mod options;
mod perform;
mod performer;
mod place;
mod root;
mod setup;
mod wire;

use std::process::ExitCode;

use options::Options;
use performer::{PAUSE, Performer, Said};
use wire::Wire;

fn main() -> ExitCode {
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
    if wire.is_root() { root::run(&mut wire, &options) } else { follow(&mut wire, &options) }
}

/// Runs a rank that follows rank 0.
fn follow(wire: &mut Wire, options: &Options) -> ExitCode {
    // Rank 0 has reported why there is none.
    let Some(setup) = wire.receive_setup() else { return ExitCode::FAILURE };
    let rank = Performer::start(setup, options);
    loop {
        let mut is_quiet = true;
        for (_, message) in wire.receive() {
            is_quiet = false;
            if let Ok(message) = serde_json::from_slice(&message) {
                rank.pass(message);
            }
        }
        match rank.next() {
            Said::Message(message) => {
                is_quiet = false;
                wire.send_json(0, &message);
            }
            Said::Nothing => {}
            Said::Ended => return ExitCode::SUCCESS,
        }
        if is_quiet {
            std::thread::sleep(PAUSE);
        }
    }
}
