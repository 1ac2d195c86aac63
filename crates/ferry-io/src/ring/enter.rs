//! Entering the kernel: one call that submits, waits and takes; and what becomes of each completion.

use std::time::Duration;

use io_uring::types::{Fd as RingFd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, cqueue, opcode};
use rustix::io::Errno;

use crate::error::Operation;
use crate::event::{self, Event, Met, Why};
use crate::options::RingMode;
use crate::ring::flight::{Flight, Step, Token};
use crate::ring::request;
use crate::ring::{LEAST_BATCH, Ring};
use crate::slots::{Completion, Key};
use crate::stats::{Counters, add};
use crate::sys;

/// How often a request is tried again on EINTR or EAGAIN before the pool gets it.
const MOST_RETRIES: u8 = 2;

/// How completions are met, and why requests are submitted: for a recording.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    /// Why what is submitted now is.
    why: Option<Why>,
    /// Completions that were there before the kernel was entered.
    found: usize,
    slept: bool,
    /// When the kernel was entered last.
    entered: u64,
}

impl Meeting {
    pub(super) fn slept(&self) -> bool {
        self.slept
    }

    /// How the completion at this place in the queue was met.
    fn of(&self, place: usize) -> Met {
        match self.slept {
            _ if place < self.found => Met::Peek,
            true => Met::Slept,
            false => Met::AtOnce,
        }
    }
}

/// One call, while it is recorded.
struct Watch {
    began: u64,
    found: usize,
    /// Voluntary context switches of this thread, where it is to wait.
    switches: Option<i64>,
}

impl Ring {
    /// Submits what is queued and takes what has completed. With `wait`, sleeps until something completes or the
    /// inbox is notified, at most so long.
    pub(crate) fn enter(
        &mut self,
        wait: Option<Option<Duration>>,
        counters: &Counters,
    ) -> Vec<(Key, Completion)> {
        self.enter_because(if wait.is_some() { Why::Idle } else { Why::Forced }, wait, counters)
    }

    /// The same for another reason.
    pub(crate) fn enter_because(
        &mut self,
        why: Why,
        wait: Option<Option<Duration>>,
        counters: &Counters,
    ) -> Vec<(Key, Completion)> {
        self.meeting.why = Some(why);
        if event::is_on() {
            self.meeting.found = self.io.completion().len();
            self.meeting.slept = false;
        }
        let mut is_queued = self.queue_cancels(counters);
        if !is_queued {
            // Submitting makes room.
            self.call(None, counters);
            is_queued = self.queue_cancels(counters);
        }
        if wait.is_some() && !self.is_inbox_armed && self.mode != RingMode::IoPoll {
            if self.room() == 0 {
                self.call(None, counters);
            }
            self.is_inbox_armed = self.arm_inbox();
            add(&counters.ring_upkeep, u64::from(self.is_inbox_armed));
        }
        // What is still to be cancelled may never complete by itself: no sleep before the kernel knows of it.
        let wait = wait.filter(|_| is_queued && self.io.completion().is_empty());
        self.call(wait, counters);
        self.take()
    }

    /// Submits what is queued, though more will come, if it is as much as the kernel has already: a batch begins small
    /// and doubles, so that a device does not wait until all of it is prepared, and a thousand requests are still ten
    /// submissions. What completes meanwhile is left where it is, and counts as what the kernel has.
    pub(crate) fn start_batch(&mut self, counters: &Counters) {
        if self.fresh >= LEAST_BATCH.max(self.owed - self.fresh) {
            self.meeting.why = Some(Why::Forced);
            self.call(None, counters);
        }
    }

    /// Queues as many cancellations as may be under way at a time; whether there was room for them.
    fn queue_cancels(&mut self, counters: &Counters) -> bool {
        // Their answers have what requests leave of the completion queue, less one for the inbox.
        let most = self.io.params().cq_entries() as usize - self.most_owed - 1;
        while self.cancels_owed < most
            && let Some(&user_data) = self.cancels.last()
        {
            let cancel = opcode::AsyncCancel::new(user_data).build();
            if !self.queue(&[cancel.user_data(Token::Cancel.to_user_data())]) {
                return false;
            }
            self.cancels.pop();
            self.cancels_owed += 1;
            add(&counters.ring_upkeep, 1);
        }
        true
    }

