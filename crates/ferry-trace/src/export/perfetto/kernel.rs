//! Events of the kernel: requests of rings and of block devices, task work with causes, sleeps and wake-ups.

use std::collections::HashMap;
use std::io::{self, Write};

use super::drawing::{Beneath, Drawing};
use super::flows::Step;
use super::packets::{Event, Value};
use crate::export::rows::Rows;
use crate::model::{Did, KernelEvent, Nanos, Request, Trace};

impl<W: Write> Drawing<'_, '_, W> {
    /// Writes requests from submission to completion, beneath the submitting thread.
    pub(super) fn requests(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let mut groups: HashMap<(u32, u32), (Rows, Vec<u64>)> = HashMap::new();
        let mut order: Vec<usize> = (0..trace.requests.len()).collect();
        order.sort_by_key(|index| trace.requests.get(*index).map(|request| request.submitted));
        for index in order {
            let Some(request) = trace.requests.get(index) else { continue };
            let ended = request.completed.unwrap_or(trace.about.took).max(request.submitted);
            let (rows, tracks) = groups.entry((request.thread, request.ring)).or_default();
            let row = rows.take(request.submitted, ended);
            if row == tracks.len() {
                let name = format!("{}, ring {}", Beneath::Requests.name(), request.ring);
                let Some(track) = self.named(request.thread, Beneath::Requests, &name)? else { continue };
                tracks.push(track);
            }
            if let Some(track) = tracks.get(row) {
                self.request(*track, index, request, ended)?;
            }
        }
        Ok(())
    }

    /// Writes requests of block devices, beneath the device. One whose completion was not recorded takes no time.
    pub(super) fn device_requests(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let mut groups: HashMap<u32, (Rows, Vec<u64>)> = HashMap::new();
        for request in &trace.device_requests {
            let ended = request.completed.unwrap_or(request.issued).max(request.issued);
            let (rows, tracks) = groups.entry(request.device).or_default();
            let row = rows.take(request.issued, ended);
            if row == tracks.len() {
                let Some(track) = self.beneath(request.device, Beneath::Devices)? else { continue };
                tracks.push(track);
            }
            let Some(track) = tracks.get(row).copied() else { continue };
            let mut event = Event::new(track, request.issued, "device", request.kind.name());
            event.arguments =
                vec![("sector", Value::Count(request.sector)), ("size", Value::Count(request.bytes))];
            let by = request.thread.and_then(|thread| trace.threads.get(thread as usize));
            event.arguments.extend(by.map(|thread| ("by", Value::Word(&thread.name))));
            event.arguments.extend(request.completed.is_none().then_some(("unfinished", Value::Yes)));
            event.arguments.extend(request.is_failed.then_some(("failed", Value::Yes)));
            self.packets.slice(event, ended)?;
        }
        Ok(())
    }

    fn request(&mut self, track: u64, index: usize, request: &Request, ended: Nanos) -> io::Result<()> {
        let mut event = Event::new(track, request.submitted, "request", &request.opcode);
        event.arguments.push(("user_data", Value::Count(request.user_data)));
        event.arguments.extend(request.result.map(|result| ("result", Value::Number(i64::from(result)))));
        event.arguments.extend(request.completed.is_none().then_some(("unfinished", Value::Yes)));
        if let Some(operation) = self.flows.of_request(index) {
            self.flows.join(&mut event, operation, Step::Request);
        }
        self.packets.begin(event)?;
        if let Some(at) = request.handed_over {
            let at = at.clamp(request.submitted, ended);
            self.packets.slice(Event::new(track, at, "request", "with a kernel worker"), ended)?;
        }
        self.packets.end(track, ended)
    }

    /// Writes other events on a track beneath the affected thread.
    pub(super) fn kernel(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let chains: Vec<String> = trace.chains.iter().map(|chain| chain.join(" < ")).collect();
        let mut tracks: Vec<Option<(u64, Option<Nanos>)>> = vec![None; trace.threads.len()];
        for event in &trace.kernel {
            let Some(place) = tracks.get_mut(event.thread as usize) else { continue };
            if place.is_none() {
                *place = self.beneath(event.thread, Beneath::Kernel)?.map(|track| (track, None));
            }
            let Some((track, asleep)) = place else { continue };
            let ends_sleep = matches!(event.did, Did::Wake { .. } | Did::Run | Did::Ended);
            if ends_sleep && asleep.take().is_some() {
                self.packets.end(*track, event.at)?;
            }
            let drawn = drawn(trace, &chains, *track, event);
            // Two sleeps without a wake-up in between: the wake-up was not recorded.
            if event.did == Did::Sleep && asleep.replace(event.at).is_none() {
                self.packets.begin(drawn)?;
            } else if event.did != Did::Sleep {
                self.packets.instant(drawn)?;
            }
        }
        for (track, _) in tracks.iter().flatten().filter(|(_, asleep)| asleep.is_some()) {
            self.packets.end(*track, trace.about.took)?;
        }
        Ok(())
    }
}

fn drawn<'a>(trace: &'a Trace, chains: &'a [String], track: u64, event: &KernelEvent) -> Event<'a> {
    let mut arguments = vec![("processor", Value::Count(u64::from(event.processor)))];
    let name = match event.did {
        Did::TaskWork { cause, count } => {
            arguments.push(("cause", Value::Word(cause.name())));
            arguments.push(("count", Value::Count(u64::from(count))));
            "task work"
        }
        Did::TaskAdd => "task work added",
        Did::HandOver(request) => {
            arguments.extend(request.map(|request| ("request", Value::Count(u64::from(request)))));
            "handed to a kernel worker"
        }
        Did::Sleep => "asleep",
        Did::Wake { by } => {
            let by = by.and_then(|by| trace.threads.get(by as usize));
            arguments.extend(by.map(|thread| ("by", Value::Word(&thread.name))));
            "woken"
        }
        Did::Run => "ran again",
        Did::Began => "began",
        Did::Ended => "ended",
    };
    let chain = event.chain.and_then(|chain| chains.get(chain as usize));
    arguments.extend(chain.map(|chain| ("chain", Value::Word(chain))));
    Event::new(track, event.at, "kernel", name).with(arguments)
}
