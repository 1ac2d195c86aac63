//! Formats the beginning: the answer in one sentence, operations in flight over time, and the recording's origin.

use ferry_io::Route;
use ferry_lab::clock;
use ferry_trace::Summary;
use ferry_trace::answer::{Activity, Answer, Awaited, Busy, InFlight, Threads, Wait};
use ferry_trace::model::{Lost, Trace};
use ferry_trace::summary::{Place, Series};

use super::page::{Page, whole};
use crate::trace::figures::{command_line, name, printable, share, sparkline, time};
use crate::units::{count, counted};

/// Number of activities in the answer.
const ACTIVITIES: usize = 2;

/// Formats `A read was in flight 97 % of the time; workers were busy 27 %; longest wait: 12 ms, open of 'a/b' on the
/// pool.`, and the warning if events were lost.
pub(super) fn answer(page: Page, trace: &Trace, answer: &Answer) -> String {
    let mut parts = vec![flights(&answer.in_flight, trace.about.took)];
    parts.extend(answer.busy.as_ref().map(busy));
    parts.extend(answer.longest_wait.map(|wait| longest(page, trace, wait)));
    let mut text = page.lines(&format!("{}.", parts.join("; ")));
    if trace.lost != Lost::default() {
        let (program, kernel) = (count(trace.lost.program), count(trace.lost.kernel));
        text += &page.lines(&format!(
            "LOST: {program} events of the program and {kernel} of the kernel, for lack of room; \
             the figures lack them"
        ));
    }
    text
}

fn flights(activities: &[InFlight], took: u64) -> String {
    let mut shown: Vec<&InFlight> = activities.iter().filter(|its| its.time > 0).collect();
    // Polls and timers tell something only if there is nothing else.
    if shown.len() > 1 {
        shown.retain(|its| its.activity != Activity::Other);
    }
    let Some((first, others)) = shown.split_first() else {
        return "No operation was in flight".to_owned();
    };
    let share = |its: &InFlight| whole(&share(its.time, took));
    let others = others.iter().take(ACTIVITIES - 1);
    let others: String = others.map(|its| format!(", {} {}", noun(its.activity), share(its))).collect();
    let first_noun = noun(first.activity);
    let first_noun = first_noun.strip_prefix('a').unwrap_or(first_noun);
    format!("A{first_noun} was in flight {} of the time{others}", share(first))
}

/// The activity's name with its article, which begins with an `a`.
fn noun(activity: Activity) -> &'static str {
    match activity {
        Activity::Read => "a read",
        Activity::Write => "a write",
        Activity::Copy => "a copy in the kernel",
        Activity::Sync => "a sync",
        Activity::Metadata => "a metadata operation",
        Activity::Other => "another request",
    }
}

fn busy(busy: &Busy) -> String {
    let share = whole(&share(busy.time, busy.lived));
    match (busy.of, busy.threads) {
        (Threads::Workers, 1) => format!("the worker was busy {share}"),
        (Threads::Workers, _) => format!("workers were busy {share}"),
        (Threads::Others, 1) => format!("its thread was busy {share}"),
        (Threads::Others, _) => format!("its threads were busy {share}"),
    }
}

fn longest(page: Page, trace: &Trace, wait: Wait) -> String {
    let took = whole(&time(wait.took));
    let what = match wait.on {
        Awaited::Operation(index) => trace.operations.get(index).map(|operation| {
            let path = Place::of(trace, operation).path();
            let kind = operation.kind.name();
            let of = if path.is_empty() {
                kind.to_owned()
            } else {
                // A name is not broken, so it must leave room for other words.
                let room = page.columns().saturating_sub(kind.len() + "of ".len() + 1);
                format!("{kind} of {}", whole(&name(&path, room, page.glyphs)))
            };
            format!("{of} {}", place(operation.route))
        }),
        Awaited::Request(index) => trace.requests.get(index).map(|request| printable(&request.opcode)),
    };
    format!("longest wait: {took}, {}", what.unwrap_or_default())
}

fn place(route: Route) -> &'static str {
    match route {
        Route::Inline => "inline",
        Route::Ring => "on the ring",
        Route::Pool => "on the pool",
        Route::Offload => "offloaded to the kernel",
    }
}

/// Draws the number of operations in flight over the time of the recording; empty if there were none.
pub(super) fn in_flight(page: Page, trace: &Trace, answer: &Answer) -> String {
    let depth = &answer.depth;
    if depth.peak == 0 {
        return String::new();
    }
    let what = if depth.series == Series::Requests { "Requests" } else { "Operations" };
    let (took, most) = (whole(&time(trace.about.took)), whole(&format!("up to {}", count(depth.peak))));
    let caption = page.lines(&format!("{what} in flight over {took}, {most}"));
    format!("{caption}{}\n", sparkline(&depth.peaks, page.glyphs).trim_end())
}

/// Formats the command, the conditions of the recording, and its size.
pub(super) fn origin(page: Page, trace: &Trace, summary: &Summary) -> String {
    let about = &trace.about;
    let mut text = format!("{}\n", command_line(&about.command));
    if !about.run.is_empty() {
        text += &format!("recorded of {}\n", printable(&about.run));
    }
    let backend = if about.backend.is_empty() {
        String::new()
    } else {
        format!(", backend {}", printable(&about.backend))
    };
    let processors = counted(about.processors.into(), "processor", "processors");
    let began = clock::text(u128::from(about.began / 1_000_000));
    let (recorder, kernel) = (printable(&about.recorder), printable(&about.kernel));
    text += &page.lines(&format!("{began}, ferry {recorder}, Linux {kernel}, {processors}{backend}"));
    let fibers = counted(summary.fibers, "fiber", "fibers");
    let cancelled = if summary.cancelled == 0 {
        String::new()
    } else {
        format!(", {} scopes cancelled", count(summary.cancelled))
    };
    let what = if trace.operations.is_empty() {
        counted(u64::try_from(trace.requests.len()).unwrap_or(u64::MAX), "request", "requests")
    } else {
        format!("{}, {fibers}{cancelled}", counted(summary.operations, "operation", "operations"))
    };
    let events = counted(summary.events, "event", "events");
    text += &page.lines(&format!("{}, {events}, {what}", whole(&time(about.took))));
    let left = [(summary.unfinished, "pending when the recording ended"), (summary.abandoned, "abandoned")];
    for (n, what) in left.into_iter().filter(|(n, _)| *n > 0) {
        text += &page.lines(&format!("{} {what}", counted(n, "operation", "operations")));
    }
    for line in &about.missing {
        text += &page.lines(&format!("not recorded: {}", printable(line)));
    }
    text
}
