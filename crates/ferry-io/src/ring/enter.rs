//! The call of io_uring_enter(2), which submits, waits and takes, and the handling of each completion.

use std::ops::Range;
use std::time::Duration;

use io_uring::types::{Fd as RingFd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, cqueue, opcode};
use rustix::io::Errno;

use crate::error::Operation;
use crate::event::{self, CompletionMet, Event, SubmitReason};
use crate::options::RingMode;
use crate::ring::flight::{Flight, Step, Token};
use crate::ring::request;
use crate::ring::{LEAST_BATCH, Ring};
use crate::slots::{Completion, Key};
use crate::stats::{Counters, add};
use crate::sys;

#[cfg(test)]
mod tests;

/// Number of repetitions on EINTR or EAGAIN before a request goes to the pool.
const MOST_RETRIES: u8 = 2;

/// State of completions and reasons of submissions, for a recording.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    /// Reason of the current submission.
    why: Option<SubmitReason>,
    /// Number of completions present before the first call.
    found: usize,
    /// Positions in the queue of the completions that arrived in calls in which the thread slept.
    slept: Option<Range<usize>>,
    /// Time of the last call.
    entered: u64,
}

impl Meeting {
    pub(super) fn slept(&self) -> bool {
        self.slept.is_some()
    }

    /// Notes a call with a sleep, before which `found` completions were present, and after it `taken`.
    fn sleep(&mut self, found: usize, taken: usize) {
        let start = self.slept.as_ref().map_or(found, |slept| slept.start);
        self.slept = Some(start..taken);
    }

    /// State of the completion at this position in the queue.
    fn of(&self, place: usize) -> CompletionMet {
        match &self.slept {
            _ if place < self.found => CompletionMet::Peek,
            Some(slept) if slept.contains(&place) => CompletionMet::Slept,
            Some(_) | None => CompletionMet::AtOnce,
        }
    }
}

/// A recorded call in progress.
struct Watch {
    began: u64,
    found: usize,
    /// Voluntary context switches of this thread before a call that may sleep.
    switches: Option<i64>,
}

impl Ring {
    /// Submits queued requests and takes completions. With `wait`, sleeps until a completion or a notification of the
    /// inbox, up to the given time.
    pub(crate) fn enter(
        &mut self,
        wait: Option<Option<Duration>>,
        counters: &Counters,
    ) -> Vec<(Key, Completion)> {
        self.enter_because(
            if wait.is_some() { SubmitReason::Idle } else { SubmitReason::Forced },
            wait,
            counters,
        )
    }

    /// As [`Self::enter`], with the reason for a recording.
    pub(crate) fn enter_because(
        &mut self,
        why: SubmitReason,
        wait: Option<Option<Duration>>,
        counters: &Counters,
    ) -> Vec<(Key, Completion)> {
        self.meeting.why = Some(why);
        if event::is_on() {
            self.meeting.found = self.io.completion().len();
            self.meeting.slept = None;
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
        // A request that is still to be cancelled may never complete by itself, so the kernel must know of every
        // cancellation before a sleep.
        let wait = wait.filter(|_| is_queued && self.io.completion().is_empty());
        self.call(wait, counters);
        self.take()
    }

    /// Submits queued requests early, once they are as many as the kernel has. A batch thus begins small and doubles: a
    /// device does not wait until all is prepared, and a thousand requests still take ten submissions. Completions are
    /// not taken, and count as requests that the kernel has.
    pub(crate) fn start_batch(&mut self, counters: &Counters) {
        if self.fresh >= LEAST_BATCH.max(self.owed - self.fresh) {
            self.meeting.why = Some(SubmitReason::Forced);
            self.call(None, counters);
        }
    }

    /// Queues pending cancellations up to their bound; returns true if all were queued.
    fn queue_cancels(&mut self, counters: &Counters) -> bool {
        // Cancellations share the completion queue with requests; one entry is kept for the inbox.
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

    /// Calls io_uring_enter(2) if there is a reason.
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

    /// Handles the kernel's answer. After an error, nothing was submitted.
    pub(super) fn entered(&mut self, answer: Result<usize, Errno>, counters: &Counters) {
        match answer {
            Ok(_) => self.count_submission(counters),
            // Timeout or signal.
            Err(Errno::TIME | Errno::INTR) => {}
            // Completions must be taken first, or the kernel lacks memory for the moment.
            Err(Errno::BUSY | Errno::AGAIN | Errno::NOMEM) => std::thread::yield_now(),
            // Continuing would free memory that the kernel may still write to.
            Err(errno) => panic!("io_uring_enter: {errno}"),
        }
    }

    /// Returns the flags for a call, or `None` if no call is needed.
    fn reason_to_enter(&mut self, waits: bool) -> Option<EnterFlags> {
        // Always GETEVENTS: in DEFER mode nothing progresses without it.
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

    /// Begins to record a call.
    fn watch(&mut self, waits: bool) -> Watch {
        let switches = waits.then(sys::voluntary_switches);
        let found = self.io.completion().len();
        let began = event::clock();
        self.meeting.entered = began;
        Watch { began, found, switches }
    }

    /// Records a call.
    fn tell_of_call(&mut self, watch: &Watch, answer: Result<usize, Errno>) {
        let took = event::clock().saturating_sub(watch.began);
        let slept = watch.switches.is_some_and(|before| before != sys::voluntary_switches());
        let taken = self.io.completion().len();
        if slept {
            self.meeting.sleep(watch.found, taken);
        }
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let entered = Event::Entered {
            took,
            submitted: count(answer.unwrap_or(0)),
            waits: watch.switches.is_some(),
            slept,
            found: count(watch.found),
            taken: count(taken),
        };
        event::record_at(watch.began, &entered);
    }

    /// Records a submission, at the time of the call, or now if the kernel's own thread takes it (SQPOLL).
    fn tell_of_submission(&mut self) {
        let entered = std::mem::take(&mut self.meeting.entered);
        let at = if entered == 0 { event::clock() } else { entered };
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let why = self.meeting.why.unwrap_or(SubmitReason::Forced);
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

    /// Takes every completion present.
    fn take(&mut self) -> Vec<(Key, Completion)> {
        let mut done = Vec::new();
        let mut taken = std::mem::take(&mut self.taken);
        taken.extend(self.io.completion());
        for (place, entry) in taken.drain(..).enumerate() {
            match Token::from_user_data(entry.user_data()) {
                Some(Token::Request(key, step)) => {
                    let completed = self.complete(key, step, entry.result());
                    if completed.is_some() && event::is_on() {
                        event::record(&Event::CompletionMet { key: key.into(), how: self.meeting.of(place) });
                    }
                    done.extend(completed);
                }
                // Without the flag MORE the poll has ended.
                Some(Token::Inbox) => self.is_inbox_armed = cqueue::more(entry.flags()),
                Some(Token::Cancel) => self.cancels_owed -= 1,
                None => debug_assert!(false, "a completion of nothing"),
            }
        }
        self.taken = taken;
        done
    }

    /// Takes one completion of a request; returns the result after the last.
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
            // The file lacks polled I/O or RWF_DONTCACHE: a plain call performs the transfer, or reports the lack.
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

    /// Tries a request again up to a bound, then hands it over to the pool.
    fn again(&mut self, key: Key, mut flight: Flight) {
        flight.retries += 1;
        if flight.chain.is_some() || flight.retries > MOST_RETRIES || self.room() == 0 {
            self.hand_over(key, flight);
        } else {
            self.submit(key, flight);
        }
    }
}
