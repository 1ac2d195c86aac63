//! Batches, requests and completions of rings.

use std::collections::BTreeMap;

use super::counts::{count, size};
use super::times::Times;
use crate::Trace;
use crate::model::{Cause, CompletionMet, Did, Enter, KernelEvent, Request, Submission, SubmitReason};

/// Batches of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batches {
    /// Number of batches.
    pub count: u64,
    /// Number of requests in all batches.
    pub requests: u64,
    /// Size of the largest batch.
    pub largest: u32,
    /// Batches by size: 1, 2, 3 to 4, 5 to 8 and so on, up to the largest.
    pub histogram: Vec<Bar>,
    /// Batches by the reason for submission.
    pub why: [(SubmitReason, u64); 3],
}

/// Number of batches in a range of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// Smallest size.
    pub least: u32,
    /// Largest size.
    pub most: u32,
    /// Number of batches.
    pub count: u64,
}

impl Batches {
    pub(super) fn of(submissions: &[Submission]) -> Option<Self> {
        let largest = submissions.iter().map(|submission| submission.requests).max()?;
        let of_why = |why| (why, count(submissions, |submission| submission.why == why));
        Some(Self {
            count: size(submissions.len()),
            requests: submissions.iter().map(|submission| u64::from(submission.requests)).sum(),
            largest,
            histogram: histogram(submissions, largest),
            why: [SubmitReason::Full, SubmitReason::Idle, SubmitReason::Forced].map(of_why),
        })
    }
}

fn histogram(submissions: &[Submission], largest: u32) -> Vec<Bar> {
    let mut bars = Vec::new();
    let (mut least, mut most) = (0, 1);
    loop {
        let holds = |submission: &Submission| (least..=most).contains(&submission.requests);
        bars.push(Bar { least: least.max(1), most, count: count(submissions, holds) });
        if most >= largest {
            return bars;
        }
        (least, most) = (most + 1, most.saturating_mul(2));
    }
}

/// Calls of io_uring_enter(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enters {
    /// Number of calls.
    pub count: u64,
    /// Calls that were to wait for a completion.
    pub waits: u64,
    /// Calls in which the thread slept.
    pub slept: u64,
}

impl Enters {
    pub(super) fn of(enters: &[Enter]) -> Option<Self> {
        let (waits, slept) = (count(enters, |enter| enter.waits), count(enters, |enter| enter.slept));
        (!enters.is_empty()).then(|| Self { count: size(enters.len()), waits, slept })
    }
}

/// Times of requests with one opcode, from submission to completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpcodeTimes {
    /// The opcode.
    pub opcode: String,
    /// Times of completed requests, if any.
    pub times: Option<Times>,
    /// Number of requests, completed or not.
    pub count: u64,
    /// Requests handed to a worker of the kernel.
    pub handed_over: u64,
    /// Requests that failed.
    pub failed: u64,
}

pub(super) fn opcodes(requests: &[Request]) -> Vec<OpcodeTimes> {
    let mut by_opcode: BTreeMap<&str, Vec<&Request>> = BTreeMap::new();
    for request in requests {
        by_opcode.entry(&request.opcode).or_default().push(request);
    }
    let mut opcodes: Vec<OpcodeTimes> = by_opcode
        .into_iter()
        .map(|(opcode, its)| {
            let took = |request: &&Request| Some(request.completed?.saturating_sub(request.submitted));
            OpcodeTimes {
                opcode: opcode.to_owned(),
                times: Times::of(its.iter().filter_map(took).collect()),
                count: size(its.len()),
                handed_over: count(&its, |request| request.handed_over.is_some()),
                failed: count(&its, |request| request.result.is_some_and(|result| result < 0)),
            }
        })
        .collect();
    opcodes.sort_by_key(|opcode| std::cmp::Reverse(opcode.times.map_or(0, |times| times.total)));
    opcodes
}

/// Runs of task work with one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CauseCount {
    /// The cause.
    pub cause: Cause,
    /// Number of runs.
    pub runs: u64,
    /// Units of work in them.
    pub units: u64,
}

pub(super) fn causes(events: &[KernelEvent]) -> Vec<CauseCount> {
    let of_cause = |cause| {
        let its = task_work(events).filter(|(its, _)| *its == cause);
        let (runs, units) = its.fold((0, 0), |(runs, units), (_, more)| (runs + 1, units + more));
        CauseCount { cause, runs, units }
    };
    Cause::ALL.map(of_cause).into_iter().filter(|found| found.runs > 0).collect()
}

fn task_work(events: &[KernelEvent]) -> impl Iterator<Item = (Cause, u64)> {
    let its = events.iter().filter_map(|event| event.did.task_work());
    its.map(|(cause, count)| (cause, u64::from(count)))
}

/// Counts of the ways in which completions were found: the three timelines of the documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timelines {
    /// Already in the completion queue.
    pub peek: u64,
    /// Found by GETEVENTS without sleeping.
    pub at_once: u64,
    /// Found after sleeping in GETEVENTS.
    pub slept: u64,
    /// Unknown.
    pub unknown: u64,
    /// Counted items.
    pub basis: Basis,
}

/// Items that timelines count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Operations of the runtime on rings.
    Operations,
    /// Units of task work of another program. Those that anything but GETEVENTS ran were complete before the program
    /// looked.
    TaskWork,
}

impl Timelines {
    /// Counts operations of the runtime, or else task work.
    pub(super) fn of(trace: &Trace) -> Option<Self> {
        let on_rings = || {
            trace
                .operations
                .iter()
                .filter(|operation| operation.submission.is_some() || operation.met.is_some())
        };
        let mut found = Self { peek: 0, at_once: 0, slept: 0, unknown: 0, basis: Basis::Operations };
        if on_rings().next().is_some() {
            on_rings().for_each(|operation| *found.of_met(operation.met) += 1);
            return Some(found);
        }
        if !trace.operations.is_empty() || task_work(&trace.kernel).next().is_none() {
            return None;
        }
        found.basis = Basis::TaskWork;
        task_work(&trace.kernel).for_each(|(cause, units)| *found.of_met(cause.met()) += units);
        Some(found)
    }

    fn of_met(&mut self, met: Option<CompletionMet>) -> &mut u64 {
        match met {
            Some(CompletionMet::Peek) => &mut self.peek,
            Some(CompletionMet::AtOnce) => &mut self.at_once,
            Some(CompletionMet::Slept) => &mut self.slept,
            None => &mut self.unknown,
        }
    }
}

/// Requests handed to workers of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandOvers {
    /// Number handed over.
    pub handed_over: u64,
    /// Number of all requests.
    pub requests: u64,
}

impl HandOvers {
    pub(super) fn of(trace: &Trace) -> Self {
        let told = count(&trace.kernel, |event| matches!(event.did, Did::HandOver(_)));
        let marked = count(&trace.requests, |request| request.handed_over.is_some());
        Self { handed_over: told.max(marked), requests: size(trace.requests.len()) }
    }
}
