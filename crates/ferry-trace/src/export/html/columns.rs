//! The trace's vectors as columns of variable-length numbers: seven bits a byte, least significant first, mostly
//! differences to the previous number. `data.js` reads them in the same order.

use std::collections::HashMap;

use crate::model::{
    CompletionMet, DeviceRequest, Did, Enter, Fiber, KernelEvent, Nanos, Operation, Request, Rest, Sample,
    Scope, Submission, Trace,
};

/// Largest number that a script represents exactly. Larger results and offsets are cut to it.
const MOST: u64 = (1 << 53) - 1;

/// Names without duplicates.
#[derive(Default)]
pub(super) struct Names<'t> {
    indices: HashMap<&'t str, u64>,
    lengths: Vec<u64>,
    text: Vec<u8>,
}

impl<'t> Names<'t> {
    fn index(&mut self, name: &'t str) -> u64 {
        let Self { indices, lengths, text } = self;
        *indices.entry(name).or_insert_with(|| {
            text.extend(name.as_bytes());
            lengths.push(name.len() as u64);
            lengths.len() as u64 - 1
        })
    }

    pub(super) fn count(&self) -> usize {
        self.lengths.len()
    }
}

/// All columns, and the names that they refer to.
pub(super) struct Columns<'t> {
    pub(super) bytes: Vec<u8>,
    pub(super) names: Names<'t>,
}

impl<'t> Columns<'t> {
    /// Writes the vectors of a trace one after another; names come last.
    pub(super) fn of(trace: &'t Trace) -> Self {
        let mut columns = Self { bytes: Vec::new(), names: Names::default() };
        // Index 0 is the empty name.
        columns.names.index("");
        columns.scopes(&trace.scopes);
        columns.fibers(&trace.fibers);
        columns.operations(&trace.operations);
        columns.submissions(&trace.submissions);
        columns.enters(&trace.enters);
        columns.rests(&trace.rests);
        columns.samples(&trace.samples);
        columns.requests(&trace.requests);
        columns.kernel(&trace.kernel);
        columns.devices(&trace.device_requests);
        let names = std::mem::take(&mut columns.names);
        columns.plain(names.lengths.iter().copied());
        columns.bytes.extend(&names.text);
        columns.names = names;
        columns
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.bytes.push(number.to_le_bytes()[0]);
    }

    fn plain(&mut self, numbers: impl Iterator<Item = u64>) {
        numbers.for_each(|number| self.number(number));
    }

    /// Writes differences to the previous number.
    fn near(&mut self, numbers: impl Iterator<Item = u64>) {
        let mut above = 0;
        for number in numbers {
            self.number(folded(number, above));
            above = number;
        }
    }

    /// Writes differences of optional numbers; `None` is 0.
    fn near_if(&mut self, numbers: impl Iterator<Item = Option<u32>>) {
        self.near(numbers.map(|number| number.map_or(0, |number| u64::from(number) + 1)));
    }

    /// Writes optional times as differences to another time of the same row; `None` is 0.
    fn after(&mut self, times: impl Iterator<Item = (Option<Nanos>, Nanos)>) {
        times.for_each(|(time, base)| {
            self.number(time.map_or(0, |time| folded(time, base).saturating_add(1)));
        });
    }

    fn text<'s: 't>(&mut self, names: impl Iterator<Item = &'s str>) {
        let indices: Vec<u64> = names.map(|name| self.names.index(name)).collect();
        self.near(indices.into_iter());
    }

    fn scopes(&mut self, all: &'t [Scope]) {
        self.plain(all.iter().map(|scope| scope.kind as u64));
        self.near(all.iter().map(|scope| u64::from(scope.thread)));
        self.near_if(all.iter().map(|scope| scope.fiber));
        self.text(all.iter().map(|scope| scope.name.as_str()));
        self.near(all.iter().map(|scope| scope.began));
        self.after(all.iter().map(|scope| (scope.ended, scope.began)));
        self.after(all.iter().map(|scope| (scope.cancelled, scope.began)));
    }

    fn fibers(&mut self, all: &'t [Fiber]) {
        self.near(all.iter().map(|fiber| u64::from(fiber.scope)));
        self.text(all.iter().map(|fiber| fiber.name.as_str()));
        self.near(all.iter().map(|fiber| fiber.began));
        self.after(all.iter().map(|fiber| (fiber.ended, fiber.began)));
    }

    fn operations(&mut self, all: &'t [Operation]) {
        self.plain(all.iter().map(|one| one.kind as u64));
        self.near(all.iter().map(|one| u64::from(one.thread)));
        self.near_if(all.iter().map(|one| one.fiber));
        self.text(all.iter().map(|one| one.name.as_str()));
        self.plain(all.iter().map(|one| one.size));
        self.plain(all.iter().map(|one| one.offset.map_or(0, |offset| offset.min(MOST - 1) + 1)));
        self.plain(all.iter().map(|one| one.route as u64));
        self.plain(all.iter().map(|one| one.reason as u64));
        self.near(all.iter().map(|one| one.asked));
        self.after(all.iter().map(|one| (one.submitted, one.asked)));
        self.after(all.iter().map(|one| (one.started, one.asked)));
        self.after(all.iter().map(|one| (one.completed, one.asked)));
        self.after(all.iter().map(|one| (one.taken, one.asked)));
        self.plain(all.iter().map(|one| result(one.result)));
        self.plain(all.iter().map(|one| u64::from(one.abandoned)));
        self.near_if(all.iter().map(|one| one.ran_on));
        self.near_if(all.iter().map(|one| one.submission));
        self.near_if(all.iter().map(|one| one.request));
        self.plain(all.iter().map(|one| met(one.met)));
    }

