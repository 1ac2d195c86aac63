//! Direct-style concurrent I/O for Linux: structured fibers whose system calls are batched and routed for them.
//!
//! Code reads as if it were sequential. Each operation of [`Dir`] and [`File`] goes where it is cheapest, decided by
//! the runtime at that moment: a plain system call where the kernel answers from memory, a ring or a pool of threads
//! where something must be waited for, and the kernel itself where it can move the data. What all fibers have queued
//! is submitted at once when none of them can run.
//!
//! ```
//! use ferry_io::{Name, OpenHow, Options, for_each, run};
//!
//! let (sizes, stats) = run(&Options::default(), async |io| {
//!     let folder = io.open_dir("/proc/self".as_ref())?;
//!     let sizes = std::cell::RefCell::new(Vec::new());
//!     for_each(8, ["stat", "status", "maps"], async |name| {
//!         let file = folder.open(&Name::new(name.as_bytes()).expect("a component"), OpenHow::read()).await?;
//!         let (block, count) = file.read_at(io.block().await?, 0).await;
//!         sizes.borrow_mut().push((name, count?));
//!         drop(block);
//!         Ok::<(), ferry_io::Error>(())
//!     })
//!     .await?;
//!     Ok::<_, ferry_io::Error>(sizes.into_inner())
//! })?;
//! assert_eq!(sizes?.len(), 3);
//! assert!(stats.system_calls > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Fibers live in scopes ([`scope`], [`for_each`], [`both`], [`first`]) and none outlives its own. An operation owns
//! its memory and its descriptors until its completion is taken, so dropping a future is always sound.
//!
//! Linux only. io_uring is used where it is there and allowed; nothing depends on it.

#[cfg(not(target_os = "linux"))]
compile_error!("ferry-io needs Linux: it is built on openat2, copy_file_range, getdents64 and io_uring");

mod buffers;
mod cancel;
pub mod child;
mod choose;
mod concurrent;
mod confine;
pub mod counting;
mod descriptor;
mod dir;
mod direct;
mod entry;
mod error;
pub mod event;
mod examine;
mod facts;
mod fibers;
mod file;
pub mod flow;
#[cfg(fuzzing)]
pub mod fuzzing;
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
mod perf;
mod pool;
mod preload;
pub mod priority;
pub mod probe;
mod ring;
mod route;
mod run;
pub mod sampling;
mod scope;
mod shared;
mod signals;
pub mod sim;
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
pub use jobs::Jobs;
pub use loaded::{Content, Loaded};
pub use many::{Rest, Stored, TransferMany, TransferPlan, Transferred};
pub use name::Name;
pub use open_how::OpenHow;
pub use options::{Backend, Options, RingFlag, RingMode, RouteChoice};
pub use paths::Paths;
pub use preload::Preload;
pub use ring::{Sighting, Unseen, sightings};
pub use route::{Reason, Route};
pub use run::{Io, can_name_open_files, does_syncfs_report, is_superuser, run, user};
pub use rustix::io::Errno;
pub use scope::{Scope, both, first, for_each, give_way, scope};
pub use signals::is_ignored;
pub use stats::{Decision, Stats};
pub use sync::{Permit, Queue, Semaphore};
pub use time::{now, sleep, timeout};
pub use worker::count_unwritten;
