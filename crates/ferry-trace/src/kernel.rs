//! Interpretation of the kernel's events: requests from submission to completion, causes of task work, sleeps and
//! wake-ups; merged into a [`Trace`].
//!
//! A ring is identified by the address of its kernel structure, a request by its ring and `user_data`. Among requests
//! in flight with equal `user_data`, the first submitted is taken to complete first. Completions of a run of task work
//! are traced before the run itself, so the run decides how they were found. Requests of block devices: `devices.rs`.

use std::collections::HashMap;

use ferry_io::sampling::{Event, SampleKind, Summary};
use ferry_io::{Operation as Kind, Route};

use crate::cause::cause;
use crate::model::{CompletionMet, Did, KernelEvent, Nanos, Request, Role, Thread, Trace};
use devices::Devices;

mod devices;

/// IORING_ENTER_GETEVENTS.
pub(crate) const GETEVENTS: u32 = 1;

#[derive(Debug, Default)]
struct State {
    /// In io_uring_enter(2), looking for completions.
    is_waiting: bool,
    /// That call sleeps until there are completions. Without, a sleep in it waits for a lock or a device.
    may_sleep: bool,
    /// Has slept in that call for completions.
    has_slept: bool,
    /// Requests whose completions it has written, but which have not been found yet.
    written: Vec<u32>,
}

struct Merge<'a> {
    trace: &'a mut Trace,
    summary: &'a Summary,
    began: u64,
    threads: HashMap<u32, u32>,
    names: HashMap<u32, String>,
    /// Beginnings of threads without other events so far.
    begun: HashMap<u32, &'a Event>,
    rings: HashMap<u64, u32>,
    open: HashMap<(u64, u64), std::collections::VecDeque<u32>>,
    states: HashMap<u32, State>,
    devices: Devices,
    met: Vec<Option<CompletionMet>>,
}

/// Adds the kernel's events to a trace. `began` is the beginning of the recording on the events' clock. Events may
/// come in any order, and known threads are identified by their numbers. Returns for each request how its completion
/// was found, as far as that can be decided.
pub fn add(
    trace: &mut Trace,
    began: u64,
    mut events: Vec<Event>,
    summary: &Summary,
) -> Vec<Option<CompletionMet>> {
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
        devices: Devices::default(),
        met: Vec::new(),
    };
    for event in &events {
        merge.take(event);
    }
    // The start of a thread is added late, with the thread's next event, so the events have to be sorted.
    merge.trace.kernel.sort_by_key(|event| event.at);
    for tid in merge.states.keys().copied().collect::<Vec<_>>() {
        merge.tell(tid, usize::MAX, CompletionMet::Peek);
    }
    merge.met
}

/// Assigns its request to each operation on a ring. Before the call,
/// [`Operation::request`](crate::model::Operation::request) is an index into `keys`; afterwards it is one into the
/// trace's requests. `met` is the result of [`add`].
pub(crate) fn join(trace: &mut Trace, keys: &[u64], met: &[Option<CompletionMet>]) {
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
        // The batch is recorded after the call has returned, when some of it may already be complete.
        operation.submitted = Some(request.submitted);
        // For a chain this is only the first step.
        if operation.kind != Kind::Chain {
            operation.completed = request.completed;
            operation.met = met.get(index(number)).copied().flatten().or(operation.met);
        }
    }
}

/// Submitting threads behind the kernel's polling threads (SQPOLL), whose names contain the creator of the ring.
fn askers(threads: &[Thread]) -> HashMap<u32, u32> {
    let polls_for = |thread: &Thread| thread.name.strip_prefix("iou-sqp-")?.parse::<u32>().ok();
    let mut made_by: HashMap<u32, u32> = HashMap::new();
    for (thread, index) in threads.iter().zip(0..) {
        made_by.entry(thread.tid).or_insert(index);
    }
    let pairs = threads.iter().zip(0..);
    pairs.filter_map(|(thread, poller)| Some((poller, *made_by.get(&polls_for(thread)?)?))).collect()
}

