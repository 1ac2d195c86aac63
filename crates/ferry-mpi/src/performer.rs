//! The second thread of each process, which copies or compares, and its messages to and from the first.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use ferry_cluster::{Stop, ToCoordinator, ToRank};

use crate::note::Sent;
use crate::setup::{Setup, Task, host};
use crate::{compare, perform};

/// The thread that performs this process's leases.
pub(crate) struct Performer {
    to: mpsc::Sender<ToRank>,
    from: mpsc::Receiver<Sent>,
}

/// Next message of a performer.
pub(crate) enum Said {
    Message(Sent),
    Nothing,
    /// It has ended, and will say nothing more.
    Ended,
}

impl Performer {
    /// Starts it. A copy has this number of workers.
    pub(crate) fn start(setup: Setup, workers: NonZeroUsize) -> Self {
        let (to, inbox) = mpsc::channel();
        let (outbox, from) = mpsc::channel();
        std::thread::spawn(move || {
            let run = AssertUnwindSafe(|| match &setup.task {
                Task::Copy { .. } => perform::run(&setup, workers, &inbox, &outbox),
                Task::Compare(options) => compare::run(&setup, options, &inbox, &outbox),
            });
            let why = match catch_unwind(run) {
                Ok(Ok(())) => return,
                Ok(Err(why)) => why,
                Err(_) => "a rank panicked".to_owned(),
            };
            // Nobody listens any more if the job has ended.
            let why = format!("on {}: {why}", host());
            outbox.send(ToCoordinator::Stopped(Stop::Failed, vec![why]).into()).ok();
        });
        Self { to, from }
    }

    pub(crate) fn pass(&self, message: ToRank) {
        // One that has ended has said so.
        self.to.send(message).ok();
    }

    pub(crate) fn next(&self) -> Said {
        match self.from.try_recv() {
            Ok(message) => Said::Message(message),
            Err(mpsc::TryRecvError::Empty) => Said::Nothing,
            Err(mpsc::TryRecvError::Disconnected) => Said::Ended,
        }
    }
}
