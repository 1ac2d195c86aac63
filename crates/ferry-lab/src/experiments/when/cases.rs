//! Parts that all cases share: names, the source tree, and a cell for each route.

use std::path::PathBuf;

use ferry_tree::workload::Workload;

use crate::cache::State;
use crate::cache::sample::Sample;
use crate::command::Stranger;
use crate::error::Failure;
use crate::experiments::{copies, tree};
use crate::needs;
use crate::record::Cell;
use crate::session::Session;

pub(super) const ROUTES: [&str; 4] = ["inline", "ring", "pool", "auto"];
pub(super) const CASES: &[&str] =
    &["buffered", "two-devices", "small-memory", "durable", LATENCY, BESIDE_READ, BESIDE_SYNC];
/// A reader beside a copy by another process.
pub(super) const LATENCY: &str = "latency";
/// A fiber that ticks beside a long read of another fiber in its worker.
pub(super) const BESIDE_READ: &str = "beside-read";
/// A fiber that ticks beside an fsync(2) of another fiber in its worker.
pub(super) const BESIDE_SYNC: &str = "beside-sync";
/// The route of a reader or a fiber with nothing beside it.
pub(super) const ALONE: &str = "alone";

/// A tree that is made when the first case needs it.
pub(super) struct Source {
    pub(super) folder: PathBuf,
    pub(super) workload: Workload,
    pub(super) is_made: bool,
}

impl Source {
    pub(super) fn ready(&mut self, session: &Session<'_>) -> Result<Sample, Failure> {
        if !self.is_made {
            session.step("making the files");
            tree::make(&self.workload, &self.folder, tree::threads(), session.stop())?;
            self.is_made = true;
        }
        Sample::of(&self.folder, session.seed())
    }

    pub(super) fn remove(self) -> Result<(), Failure> {
        if self.is_made {
            ferry_tree::remove::remove(&self.folder)?;
        }
        Ok(())
    }
}

/// The cells of a case that can be measured, with the options of their routes. The others are left out.
pub(super) fn routes(session: &mut Session<'_>, case: &str, cache: State) -> Vec<(Cell, String)> {
    let cell = |route: &str| Cell::new(&[("case", case.into()), ("route", route.into())], cache);
    let base = cell(ROUTES[0]);
    let ring = needs::ring();
    let mut found = Vec::new();
    for route in ROUTES {
        let cell = if route == ROUTES[0] { base.clone() } else { cell(route).against(&base) };
        match &ring {
            Err(why) if route == "ring" => session.leave_out(cell, why),
            _ => found.push((cell, format!("--route={route}"))),
        }
    }
    found
}

pub(super) fn leave_out_all(session: &mut Session<'_>, cells: impl IntoIterator<Item = Cell>, why: &str) {
    cells.into_iter().for_each(|cell| session.leave_out(cell, why));
}

/// `ferry cp` with these options.
pub(super) fn ferry_cp(session: &Session<'_>, options: &[&str]) -> Stranger {
    let words = [&["cp", "-r", copies::NEVER_SHARED], options, &["{source}", "{target}"]].concat();
    Stranger::new(session.ferry(), &words)
}
