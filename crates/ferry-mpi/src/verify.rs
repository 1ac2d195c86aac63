//! A comparison on rank 0: begins it, and reports what all ranks have found as `ferry verify` does.
//!
//! Nothing has to survive it: after an interruption it begins anew.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ferry_cluster::{Coordinator, Settings, Stop};
use ferry_tree::compare::{self, Difference, Joined, Observer, Options, Pieces, Progress, Summary};

use crate::compare::Heard;
use crate::failures::complain;
use crate::job::{Ended, Job};
use crate::options::Verify;
use crate::setup::{Setup, Task};
use crate::wire::Wire;

/// Runs the comparison, and reports its result.
pub(crate) fn run(wire: &mut Wire, verify: &Verify) -> ExitCode {
    let mut is_begun = false;
    let code = ferry::job::verify_by(&verify.arguments, |roots, options, progress, observer| {
        let told = Told { progress, observer, joined: RefCell::default() };
        if begin(roots, options, &told)? {
            is_begun = true;
            told.compare(wire, verify, roots, options)
        } else {
            compare::trees(roots.0, roots.1, options, progress, observer)
                .map_err(|error| ferry::job::unread(&error))
        }
    });
    if !is_begun {
        // The others end.
        wire.send_setup(None);
    }
    code
}

/// Compares the attributes of both top folders. Returns false if they are no folders: then rank 0 compares them alone.
fn begin(roots: (&Path, &Path), options: &Options, told: &Told<'_>) -> Result<bool, String> {
    let pieces = Pieces::open(roots, u64::MAX, options, told.progress, told.observer);
    let pieces = pieces.map_err(|error| ferry::job::unread(&error))?;
    let are_folders = pieces.are_folders();
    if are_folders {
        pieces.roots();
    }
    Ok(are_folders)
}

/// Returns a path that other processes can use. An empty one stays: it has no meaning, which they report.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// What is told to rank 0.
struct Told<'a> {
    progress: &'a Progress,
    observer: &'a Observer<'a>,
    joined: RefCell<Joined>,
}

impl Told<'_> {
    fn compare(
        self,
        wire: &mut Wire,
        verify: &Verify,
        roots: (&Path, &Path),
        options: &Options,
    ) -> Result<Summary, String> {
        let mut settings = Settings { lease_entries: verify.lease, ..Settings::new(wire.ranks()) };
        if let Some(range) = verify.range {
            settings = settings.in_ranges(range);
        }
        let mut coordinator = Coordinator::new(settings, wire.ranks());
        coordinator.begin();
        let (source, target) = (absolute(roots.0), absolute(roots.1));
        let setup = Setup::new(&source, &target, Task::Compare(options.clone()), settings);
        let mut hear = |message: String| self.hear(&message);
        let job = Job::start(wire, setup, coordinator, None, &mut hear);
        let stop = |_: &Coordinator| self.progress.is_stopped().then_some(Stop::Interrupted);
        let Ended { stopped, .. } = job.run(stop);
        match stopped {
            None => self
                .joined
                .into_inner()
                .finish()
                .into_iter()
                .for_each(|found| tell(self.progress, self.observer, found)),
            // Nothing can be said about what not all pieces have shown.
            Some(Stop::Interrupted) => self.progress.stop(),
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
            // A rank that can't begin says why.
            Err(_) => complain(message),
        }
    }
}

/// Reports and counts a difference.
fn tell(progress: &Progress, observer: &Observer<'_>, difference: Difference) {
    progress.add(&Summary { differences: 1, ..Summary::default() });
    observer(difference);
}
