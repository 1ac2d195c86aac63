//! Formats a recording for a terminal: the answer first, then its origin, then the tables.

mod devices;
mod head;
mod page;
mod rings;
mod tables;
mod threads;

#[cfg(test)]
mod tests;

use ferry_trace::answer::Answer;
use ferry_trace::{Summary, Trace};

pub(super) use self::page::Page;
use self::page::whole;
use super::figures::time;

pub(super) fn of(trace: &Trace, page: Page) -> String {
    let summary = Summary::of(trace, threads::slots(page));
    let answer = Answer::of(trace, &summary, page.columns());
    let parts = [
        (head::answer(page, trace, &answer), false),
        (head::in_flight(page, trace, &answer), false),
        (head::origin(page, trace, &summary), false),
        (tables::routes(page, &summary), true),
        (tables::phases(page, &summary), true),
        (tables::kinds(page, &summary), true),
        (tables::reasons(page, &summary), false),
        (tables::longest(page, trace, &summary), false),
        (tables::ways(page, &summary), true),
        (tables::errors(page, &summary), false),
        (rings::requests(page, &summary), true),
        (rings::batches(page, &summary), false),
        (devices::devices(page, trace, &summary), false),
        (threads::depths(page, &summary.depths, trace.about.took), false),
        (threads::threads(page, trace, &summary), false),
        (rings::causes(page, &summary), false),
        (rings::timelines(page, &summary), false),
    ];
    let mut note = Some(page.lines(&format!(
        "Times of concurrent operations add up: a sum may exceed the {} of the recording.",
        whole(&time(trace.about.took))
    )));
    let mut texts = Vec::new();
    for (text, has_sums) in parts.into_iter().filter(|(text, _)| !text.is_empty()) {
        let note = if has_sums { note.take() } else { None };
        texts.push(text + &note.unwrap_or_default());
    }
    texts.join("\n")
}
