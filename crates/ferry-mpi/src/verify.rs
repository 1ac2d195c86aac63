//! A comparison on rank 0: begins it, and reports what all ranks have found as `ferry verify` does.
//!
//! Nothing has to survive it: after an interruption it begins anew.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::process::ExitCode;

use ferry_cluster::{Coordinator, Stop};
use ferry_tree::compare::{self, Difference, Joined, Observer, Options, Pieces, Progress, Summary};

use crate::compare::Heard;
use crate::failures::complain;
use crate::job::{Ended, Job};
use crate::note::Notes;
use crate::options::Verify;
use crate::setup::{Setup, Task};
use crate::wire::Wire;

/// Exit code after a signal to any rank.
const INTERRUPTED: u8 = 130;

/// Runs the comparison, and reports its result.
pub(crate) fn run(wire: &mut Wire, verify: &Verify) -> ExitCode {
    let (mut is_told, is_interrupted) = (false, Cell::new(false));
    let code = ferry::job::verify_by(&verify.arguments, |roots, options, progress, observer| {
        is_told = true;
        let told = Told {
            progress,
            observer,
            joined: RefCell::default(),
            is_damaged: Cell::new(false),
            is_interrupted: &is_interrupted,
        };
        match told.begin(roots, options) {
            Ok(true) => told.compare(wire, verify, roots, options),
            begun => {
                // The others end.
                wire.send_setup(None);
                begun?;
                let compared = compare::trees(roots.0, roots.1, options, progress, observer);
                is_interrupted.set(progress.is_stopped());
                compared.map_err(|error| ferry::job::unread(&error))
            }
        }
    });
    if !is_told {
        wire.send_setup(None);
    }
    if is_interrupted.get() { ExitCode::from(INTERRUPTED) } else { code }
}

/// Messages of all ranks, as rank 0 has them.
struct Told<'a> {
    progress: &'a Progress,
    observer: &'a Observer<'a>,
    joined: RefCell<Joined>,
    /// Set if a message was not understood.
    is_damaged: Cell<bool>,
    is_interrupted: &'a Cell<bool>,
}

impl Told<'_> {
    /// Compares the attributes of both top folders. Returns false if they are no folders, or can't be opened: then rank 0
    /// compares them alone.
    fn begin(&self, roots: (&Path, &Path), options: &Options) -> Result<bool, String> {
        let pieces = Pieces::open(roots, u64::MAX, options, self.progress, self.observer);
        let pieces = pieces.map_err(|error| ferry::job::unread(&error))?;
        let are_folders = pieces.check().is_ok();
        if are_folders {
            pieces.roots();
        }
        Ok(are_folders)
    }

    fn compare(
        self,
        wire: &mut Wire,
        verify: &Verify,
        roots: (&Path, &Path),
        options: &Options,
    ) -> Result<Summary, String> {
        let settings = verify.division.settings(wire.ranks());
        let here = std::env::current_dir().map_err(|error| format!("cannot find this directory: {error}"));
        let here = here.inspect_err(|_| wire.send_setup(None))?;
        let mut coordinator = Coordinator::new(settings, wire.ranks());
        coordinator.begin();
        // A dot or a slash at the end has a meaning, so the paths are not tidied.
        let (source, target) = (here.join(roots.0), here.join(roots.1));
        let setup = Setup::new(&source, &target, Task::Compare(options.clone()), settings);
        let mut hear = |message: String| self.hear(&message);
        let job = Job::start(wire, setup, coordinator, (None, Notes::default()), &mut hear);
        let stop = |_: &Coordinator| self.progress.is_stopped().then_some(Stop::Interrupted);
        let Ended { stopped, .. } = job.run(stop);
        let mut joined = self.joined.into_inner();
        let ranges = joined.take_ranges();
        let tell = |found| tell(self.progress, self.observer, found);
        ranges.into_iter().for_each(tell);
        match stopped {
            _ if self.is_damaged.get() => return Err("not all was compared".to_owned()),
            None => {
                joined.finish_links().into_iter().for_each(tell);
                // A signal that came too late to stop anything is reported all the same.
                self.is_interrupted.set(self.progress.is_stopped());
            }
            // Not all names of linked files were found.
            Some(Stop::Interrupted) => {
                self.progress.stop();
                self.is_interrupted.set(true);
            }
            Some(Stop::NoSpace | Stop::Failed) => return Err("not all was compared".to_owned()),
        }
        Ok(self.progress.so_far())
    }

    fn hear(&self, message: &str) {
        match serde_json::from_str(message) {
            Ok(Heard::Counted(summary)) => self.progress.add(&summary),
            Ok(Heard::Difference(difference)) => tell(self.progress, self.observer, difference),
            Ok(Heard::InRange(difference)) => self.joined.borrow_mut().range(difference),
            Ok(Heard::Linked(name)) => self.joined.borrow_mut().linked(name),
            Err(_) => {
                // A rank that can't begin says why.
                complain(message);
                self.is_damaged.set(true);
            }
        }
    }
}

/// Reports and counts a difference.
fn tell(progress: &Progress, observer: &Observer<'_>, difference: Difference) {
    progress.add(&Summary { differences: 1, ..Summary::default() });
    observer(difference);
}
