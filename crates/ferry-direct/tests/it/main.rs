//! Tests of direct files, on every backend: POSIX, io_uring and the simulation under several seeds.

mod bytes;
mod disk;
mod killed;
mod model;
#[allow(dead_code, reason = "shared with the tests of ferry-io, which need more of it")]
#[path = "../../../ferry-io/tests/it/place.rs"]
mod place;
