//! Consistency of a trace: nesting, the order of an operation's times, and, if no events were lost, ends and the run's
//! own counters.

use std::collections::HashMap;

use ferry_io::Route;

use crate::Trace;
use crate::model::{Fiber, Nanos, Operation, Scope};

const MOST: usize = 100;

/// Returns up to a hundred faults, one a line; none for a correct recording.
#[must_use]
pub fn check(trace: &Trace) -> Vec<String> {
    let mut faults = Vec::new();
    let fibers = trace.fibers.iter().enumerate();
    faults.extend(fibers.filter_map(|(place, fiber)| misplaced_fiber(trace, place, fiber)).take(MOST));
    let scopes = trace.scopes.iter().enumerate();
    faults.extend(scopes.filter_map(|(place, scope)| misplaced_scope(trace, place, scope)).take(MOST));
    let timed = trace.operations.iter().enumerate();
    faults.extend(timed.filter_map(|(place, operation)| disorder(trace, place, operation)).take(MOST));
    if trace.lost.program == 0 {
        check_ends(trace, &mut faults);
        check_counters(trace, &mut faults);
    }
    faults.truncate(MOST);
    faults
}

fn misplaced_fiber(trace: &Trace, place: usize, fiber: &Fiber) -> Option<String> {
    let Some(scope) = trace.scopes.get(fiber.scope as usize) else {
        return Some(format!("fiber {place} refers to scope {}, which does not exist", fiber.scope));
    };
    if is_within((fiber.began, fiber.ended), (scope.began, scope.ended)) {
        return None;
    }
    Some(format!("fiber {place} ({:?}) is not within scope {}", fiber.name, fiber.scope))
}

fn misplaced_scope(trace: &Trace, place: usize, scope: &Scope) -> Option<String> {
    let parent = scope.fiber?;
    let Some(fiber) = trace.fibers.get(parent as usize) else {
        return Some(format!("scope {place} refers to fiber {parent}, which does not exist"));
    };
    if is_within((scope.began, scope.ended), (fiber.began, fiber.ended)) {
        return None;
    }
    Some(format!("scope {place} is not within fiber {parent} ({:?})", fiber.name))
}

/// Returns true if a span lies within another. A missing end is taken to fit.
fn is_within(inner: (Nanos, Option<Nanos>), outer: (Nanos, Option<Nanos>)) -> bool {
    let ends_within = match (inner.1, outer.1) {
        (Some(inner), Some(outer)) => inner <= outer,
        (_, None) | (None, _) => true,
    };
    outer.0 <= inner.0 && ends_within
}

fn disorder(trace: &Trace, place: usize, operation: &Operation) -> Option<String> {
    let Operation { asked, submitted, started, completed, taken, .. } = operation;
    let times = [Some(*asked), *submitted, *started, *completed, *taken];
    let name = operation.kind.name();
    if !times.iter().flatten().is_sorted() {
        return Some(format!("the times of operation {place} ({name}) are not in order: {times:?}"));
    }
    let fiber = operation.fiber?;
    let Some(of) = trace.fibers.get(fiber as usize) else {
        return Some(format!("operation {place} ({name}) refers to fiber {fiber}, which does not exist"));
    };
    let ended = operation.taken.filter(|_| !operation.abandoned);
    if !is_within((*asked, ended), (of.began, of.ended)) {
        return Some(format!("operation {place} ({name}) is not within fiber {fiber} ({:?})", of.name));
    }
    None
}

fn check_ends(trace: &Trace, faults: &mut Vec<String>) {
    let count = |what: &str, count: usize| (count > 0).then(|| format!("{count} {what} have no end"));
    let untaken = trace.operations.iter().filter(|operation| operation.taken.is_none()).count();
    let open_fiber = |fiber: &&Fiber| fiber.ended.is_none();
    let open_scope = |scope: &&Scope| scope.ended.is_none();
    faults.extend(count("operations", untaken));
    faults.extend(count("fibers", trace.fibers.iter().filter(open_fiber).count()));
    faults.extend(count("scopes", trace.scopes.iter().filter(open_scope).count()));
}

fn check_counters(trace: &Trace, faults: &mut Vec<String>) {
    if trace.counters.is_empty() {
        return;
    }
    let counted: HashMap<&str, u64> =
        trace.counters.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    for (name, found) in counts(trace) {
        let expected = counted.get(name.as_str()).copied().unwrap_or(0);
        if expected != found {
            faults.push(format!(
                "{name} is {expected} according to the counters, but {found} according to the events"
            ));
        }
    }
}

/// Returns the numbers of events by the names of the counters.
#[must_use]
pub fn counts(trace: &Trace) -> Vec<(String, u64)> {
    let mut by_kind = HashMap::<String, u64>::new();
    let mut by_route = [0_u64; Route::ALL.len()];
    for operation in &trace.operations {
        let (kind, route) = (operation.kind.name(), operation.route);
        *by_kind.entry(format!("operations_by_kind.{kind}.{}", route.name())).or_default() += 1;
        by_route[route as usize] += 1;
    }
    let mut counts: Vec<_> = by_kind.into_iter().collect();
    counts.sort();
    let of_route = |(route, count): (Route, u64)| (format!("operations_by_route.{}", route.name()), count);
    counts.extend(Route::ALL.into_iter().zip(by_route).map(of_route));
    let submitted = trace.submissions.iter().map(|submission| u64::from(submission.requests)).sum();
    let workers = trace.threads.iter().filter(|thread| thread.role == crate::model::Role::Worker).count();
    let pool_threads = trace.threads.iter().filter(|thread| thread.role == crate::model::Role::Pool).count();
    let others = [
        ("operations", trace.operations.len() as u64),
        ("submissions", trace.submissions.len() as u64),
        ("submitted", submitted),
        ("ring_enters", trace.enters.len() as u64),
        ("workers", workers as u64),
        ("pool_threads", pool_threads as u64),
    ];
    counts.extend(others.map(|(name, count)| (name.to_owned(), count)));
    counts
}

#[cfg(test)]
mod tests;
