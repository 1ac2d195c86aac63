//! What the kernel's events mean: requests from submission to completion, why task work ran, who slept and who woke whom;
//! merged into a [`Trace`].
//!
//! A ring is known by the address of the kernel's structure, a request by its ring and the program's `user_data`; where
//! several in flight share one, the first that was submitted is the first that completes. Completions of one run of task
//! work are traced before the run itself, so how they were met is known when it comes.

use std::collections::HashMap;

use ferry_io::sampling::{Event, Summary, What};
use ferry_io::{Operation as Kind, Route};

use crate::cause::cause;
use crate::model::{Did, KernelEvent, Met, Nanos, Request, Role, Thread, Trace};

/// IORING_ENTER_GETEVENTS.
pub(crate) const GETEVENTS: u32 = 1;

/// What a thread is about.
#[derive(Debug, Default)]
struct State {
    /// In io_uring_enter(2), to wait for completions.
    is_waiting: bool,
    /// It has slept there.
    has_slept: bool,
    /// Requests whose completions it has written, and of which is not known yet how they were met.
    written: Vec<u32>,
}

/// The work.
struct Merge<'a> {
    trace: &'a mut Trace,
    summary: &'a Summary,
    began: u64,
    threads: HashMap<u32, u32>,
    names: HashMap<u32, String>,
    /// Where threads began that nothing else is told of yet.
    begun: HashMap<u32, &'a Event>,
    rings: HashMap<u64, u32>,
    open: HashMap<(u64, u64), std::collections::VecDeque<u32>>,
    states: HashMap<u32, State>,
    met: Vec<Option<Met>>,
}

/// Adds what the kernel did to a trace. `began` is when the recording began, on the clock of the events, which may be in
/// any order; threads that are there already are known by their numbers. Gives back how the completion of each request was
/// met, as far as its submitter was waiting, or not, when it was written.
pub fn add(trace: &mut Trace, began: u64, mut events: Vec<Event>, summary: &Summary) -> Vec<Option<Met>> {
    events.sort_by_key(|event| event.at);
    trace.chains.clone_from(&summary.chains);
    trace.lost.kernel = trace.lost.kernel.saturating_add(summary.lost);
    trace.about.missing.extend(summary.missing.iter().cloned());
    let known = trace.threads.iter().zip(0..).filter(|(thread, _)| thread.tid != 0);
    let threads = known.map(|(thread, index)| (thread.tid, index)).collect();
    let mut merge = Merge {
        trace,
        summary,
        began,
        threads,
        names: names(&events),
        begun: HashMap::new(),
        rings: HashMap::new(),
        open: HashMap::new(),
        states: HashMap::new(),
        met: Vec::new(),
    };
    for event in &events {
        merge.take(event);
    }
    // A thread's beginning is told of with what it does first.
    merge.trace.kernel.sort_by_key(|event| event.at);
    for tid in merge.states.keys().copied().collect::<Vec<_>>() {
        merge.tell(tid, usize::MAX, Met::Peek);
    }
    merge.met
}

/// Finds the request of each operation that went to a ring. [`Operation::request`](crate::model::Operation::request) is
/// the operation's place in `keys`, by which the ring knows it, and becomes the request's; `met` is what [`add`] gave back.
pub(crate) fn join(trace: &mut Trace, keys: &[u64], met: &[Option<Met>]) {
    let mut requests: HashMap<(u32, u64), Vec<u32>> = HashMap::new();
    let askers = askers(&trace.threads);
    for (request, number) in trace.requests.iter().zip(0..) {
        let asker = askers.get(&request.thread).copied().unwrap_or(request.thread);
        requests.entry((asker, request.user_data)).or_default().push(number);
    }
    for operation in &mut trace.operations {
        let key = operation.request.take().and_then(|place| keys.get(index(place)));
        let Some(found) = key.and_then(|key| requests.get(&(operation.thread, *key))) else { continue };
        let first =
            found.partition_point(|&number| trace.requests[index(number)].submitted < operation.asked);
        let Some(&number) = found.get(first) else { continue };
        let request = &trace.requests[index(number)];
        if operation.route != Route::Ring || operation.taken.is_some_and(|taken| request.submitted > taken) {
            continue;
        }
        operation.request = Some(number);
        // The batch is told of when the call has returned, by which time some of it may be answered.
        operation.submitted = Some(request.submitted);
        // Of a chain it is the first step only.
        if operation.kind != Kind::Chain {
            operation.completed = request.completed;
            operation.met = met.get(index(number)).copied().flatten().or(operation.met);
        }
    }
}