    fn submissions(&mut self, all: &[Submission]) {
        self.near(all.iter().map(|one| u64::from(one.thread)));
        self.near(all.iter().map(|one| one.at));
        self.plain(all.iter().map(|one| u64::from(one.requests)));
        self.plain(all.iter().map(|one| one.why as u64));
        self.near(all.iter().map(|one| u64::from(one.in_flight)));
    }

    fn enters(&mut self, all: &[Enter]) {
        self.near(all.iter().map(|one| u64::from(one.thread)));
        self.near(all.iter().map(|one| one.began));
        self.after(all.iter().map(|one| (Some(one.ended), one.began)));
        self.plain(all.iter().map(|one| u64::from(one.submitted)));
        self.plain(all.iter().map(|one| u64::from(one.waits) + 2 * u64::from(one.slept)));
        self.plain(all.iter().map(|one| u64::from(one.found)));
        self.plain(all.iter().map(|one| u64::from(one.taken)));
    }

    fn rests(&mut self, all: &[Rest]) {
        self.near(all.iter().map(|one| u64::from(one.thread)));
        self.near(all.iter().map(|one| one.began));
        self.after(all.iter().map(|one| (Some(one.ended), one.began)));
    }

    fn samples(&mut self, all: &[Sample]) {
        self.near(all.iter().map(|one| u64::from(one.thread)));
        self.near(all.iter().map(|one| one.at));
        self.plain(all.iter().map(|one| one.gauge as u64));
        self.near(all.iter().map(|one| one.value));
    }

    fn requests(&mut self, all: &'t [Request]) {
        self.near(all.iter().map(|one| u64::from(one.thread)));
        self.near(all.iter().map(|one| u64::from(one.ring)));
        self.text(all.iter().map(|one| one.opcode.as_str()));
        // In two halves, because numbers of scripts do not hold 64 bits.
        self.near(all.iter().map(|one| one.user_data >> 32));
        self.near(all.iter().map(|one| one.user_data & u64::from(u32::MAX)));
        self.near(all.iter().map(|one| one.submitted));
        self.after(all.iter().map(|one| (one.completed, one.submitted)));
        self.after(all.iter().map(|one| (one.handed_over, one.submitted)));
        self.plain(all.iter().map(|one| result(one.result.map(outcome))));
    }

    fn kernel(&mut self, all: &[KernelEvent]) {
        self.near(all.iter().map(|one| u64::from(one.thread)));
        self.near(all.iter().map(|one| one.at));
        self.plain(all.iter().map(|one| u64::from(one.processor)));
        self.plain(all.iter().map(|one| did(&one.did).0));
        self.plain(all.iter().map(|one| did(&one.did).1));
        self.plain(all.iter().map(|one| did(&one.did).2));
        self.near_if(all.iter().map(|one| one.chain));
    }

    fn devices(&mut self, all: &[DeviceRequest]) {
        self.near(all.iter().map(|one| u64::from(one.device)));
        self.plain(all.iter().map(|one| one.kind as u64));
        self.near(all.iter().map(|one| one.sector.min(MOST)));
        self.plain(all.iter().map(|one| one.bytes));
        self.near_if(all.iter().map(|one| one.thread));
        self.near(all.iter().map(|one| one.issued));
        self.after(all.iter().map(|one| (one.completed, one.issued)));
        self.plain(all.iter().map(|one| u64::from(one.is_failed)));
    }
}

/// Maps a signed difference to a small unsigned number.
fn folded(number: u64, base: u64) -> u64 {
    let difference = number.wrapping_sub(base).cast_signed();
    ((difference << 1) ^ (difference >> 63)).cast_unsigned()
}

/// Encodes no result (0), a count (odd) or an error number (even).
fn result(result: Option<Result<u64, i32>>) -> u64 {
    match result {
        None => 0,
        Some(Ok(count)) => 1 + (count.min(MOST / 4) << 1),
        Some(Err(errno)) => 2 + (u64::from(errno.unsigned_abs()) << 1),
    }
}

fn outcome(result: i32) -> Result<u64, i32> {
    u64::try_from(result).map_err(|_| result)
}

/// Encodes how a completion was found; 0 is unknown.
pub(super) fn met(met: Option<CompletionMet>) -> u64 {
    match met {
        None => 0,
        Some(CompletionMet::Peek) => 1,
        Some(CompletionMet::AtOnce) => 2,
        Some(CompletionMet::Slept) => 3,
    }
}

/// Encodes an activity and two numbers: cause and count, a request, or a thread. Index 0 stands for none.
fn did(did: &Did) -> (u64, u64, u64) {
    let index = |index: &Option<u32>| index.map_or(0, |index| u64::from(index) + 1);
    match did {
        Did::TaskWork { cause, count } => (0, *cause as u64, u64::from(*count)),
        Did::TaskAdd => (1, 0, 0),
        Did::HandOver(request) => (2, index(request), 0),
        Did::Sleep => (3, 0, 0),
        Did::Wake { by } => (4, index(by), 0),
        Did::Ended => (5, 0, 0),
        Did::Began => (6, 0, 0),
        Did::Run => (7, 0, 0),
    }
}
