#![cfg_attr(feature = "sim", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "sim"),
    doc = "Direct-style concurrent file I/O for Linux: structured fibers over io_uring, a thread pool and plain calls."
)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(feature = "uring", feature = "trace", feature = "sim")),
    allow(dead_code, unused_imports, reason = "for modules that are left out by their features")
)]

#[cfg(not(target_os = "linux"))]
compile_error!("ferry-io needs Linux: it is built on openat2, copy_file_range, getdents64 and io_uring");

// A module that a feature leaves out has a stand-in, `absent.rs` in its folder: types without values, and functions that do
// nothing. So no other file asks for the feature.

mod buffers;
mod cancel;
pub mod child;
mod choose;
mod concurrent;
mod confine;
#[cfg(feature = "trace")]
pub mod counting;
mod descriptor;
mod dir;
mod direct;
mod entry;
mod error;
#[cfg(feature = "trace")]
pub mod event;
#[cfg(not(feature = "trace"))]
#[path = "event/absent.rs"]
mod event;
mod examine;
mod facts;
mod fibers;
mod file;
pub mod flow;
#[cfg(fuzzing)]
pub mod fuzzing;
mod health;
mod inbox;
mod jobs;
mod line;
mod loaded;
mod many;
pub mod mapped;
mod name;
mod op;
mod open_how;
mod options;
mod paths;
#[cfg(feature = "trace")]
mod perf;
mod pool;
mod preload;
pub mod priority;
pub mod probe;
#[cfg(feature = "uring")]
mod ring;
#[cfg(not(feature = "uring"))]
#[path = "ring/absent.rs"]
mod ring;
mod route;
mod run;
#[cfg(feature = "trace")]
pub mod sampling;
mod scope;
mod session;
mod shared;
mod signals;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(not(feature = "sim"))]
#[path = "sim/absent.rs"]
mod sim;
mod slots;
mod spare;
mod stats;
mod sync;
mod sys;
mod task;
#[cfg(not(loom))]
mod thread;
mod time;
mod vectored;
mod worker;

pub use buffers::Block;
pub use cancel::{is_cancelled, protect};
pub use choose::{Tried, Way, Ways};
pub use confine::CONFINED;
pub use descriptor::{Dir, File};
pub use direct::{DirectUnit, WhyBuffered, map_blocks};
pub use entry::{AtOnce, DirectSupport, Entries, Entry, FileKind, NewMode, Stat, Time, Times, Xattr};
pub use error::{Cause, Error, Operation, Result, SetupError};
pub use event::{Tracing, name_fiber};
pub use facts::Facts;
pub use fibers::Fibers;
pub use health::Health;
pub use jobs::Jobs;
pub use loaded::{Content, Loaded};
pub use many::{Rest, Stored, TransferMany, TransferPlan, Transferred};
pub use name::Name;
pub use open_how::OpenHow;
pub use options::{Backend, Options, RingFlag, RingMode, RouteChoice, StopHandle};
pub use paths::Paths;
pub use preload::Preload;
#[cfg(feature = "uring")]
pub use ring::{Sighting, Unseen, sightings};
pub use route::{Reason, Route};
pub use run::{Io, can_name_open_files, does_syncfs_report, is_superuser, run, user};
pub use rustix::io::Errno;
pub use scope::{Scope, both, first, for_each, give_way, scope};
pub use session::Session;
pub use signals::is_ignored;
pub use stats::{Decision, Stats};
pub use sync::{Permit, Queue, Semaphore};
pub use time::{now, sleep, timeout};
pub use worker::count_unwritten;
