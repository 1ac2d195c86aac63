//! Scopes, fibers and operations on tracks without partial overlaps.

use std::io::{self, Write};

use super::drawing::{Beneath, Drawing};
use super::flows::{Step, is_completed_by_ring};
use super::packets::{Arguments, Event, Value};
use crate::export::parts::{self, parts};
use crate::export::rows::Rows;
use crate::model::{CompletionMet, Nanos, Operation, Scope, ScopeKind};

/// Tracks of one kind beneath one thread.
#[derive(Default)]
struct Group {
    rows: Rows,
    lines: Vec<Line>,
}

struct Line {
    track: u64,
    /// Open slices, outermost first: end and index.
    open: Vec<(Nanos, u32)>,
    /// Time until which the innermost slice contains another.
    busy: Nanos,
}

impl Line {
    /// Ends the slices that are over at `at`.
    fn close<W: Write>(&mut self, drawing: &mut Drawing<'_, '_, W>, at: Nanos) -> io::Result<()> {
        while let Some((ended, _)) = self.open.last().copied()
            && ended <= at
        {
            self.open.pop();
            drawing.packets.end(self.track, ended)?;
        }
        Ok(())
    }
}

impl Group {
    /// Returns a track that is free from `began` on, or a new one.
    fn line<W: Write>(
        &mut self,
        drawing: &mut Drawing<'_, '_, W>,
        (thread, what): (u32, Beneath),
        (began, ended): (Nanos, Nanos),
    ) -> io::Result<Option<usize>> {
        let row = self.rows.take(began, ended);
        if row == self.lines.len() {
            let Some(track) = drawing.beneath(thread, what)? else { return Ok(None) };
            self.lines.push(Line { track, open: Vec::new(), busy: 0 });
        }
        let Some(line) = self.lines.get_mut(row) else { return Ok(None) };
        line.close(drawing, began)?;
        line.busy = began;
        Ok(Some(row))
    }

    fn close<W: Write>(&mut self, drawing: &mut Drawing<'_, '_, W>) -> io::Result<()> {
        self.lines.iter_mut().try_for_each(|line| line.close(drawing, Nanos::MAX))
    }
}

fn groups(count: usize) -> Vec<Group> {
    std::iter::repeat_with(Group::default).take(count).collect()
}

impl<W: Write> Drawing<'_, '_, W> {
    /// Writes scopes within their parent scopes.
    pub(super) fn scopes(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let mut groups = groups(trace.threads.len());
        let mut places: Vec<Option<usize>> = Vec::with_capacity(trace.scopes.len());
        for (index, scope) in (0..).zip(&trace.scopes) {
            let Some(group) = groups.get_mut(scope.thread as usize) else {
                places.push(None);
                continue;
            };
            let ended = scope.ended.unwrap_or(trace.about.took).max(scope.began);
            let parent =
                scope.fiber.and_then(|fiber| trace.fibers.get(fiber as usize)).map(|fiber| fiber.scope);
            let mut place = parent.and_then(|parent| places.get(parent as usize).copied().flatten());
            if let Some(line) = place.and_then(|place| group.lines.get_mut(place)) {
                line.close(self, scope.began)?;
                let fits = |open: &(Nanos, u32)| Some(open.1) == parent && ended <= open.0;
                place = place.filter(|_| line.open.last().is_some_and(fits));
            }
            if place.is_none() {
                place = group.line(self, (scope.thread, Beneath::Scopes), (scope.began, ended))?;
            }
            if let Some(line) = place.and_then(|place| group.lines.get_mut(place)) {
                self.packets.begin(scope_event(line.track, scope))?;
                line.open.push((ended, index));
            }
            places.push(place);
        }
        groups.iter_mut().try_for_each(|group| group.close(self))
    }

    /// Writes fibers with their operations. Overlapping operations get other tracks.
    pub(super) fn fibers(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let mut groups_of = [groups(trace.threads.len()), groups(trace.threads.len())];
        let [fibers, others] = &mut groups_of;
        let mut places: Vec<Option<(usize, usize)>> = Vec::with_capacity(trace.fibers.len());
        let mut asked = trace.operations.iter().enumerate().peekable();
        for (index, fiber) in (0..).zip(&trace.fibers) {
            while let Some((number, operation)) = asked.next_if(|(_, next)| next.asked < fiber.began) {
                self.place((number, operation), fibers, others, &places)?;
            }
            let thread = trace.scopes.get(fiber.scope as usize).map(|scope| scope.thread);
            let group = thread.and_then(|thread| Some((thread, fibers.get_mut(thread as usize)?)));
            let Some((thread, group)) = group else {
                places.push(None);
                continue;
            };
            let ended = fiber.ended.unwrap_or(trace.about.took).max(fiber.began);
            let place = group.line(self, (thread, Beneath::Fibers), (fiber.began, ended))?;
            if let Some(line) = place.and_then(|place| group.lines.get_mut(place)) {
                let name = if fiber.name.is_empty() { "fiber" } else { &fiber.name };
                let mut event = Event::new(line.track, fiber.began, "fiber", name);
                event.is_common = fiber.name.is_empty();
                event.arguments = vec![("fiber", Value::Count(u64::from(index)))];
                event.arguments.push(("scope", Value::Count(u64::from(fiber.scope))));
                event.arguments.extend(fiber.ended.is_none().then_some(("unfinished", Value::Yes)));
                self.packets.begin(event)?;
                line.open.push((ended, index));
            }
            places.push(place.map(|place| (thread as usize, place)));
        }
        for operation in asked {
            self.place(operation, fibers, others, &places)?;
        }
        groups_of.iter_mut().flatten().try_for_each(|group| group.close(self))
    }

