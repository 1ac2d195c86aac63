//! A rank's side of the conversation with the coordinator, which its main thread carries.

use std::cell::{RefCell, RefMut};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use ferry_cluster::{Leases, Next, Report, Stop, ToCoordinator, ToRank};

use crate::note::{Note, Sent};
use crate::recording::Recorder;

/// Time between two looks at messages, while there are none.
pub(crate) const PAUSE: Duration = Duration::from_micros(200);

/// The leases of a rank, and its messages.
pub(crate) struct Talk<'a> {
    leases: RefCell<Leases>,
    inbox: &'a Receiver<ToRank>,
    outbox: &'a Sender<Sent>,
    recorder: RefCell<Recorder>,
}

impl<'a> Talk<'a> {
    pub(crate) fn new(inbox: &'a Receiver<ToRank>, outbox: &'a Sender<Sent>, is_recorded: bool) -> Self {
        let recorder = RefCell::new(Recorder::new(is_recorded));
        Self { leases: RefCell::default(), inbox, outbox, recorder }
    }

    /// Takes the messages that have arrived, and sends what they call for.
    pub(crate) fn receive(&self) {
        let mut leases = self.leases.borrow_mut();
        loop {
            match self.inbox.try_recv() {
                Ok(message) => {
                    self.recorder.borrow_mut().received(&message);
                    for answer in leases.take(message) {
                        self.send(answer);
                    }
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    leases.take(ToRank::Stop(Stop::Failed));
                    break;
                }
            }
        }
        for ask in leases.asks() {
            self.send(ask);
        }
    }

    fn send(&self, message: ToCoordinator) {
        self.recorder.borrow_mut().sent(&message);
        // The main thread has ended: the next look at the inbox shows that, too.
        self.outbox.send(message.into()).ok();
    }

    /// Returns what a rank that performs no lease does next.
    pub(crate) fn next_step(&self) -> Next {
        self.leases.borrow_mut().next_step()
    }

    /// Returns the number of idle ranks, once for each message about them.
    pub(crate) fn take_idle(&self) -> u32 {
        self.leases.borrow_mut().take_idle()
    }

    /// Returns the reason to end at once, if there is one.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.leases.borrow().stopped()
    }

    /// Sends a report on the lease being performed.
    pub(crate) fn report(&self, report: Report) {
        self.leases.borrow_mut().report(report.lease, report.ended);
        self.send(ToCoordinator::Report(Box::new(report)));
    }

    /// Returns the recorder of this rank's spans.
    pub(crate) fn recorder(&self) -> RefMut<'_, Recorder> {
        self.recorder.borrow_mut()
    }

    /// Sends notes, if there are any, with the spans since the last ones.
    pub(crate) fn note(&self, note: Note) {
        let note = Note { spans: self.recorder().take(), ..note };
        if !note.is_empty() {
            self.outbox.send(Sent::Note(Box::new(note))).ok();
        }
    }

    /// Returns true while the last report is not answered.
    pub(crate) fn is_awaited(&self) -> bool {
        self.leases.borrow().is_awaited()
    }
}