/// Whom the kernel's polling threads (SQPOLL) submit for: their names say which thread made the ring.
fn askers(threads: &[Thread]) -> HashMap<u32, u32> {
    let polls_for = |thread: &Thread| thread.name.strip_prefix("iou-sqp-")?.parse::<u32>().ok();
    let mut made_by: HashMap<u32, u32> = HashMap::new();
    for (thread, index) in threads.iter().zip(0..) {
        made_by.entry(thread.tid).or_insert(index);
    }
    let pairs = threads.iter().zip(0..);
    pairs.filter_map(|(thread, poller)| Some((poller, *made_by.get(&polls_for(thread)?)?))).collect()
}

/// The last name of each thread; one that was given none has that of who made it.
fn names(events: &[Event]) -> HashMap<u32, String> {
    let mut names: HashMap<u32, String> = HashMap::new();
    for event in events {
        if let What::Named(name) = &event.what {
            names.insert(event.tid, name.clone());
        }
    }
    for event in events {
        if let What::Began { parent } = event.what
            && !names.contains_key(&event.tid)
            && let Some(name) = names.get(&parent).cloned()
        {
            names.insert(event.tid, name);
        }
    }
    names
}

impl<'a> Merge<'a> {
    fn take(&mut self, event: &'a Event) {
        let (tid, at) = (event.tid, event.at.saturating_sub(self.began));
        match event.what {
            What::Named(_) => {}
            What::Began { .. } => self.began(event),
            What::Ended => self.ended(event),
            What::Enter { completions, flags, .. } => {
                self.tell(tid, usize::MAX, Met::Peek);
                let state = self.states.entry(tid).or_default();
                state.is_waiting = completions > 0 || flags & GETEVENTS != 0;
                state.has_slept = false;
            }
            What::Leave { .. } => {
                self.tell(tid, usize::MAX, Met::Peek);
                self.states.insert(tid, State::default());
            }
            What::Sleep => {
                self.states.entry(tid).or_default().has_slept = true;
                self.did(event, tid, Did::Sleep);
            }
            What::Run => self.did(event, tid, Did::Run),
            What::TaskWork { count, .. } => self.task_work(event, count),
            What::TaskAdd { ring, user_data } => {
                let first = self.open.get(&(ring, user_data)).and_then(|open| open.front());
                let owner = first.map(|&request| self.trace.requests[index(request)].thread);
                let thread = owner.unwrap_or_else(|| self.thread(tid));
                self.did_to(event, thread, Did::TaskAdd);
            }
            What::Submit { ring, user_data, opcode } => self.submit(tid, at, (ring, user_data), opcode),
            What::HandOver { ring, user_data } => {
                // The last one: an earlier one of that name would have been handed over before.
                let last = self.open.get(&(ring, user_data)).and_then(|open| open.back()).copied();
                if let Some(request) = last {
                    self.trace.requests[index(request)].handed_over = Some(at);
                }
                self.did(event, tid, Did::HandOver(last));
            }
            What::Complete { ring, user_data, result } => self.complete(tid, at, (ring, user_data), result),
            What::Wake { woken, by_interrupt } => {
                // Others run with a number and nothing else; a thread that was there before has told no name.
                let is_its_own = self.threads.contains_key(&tid) || self.names.contains_key(&tid);
                let by = (!by_interrupt && is_its_own).then(|| self.thread(tid));
                self.did(event, woken, Did::Wake { by });
            }
        }
    }

    /// Of threads that nothing else is told of, it is of no interest.
    fn began(&mut self, event: &'a Event) {
        match self.threads.get(&event.tid) {
            Some(&thread) => self.did_to(event, thread, Did::Began),
            None => drop(self.begun.insert(event.tid, event)),
        }
    }

    /// As with its beginning. A number may be given again.
    fn ended(&mut self, event: &Event) {
        if let Some(&thread) = self.threads.get(&event.tid) {
            self.did_to(event, thread, Did::Ended);
        }
        self.tell(event.tid, usize::MAX, Met::Peek);
        self.states.remove(&event.tid);
    }