    /// Writes one operation: within its fiber if no other one is there at that time.
    fn place(
        &mut self,
        (number, operation): (usize, &Operation),
        fibers: &mut [Group],
        others: &mut [Group],
        places: &[Option<(usize, usize)>],
    ) -> io::Result<()> {
        let ended = parts::end(operation, self.trace.about.took);
        let place = operation.fiber.and_then(|fiber| places.get(fiber as usize).copied().flatten());
        let line = place.and_then(|(thread, place)| fibers.get_mut(thread)?.lines.get_mut(place));
        let fits = |line: &&mut Line| {
            let inner = line.open.last().filter(|(_, index)| Some(*index) == operation.fiber);
            line.busy <= operation.asked && inner.is_some_and(|(until, _)| ended <= *until)
        };
        if let Some(line) = line.filter(fits) {
            line.busy = ended;
            return self.operation(line.track, number, operation);
        }
        let Some(group) = others.get_mut(operation.thread as usize) else { return Ok(()) };
        let what = (operation.thread, Beneath::Operations);
        let place = group.line(self, what, (operation.asked, ended))?;
        let Some(line) = place.and_then(|place| group.lines.get(place)) else { return Ok(()) };
        self.operation(line.track, number, operation)
    }

    fn operation(&mut self, track: u64, number: usize, operation: &Operation) -> io::Result<()> {
        let took = self.trace.about.took;
        let mut event = Event::new(track, operation.asked, "operation", operation.kind.name());
        event.arguments = arguments(operation);
        self.flows.join(&mut event, number, Step::Asked);
        self.packets.begin(event)?;
        for part in parts(operation, took) {
            self.packets.slice(Event::new(track, part.began, "part", part.doing.name()), part.ended)?;
        }
        self.packets.end(track, parts::end(operation, took))
    }

    /// Writes the times when workers took ring completions.
    pub(super) fn completions(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let mut tracks = vec![None; trace.threads.len()];
        for (number, operation) in trace.operations.iter().enumerate() {
            let Some(taken) = operation.taken.filter(|_| is_completed_by_ring(operation)) else { continue };
            let Some(track) = tracks.get_mut(operation.thread as usize) else { continue };
            if track.is_none() {
                *track = self.beneath(operation.thread, Beneath::Completions)?;
            }
            let Some(track) = *track else { continue };
            let mut event = Event::new(track, taken, "completion", operation.kind.name());
            event.arguments.extend(operation.met.map(|met| ("met", Value::Word(met_name(met)))));
            self.flows.join(&mut event, number, Step::Taken);
            self.packets.instant(event)?;
        }
        Ok(())
    }
}

fn scope_event(track: u64, scope: &Scope) -> Event<'_> {
    let kind = match scope.kind {
        ScopeKind::Run => "run",
        ScopeKind::Scope => "scope",
        ScopeKind::ForEach => "for_each",
        ScopeKind::Join => "join",
    };
    let mut event =
        Event::new(track, scope.began, "scope", if scope.name.is_empty() { kind } else { &scope.name });
    event.is_common = scope.name.is_empty();
    event.arguments = vec![("kind", Value::Word(kind))];
    event.arguments.extend(
        scope.cancelled.map(|at| ("cancelled after (ns)", Value::Count(at.saturating_sub(scope.began)))),
    );
    event.arguments.extend(scope.ended.is_none().then_some(("unfinished", Value::Yes)));
    event
}

fn arguments(operation: &Operation) -> Arguments<'_> {
    let mut found =
        vec![("route", Value::Word(operation.route.name())), ("reason", Value::Word(operation.reason.why()))];
    if !operation.name.is_empty() {
        found.push(("name", Value::Text(&operation.name)));
    }
    if operation.size > 0 {
        found.push(("size", Value::Count(operation.size)));
    }
    found.extend(operation.offset.map(|offset| ("offset", Value::Count(offset))));
    match operation.result {
        Some(Ok(count)) => found.push(("result", Value::Count(count))),
        Some(Err(errno)) => found.push(("errno", Value::Number(i64::from(errno)))),
        None => {}
    }
    if operation.taken.is_none() {
        found.push(("unfinished", Value::Yes));
    }
    if operation.abandoned {
        found.push(("abandoned", Value::Yes));
    }
    found
}

fn met_name(met: CompletionMet) -> &'static str {
    match met {
        CompletionMet::Peek => "it was already there",
        CompletionMet::AtOnce => "GETEVENTS found it without sleeping",
        CompletionMet::Slept => "the worker slept until it was woken",
    }
}