    fn arm_inbox(&mut self) -> bool {
        let Ok(event) = self.inbox.event() else { return false };
        let readable = u32::from(libc::POLLIN.cast_unsigned());
        let poll = opcode::PollAdd::new(RingFd(event.as_raw_fd()), readable).multi(true).build();
        self.queue(&[poll.user_data(Token::Inbox.to_user_data())])
    }

    /// One io_uring_enter(2), unless there is no reason for it.
    pub(super) fn call(&mut self, wait: Option<Option<Duration>>, counters: &Counters) {
        self.meeting.entered = 0;
        let Some(mut flags) = self.reason_to_enter(wait.is_some()) else {
            return self.count_submission(counters);
        };
        let limit = wait.flatten().map(Timespec::from);
        let mut arguments = SubmitArgs::new();
        if let Some(limit) = &limit {
            arguments = arguments.timespec(limit);
            flags |= EnterFlags::EXT_ARG;
        }
        sys::count_call();
        add(&counters.ring_enters, 1);
        let watch = event::is_on().then(|| self.watch(wait.is_some()));
        let answer = self.enter_kernel(wait.is_some(), flags, limit.is_some().then_some(&arguments));
        if let Some(watch) = watch {
            self.tell_of_call(&watch, answer);
        }
        self.entered(answer, counters);
    }

    /// What becomes of the kernel's answer. With an error it has submitted nothing.
    pub(super) fn entered(&mut self, answer: Result<usize, Errno>, counters: &Counters) {
        match answer {
            Ok(_) => self.count_submission(counters),
            // Its time was up, or a signal came.
            Err(Errno::TIME | Errno::INTR) => {}
            // Completions must be taken before more can be submitted, or the kernel has no memory right now.
            Err(Errno::BUSY | Errno::AGAIN | Errno::NOMEM) => std::thread::yield_now(),
            // Going on would free memory that the kernel may still write to.
            Err(errno) => panic!("io_uring_enter: {errno}"),
        }
    }

    /// The flags to enter the kernel with, or `None` if it needs not be entered.
    fn reason_to_enter(&mut self, waits: bool) -> Option<EnterFlags> {
        // GETEVENTS always: in DEFER mode nothing progresses without it.
        let flags = EnterFlags::GETEVENTS;
        let submissions = self.io.submission();
        let has_work = waits || submissions.taskrun() || submissions.cq_overflow();
        if self.mode != RingMode::SqPoll {
            let is_polled = self.mode == RingMode::IoPoll && self.owed > 0;
            return (has_work || is_polled || !submissions.is_empty()).then_some(flags);
        }
        if submissions.need_wakeup() {
            Some(flags | EnterFlags::SQ_WAKEUP)
        } else if submissions.is_full() {
            Some(flags | EnterFlags::SQ_WAIT)
        } else {
            has_work.then_some(flags)
        }
    }

