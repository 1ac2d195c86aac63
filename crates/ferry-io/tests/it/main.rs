//! The runtime's tests, each on every backend: POSIX, io_uring, and the simulation with several seeds.

mod blocks;
mod cancelling;
mod children;
mod examples;
mod fifos;
mod files;
mod filtered;
mod flow;
mod folders;
mod jobs;
mod pieces;
mod place;
mod preload;
mod scopes;
mod signals;
mod simulation;
mod sync;
mod time;
mod transfer;
mod vectored;
