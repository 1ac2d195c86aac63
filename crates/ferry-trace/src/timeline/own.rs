//! Items of each thread, found in one pass. A pass for every thread would take minutes for a file with many threads.

use crate::Trace;

/// Indices into one of the trace's vectors, grouped by thread.
#[derive(Debug)]
pub(super) struct Own {
    /// Beginning of each thread's group, and the end of the last one.
    first: Vec<usize>,
    items: Vec<usize>,
}

impl Own {
    /// Groups items by thread; items without a known thread are left out.
    fn of(threads: usize, whose: impl Iterator<Item = Option<u32>> + Clone) -> Self {
        let known = whose.enumerate().filter_map(|(item, thread)| {
            let thread = usize::try_from(thread?).ok()?;
            (thread < threads).then_some((thread, item))
        });
        let mut first = vec![0; threads + 1];
        known.clone().for_each(|(thread, _)| first[thread + 1] += 1);
        for thread in 0..threads {
            first[thread + 1] += first[thread];
        }
        let mut next = first.clone();
        let mut items = vec![0; first[threads]];
        for (thread, item) in known {
            items[next[thread]] = item;
            next[thread] += 1;
        }
        Self { first, items }
    }

    pub(super) fn its(&self, thread: u32) -> &[usize] {
        let thread = usize::try_from(thread).unwrap_or(usize::MAX);
        let until = thread.checked_add(1).and_then(|next| self.first.get(next));
        let piece = self.first.get(thread).zip(until).and_then(|(from, until)| self.items.get(*from..*until));
        piece.unwrap_or_default()
    }
}

#[derive(Debug)]
pub(super) struct OfThreads {
    /// Operations by worker.
    pub(super) operations: Own,
    /// Operations by the pool thread that executed them.
    pub(super) ran: Own,
    pub(super) requests: Own,
    pub(super) submissions: Own,
    pub(super) rests: Own,
    pub(super) kernel: Own,
    /// Requests by block device.
    pub(super) devices: Own,
}

impl OfThreads {
    pub(super) fn of(trace: &Trace) -> Self {
        let threads = trace.threads.len();
        Self {
            operations: Own::of(threads, trace.operations.iter().map(|one| Some(one.thread))),
            ran: Own::of(threads, trace.operations.iter().map(|one| one.ran_on)),
            requests: Own::of(threads, trace.requests.iter().map(|one| Some(one.thread))),
            submissions: Own::of(threads, trace.submissions.iter().map(|one| Some(one.thread))),
            rests: Own::of(threads, trace.rests.iter().map(|one| Some(one.thread))),
            kernel: Own::of(threads, trace.kernel.iter().map(|one| Some(one.thread))),
            devices: Own::of(threads, trace.device_requests.iter().map(|one| Some(one.device))),
        }
    }
}