    fn enter_kernel(
        &mut self,
        waits: bool,
        flags: EnterFlags,
        arguments: Option<&SubmitArgs<'_, '_>>,
    ) -> Result<usize, Errno> {
        let queued = u32::try_from(self.io.submission().len()).unwrap_or(u32::MAX);
        // SAFETY: the arguments have the layout that EXT_ARG, set exactly if they are there, announces.
        let entered = unsafe { self.io.submitter().enter(queued, u32::from(waits), flags.bits(), arguments) };
        entered.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// Before a call that is recorded.
    fn watch(&mut self, waits: bool) -> Watch {
        let switches = waits.then(sys::voluntary_switches);
        let found = self.io.completion().len();
        let began = event::clock();
        self.meeting.entered = began;
        Watch { began, found, switches }
    }

    /// After it.
    fn tell_of_call(&mut self, watch: &Watch, answer: Result<usize, Errno>) {
        let took = event::clock().saturating_sub(watch.began);
        let slept = watch.switches.is_some_and(|before| before != sys::voluntary_switches());
        self.meeting.slept |= slept;
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let entered = Event::Entered {
            took,
            submitted: count(answer.unwrap_or(0)),
            waits: watch.switches.is_some(),
            slept,
            found: count(watch.found),
            taken: count(self.io.completion().len()),
        };
        event::record_at(watch.began, &entered);
    }

    /// Records what is submitted: when the kernel was entered for it, or now, where its own thread takes it.
    fn tell_of_submission(&mut self) {
        let entered = std::mem::take(&mut self.meeting.entered);
        let at = if entered == 0 { event::clock() } else { entered };
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let why = self.meeting.why.unwrap_or(Why::Forced);
        let (requests, in_flight) = (count(self.fresh), count(self.owed));
        event::record_at(at, &Event::Submitted { requests, why, in_flight });
    }

    fn count_submission(&mut self, counters: &Counters) {
        if self.fresh == 0 {
            return;
        }
        if event::is_on() {
            self.tell_of_submission();
        }
        add(&counters.submissions, 1);
        add(&counters.submitted, self.fresh as u64);
        self.fresh = 0;
    }

    /// Takes every completion that is there.
    fn take(&mut self) -> Vec<(Key, Completion)> {
        let mut done = Vec::new();
        let mut taken = std::mem::take(&mut self.taken);
        taken.extend(self.io.completion());
        for (place, entry) in taken.drain(..).enumerate() {
            match Token::from_user_data(entry.user_data()) {
                Some(Token::Request(key, step)) => {
                    let completed = self.complete(key, step, entry.result());
                    if completed.is_some() && event::is_on() {
                        event::record(&Event::Met { key: key.into(), how: self.meeting.of(place) });
                    }
                    done.extend(completed);
                }
                // Without MORE the poll has ended.
                Some(Token::Inbox) => self.is_inbox_armed = cqueue::more(entry.flags()),
                Some(Token::Cancel) => self.cancels_owed -= 1,
                None => debug_assert!(false, "a completion of nothing"),
            }
        }
        self.taken = taken;
        done
    }

    /// Takes one completion of a request; gives its result if that is all.
    pub(super) fn complete(&mut self, key: Key, step: Step, result: i32) -> Option<(Key, Completion)> {
        self.owed -= 1;
        let flight = self.flights.get_mut(key)?;
        let answer = match &mut flight.chain {
            Some(chain) => chain.take(step, result)?,
            None => request::answer(result),
        };
        let flight = self.flights.remove(key)?;
        match answer {
            Err(Errno::INTR | Errno::AGAIN) if !flight.cancelled => {
                self.again(key, flight);
                return None;
            }
            // A file without polled I/O: a plain call reads or writes it.
            Err(Errno::OPNOTSUPP) if matches!(flight.op.operation(), Operation::Read | Operation::Write) => {
                self.hand_over(key, flight);
                return None;
            }
            Ok(_) | Err(_) => {}
        }
        if let Some(chain) = &flight.chain {
            self.chains.give_back(&self.io, chain);
        }
        if let Some(missed_at) = flight.missed_at {
            self.inbox.fruitless.observe(missed_at.elapsed());
        }
        let Flight { mut op, statx, .. } = flight;
        let outcome = answer.and_then(|answer| request::outcome(&mut op, statx, answer));
        Some((key, (op, outcome)))
    }

    /// Tries a request again, some times; then the pool does.
    fn again(&mut self, key: Key, mut flight: Flight) {
        flight.retries += 1;
        if flight.chain.is_some() || flight.retries > MOST_RETRIES || self.room() == 0 {
            self.hand_over(key, flight);
        } else {
            self.submit(key, flight);
        }
    }
}