    fn submit(&mut self, tid: u32, at: Nanos, key: (u64, u64), opcode: u8) {
        let next = u32::try_from(self.rings.len()).unwrap_or(u32::MAX);
        let ring = *self.rings.entry(key.0).or_insert(next);
        let known = self.summary.operations.iter().find(|(known, _)| *known == opcode);
        let opcode = known.map_or_else(|| format!("opcode {opcode}"), |(_, name)| name.clone());
        let thread = self.thread(tid);
        let number = u32::try_from(self.trace.requests.len()).unwrap_or(u32::MAX);
        self.trace.requests.push(Request {
            thread,
            ring,
            opcode,
            user_data: key.1,
            submitted: at,
            completed: None,
            result: None,
            handed_over: None,
        });
        self.met.push(None);
        self.open.entry(key).or_default().push_back(number);
    }

    fn complete(&mut self, tid: u32, at: Nanos, key: (u64, u64), result: i32) {
        let Some(open) = self.open.get_mut(&key) else { return };
        let Some(number) = open.pop_front() else { return };
        if open.is_empty() {
            self.open.remove(&key);
        }
        let thread = self.threads.get(&tid).copied();
        let request = &mut self.trace.requests[index(number)];
        request.completed = Some(at);
        request.result = Some(result);
        let submitter = request.thread;
        if thread == Some(submitter) {
            return self.states.entry(tid).or_default().written.push(number);
        }
        // A kernel worker wrote it: what counts is what its submitter was about.
        let submitter = self.trace.threads[index(submitter)].tid;
        let state = self.states.get(&submitter).filter(|state| state.is_waiting);
        self.met[index(number)] = Some(match state {
            Some(State { has_slept: true, .. }) => Met::Slept,
            Some(_) => Met::AtOnce,
            None => Met::Peek,
        });
    }

    fn task_work(&mut self, event: &Event, count: u32) {
        let chain = self.chain(event).map_or(&[][..], |chain| &self.trace.chains[index(chain)]);
        let has_slept = self.states.get(&event.tid).is_some_and(|state| state.has_slept);
        let cause = cause(chain, has_slept);
        let how = cause.met().unwrap_or(Met::Peek);
        self.tell(event.tid, index(count), how);
        self.tell(event.tid, usize::MAX, Met::Peek);
        self.did(event, event.tid, Did::TaskWork { cause, count });
    }

    /// How the last so many completions were met that the thread has written.
    fn tell(&mut self, tid: u32, count: usize, how: Met) {
        let Some(state) = self.states.get_mut(&tid) else { return };
        let first = state.written.len().saturating_sub(count);
        for request in state.written.drain(first..) {
            self.met[index(request)] = Some(how);
        }
    }

    fn did(&mut self, event: &Event, tid: u32, did: Did) {
        let thread = self.thread(tid);
        self.did_to(event, thread, did);
    }

    fn did_to(&mut self, event: &Event, thread: u32, did: Did) {
        let (at, chain) = (event.at.saturating_sub(self.began), self.chain(event));
        self.trace.kernel.push(KernelEvent { thread, at, processor: event.processor, did, chain });
    }

    /// Where an event's chain is in the trace.
    fn chain(&self, event: &Event) -> Option<u32> {
        let chain = *self.summary.chain_of.get(index(event.chain?))?;
        (index(chain) < self.trace.chains.len()).then_some(chain)
    }

    /// Where a thread is in the trace; one that was not there is added.
    fn thread(&mut self, tid: u32) -> u32 {
        if let Some(known) = self.threads.get(&tid) {
            return *known;
        }
        let name = self.names.get(&tid).cloned().unwrap_or_else(|| format!("thread {tid}"));
        let is_kernel = name.starts_with("iou-");
        let role = if is_kernel { Role::Kernel } else { Role::Other };
        let number = u32::try_from(self.trace.threads.len()).unwrap_or(u32::MAX);
        self.trace.threads.push(Thread { tid, role, name });
        self.threads.insert(tid, number);
        if let Some(event) = self.begun.remove(&tid) {
            self.did_to(event, number, Did::Began);
        }
        number
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
