//! Whole jobs under `mpirun`, compared with the single program's copies.
//!
//! `FERRY_PROGRAM` names the program `ferry`; without it GNU cp makes the copies to compare with. `FERRY_MPI_KILLS` is the
//! number of kills, 20 by default. All jobs take turns: each is several processes.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod copies;
mod job;
mod kills;
mod limits;
mod machines;
mod options;
mod relist;
mod slurm;
mod sync;
mod trace;
mod verify;