/// Last name of each thread. An unnamed thread has the name of its creator.
fn names(events: &[Event]) -> HashMap<u32, String> {
    let mut names: HashMap<u32, String> = HashMap::new();
    for event in events {
        if let SampleKind::Named(name) = &event.what {
            names.insert(event.tid, name.clone());
        }
    }
    for event in events {
        if let SampleKind::Began { parent } = event.what
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
            SampleKind::Named(_) => {}
            SampleKind::Began { .. } => self.began(event),
            SampleKind::Ended => self.ended(event),
            SampleKind::Enter { completions, flags, .. } => {
                self.tell(tid, usize::MAX, CompletionMet::Peek);
                let state = self.states.entry(tid).or_default();
                state.may_sleep = completions > 0;
                state.is_waiting = state.may_sleep || flags & GETEVENTS != 0;
                state.has_slept = false;
            }
            SampleKind::Leave { .. } => {
                self.tell(tid, usize::MAX, CompletionMet::Peek);
                self.states.insert(tid, State::default());
            }
            SampleKind::Sleep => {
                let state = self.states.entry(tid).or_default();
                state.has_slept |= state.may_sleep;
                self.did(event, tid, Did::Sleep);
            }
            SampleKind::Run => self.did(event, tid, Did::Run),
            SampleKind::TaskWork { count, .. } => self.task_work(event, count),
            SampleKind::TaskAdd { ring, user_data } => {
                let first = self.open.get(&(ring, user_data)).and_then(|open| open.front());
                let owner = first.map(|&request| self.trace.requests[index(request)].thread);
                let thread = owner.unwrap_or_else(|| self.thread(tid));
                self.did_to(event, thread, Did::TaskAdd);
            }
            SampleKind::Submit { ring, user_data, opcode } => self.submit(tid, at, (ring, user_data), opcode),
            SampleKind::HandOver { ring, user_data } => {
                // The last one: an earlier one of that key would have been handed over before.
                let last = self.open.get(&(ring, user_data)).and_then(|open| open.back()).copied();
                if let Some(request) = last {
                    self.trace.requests[index(request)].handed_over = Some(at);
                }
                self.did(event, tid, Did::HandOver(last));
            }
            SampleKind::Complete { ring, user_data, result } => {
                self.complete(tid, at, (ring, user_data), result)
            }
            SampleKind::Wake { woken, by_interrupt } => {
                // Threads of other programs appear by number only, and known threads need no name.
                let is_its_own = self.threads.contains_key(&tid) || self.names.contains_key(&tid);
                let by = (!by_interrupt && is_its_own).then(|| self.thread(tid));
                self.did(event, woken, Did::Wake { by });
            }
            SampleKind::DeviceIssue { .. } => {
                let is_its_own = self.threads.contains_key(&tid) || self.names.contains_key(&tid);
                // Devices are sampled from before the recording on.
                if event.at >= self.began {
                    let by = is_its_own.then(|| self.thread(tid));
                    self.devices.issue(self.trace, self.summary, event, at, by);
                }
            }
            SampleKind::DeviceComplete { .. } => self.devices.complete(self.trace, event, at),
        }
    }

    /// Remembered until another event shows that the thread matters.
    fn began(&mut self, event: &'a Event) {
        match self.threads.get(&event.tid) {
            Some(&thread) => self.did_to(event, thread, Did::Began),
            None => drop(self.begun.insert(event.tid, event)),
        }
    }

    /// Ignored like its beginning for a thread without other events. Its number may be reused.
    fn ended(&mut self, event: &Event) {
        if let Some(&thread) = self.threads.get(&event.tid) {
            self.did_to(event, thread, Did::Ended);
        }
        self.tell(event.tid, usize::MAX, CompletionMet::Peek);
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
        // Written by a worker of the kernel: the submitter's state decides.
        let submitter = self.trace.threads[index(submitter)].tid;
        let state = self.states.get(&submitter).filter(|state| state.is_waiting);
        self.met[index(number)] = Some(match state {
            Some(State { has_slept: true, .. }) => CompletionMet::Slept,
            Some(_) => CompletionMet::AtOnce,
            None => CompletionMet::Peek,
        });
    }

    fn task_work(&mut self, event: &Event, count: u32) {
        let chain = self.chain(event).map_or(&[][..], |chain| &self.trace.chains[index(chain)]);
        let has_slept = self.states.get(&event.tid).is_some_and(|state| state.has_slept);
        let cause = cause(chain, has_slept);
        let how = cause.met().unwrap_or(CompletionMet::Peek);
        self.tell(event.tid, index(count), how);
        self.tell(event.tid, usize::MAX, CompletionMet::Peek);
        self.did(event, event.tid, Did::TaskWork { cause, count });
    }

    /// Decides how the last `count` completions written by the thread were found.
    fn tell(&mut self, tid: u32, count: usize, how: CompletionMet) {
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

    fn chain(&self, event: &Event) -> Option<u32> {
        let chain = *self.summary.chain_of.get(index(event.chain?))?;
        (index(chain) < self.trace.chains.len()).then_some(chain)
    }

    /// Index of a thread in the trace; unknown threads are added.
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
