//! Distribution of one copy among many processes, as pure state machines: messages in, messages out.
//!
//! The [`Coordinator`] holds the *frontier*: folders not listed yet, batches of files, ranges of large files, and
//! attributes to be set at the end. A rank takes *leases*, which are pieces of the frontier, and answers each with a
//! [`Report`]. A rank walks the folders of a lease depth first up to a budget ([`Walk`]), so that a folder whose whole
//! subtree fits into a lease never reaches the coordinator.
//!
//! The only transition that survives a kill is a report, together with the work it answers: a [`Record`]. The journal is
//! the list of records. Replaying it gives the frontier as it was, and what was leased then is in it again. So at most
//! the leases that were being performed are repeated: one for each rank.
//!
//! Nothing here knows MPI, files or clocks. `ferry-mpi` and the simulation (`examples/simulate.rs`) drive the same code.

mod coordinator;
mod journal;
mod lease;
mod message;
mod text;
mod walk;

pub use coordinator::{Coordinator, Load, OutOfStep};
pub use journal::{Damaged, Header, parse_header, parse_line, write_header, write_line};
pub use lease::{Leases, Next};
pub use message::{
    At, Grant, Key, LargeFile, Line, NewFiles, NewFolder, NewLarge, NewLinked, Outcome, Record, Report,
    Settings, State, Stop, ToCoordinator, ToRank, Totals, Version, Work,
};
pub use text::Text;
pub use walk::{Found, Linked, SHARED, Task, Walk, batch_size, names_for};
