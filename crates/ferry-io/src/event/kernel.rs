//! The kernel's side of a recording: events of [`crate::sampling`] in chunks of the same file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::file::{CHUNK_HEADER, Chunk, ChunkKind, Fields, LARGEST_CHUNK};
use super::queue::Queue;
use crate::sampling::{Encoder, Event, Refusal, Sampling, Summary, ThreadSelection};

/// Number of buffers in addition to those of the program's threads.
pub(super) const BUFFERS: usize = 16;
/// Longest name of an operation or of a device, in bytes; the kernel's names are far shorter.
const LONGEST_NAME: usize = 255;
/// Upper bound of an event's size: a tag, nine numbers of up to 10 bytes, and a name of 16.
const LONGEST_EVENT: usize = 128;

/// A recording of the kernel's side in progress.
#[derive(Debug)]
pub(super) struct Side {
    sampling: Sampling,
    lost: Arc<AtomicU64>,
    /// Later events are left out.
    end: Arc<AtomicU64>,
}

impl Side {
    /// Begins sampling if permitted.
    pub(super) fn begin(
        whose: ThreadSelection,
        queue: Arc<Queue>,
        most_buffers: usize,
        buffer_bytes: usize,
    ) -> Result<Self, Refusal> {
        let lost = Arc::new(AtomicU64::new(0));
        let end = Arc::new(AtomicU64::new(u64::MAX));
        let mut chunks = Chunks { queue, most_buffers, buffer_bytes, lost: Arc::clone(&lost), open: None };
        let last = Arc::clone(&end);
        let sampling = Sampling::start(whose, move |events: &[Event]| {
            let last = last.load(Ordering::Relaxed);
            events.iter().filter(|event| event.at <= last).for_each(|event| chunks.add(event));
        })?;
        Ok(Self { sampling, lost, end })
    }

    /// Ends sampling at time `ended`. All chunks have been handed over on return.
    pub(super) fn finish(self, ended: u64) -> Summary {
        self.end.store(ended, Ordering::Relaxed);
        let mut summary = self.sampling.finish();
        summary.lost += self.lost.load(Ordering::Relaxed);
        summary
    }
}

/// A chunk being filled.
struct Open {
    encoder: Encoder,
    events: u32,
    base: u64,
}

/// Puts events into chunks; counts events without a buffer as lost.
struct Chunks {
    queue: Arc<Queue>,
    most_buffers: usize,
    buffer_bytes: usize,
    lost: Arc<AtomicU64>,
    open: Option<Open>,
}

impl Chunks {
    fn add(&mut self, event: &Event) {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                let Some(mut bytes) = self.queue.take_buffer(self.most_buffers, self.buffer_bytes) else {
                    self.lost.fetch_add(1, Ordering::Relaxed);
                    return;
                };
                bytes.clear();
                bytes.resize(CHUNK_HEADER, 0);
                Open { encoder: Encoder::after(bytes, event.at), events: 0, base: event.at }
            }
        };
        open.encoder.add(event);
        open.events += 1;
        let is_full = open.encoder.size() + LONGEST_EVENT > self.buffer_bytes;
        self.open = Some(open);
        if is_full {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        if let Some(Open { encoder, events, base }) = self.open.take() {
            let chunk = Chunk { events, base, ..Chunk::plain(ChunkKind::Kernel) };
            self.queue.hand_over(chunk, encoder.into_bytes());
        }
    }
}

impl Drop for Chunks {
    /// Hands over the last chunk when sampling ends.
    fn drop(&mut self) {
        self.hand_over();
    }
}

/// Converts a summary to fields.
pub(super) fn fields(summary: &Summary) -> Fields {
    let mut fields = Fields::default();
    fields.add_one("lost", summary.lost);
    let mut missing = summary.missing.clone();
    // The other fields get at least half of a chunk's limit.
    let mut room = usize::try_from(LARGEST_CHUNK / 2).unwrap_or(0);
    let chains = summary.chains.iter().map(|chain| chain.join("\n"));
    let chains: Vec<String> = chains
        .take_while(|chain| {
            let fits = chain.len() + 4 <= room;
            room = room.saturating_sub(chain.len() + 4);
            fits
        })
        .collect();
    if chains.len() < summary.chains.len() {
        missing.push(format!("only {} of {} call chains are there", chains.len(), summary.chains.len()));
    }
    fields.add("missing", missing);
    let (codes, names): (Vec<String>, Vec<&String>) =
        summary.operations.iter().map(|(code, name)| (code.to_string(), name)).unzip();
    fields.add("operation_codes", codes);
    fields.add("operation_names", names);
    let (numbers, names): (Vec<String>, Vec<&String>) =
        summary.devices.iter().map(|(number, name)| (number.to_string(), name)).unzip();
    fields.add("device_numbers", numbers);
    fields.add("device_names", names);
    fields.add("chains", chains);
    fields.add("chain_of", summary.chain_of.iter().map(u32::to_string));
    fields
}

/// Converts fields back to a summary; `None` if they are malformed.
#[must_use]
pub fn summary_of(fields: &Fields) -> Option<Summary> {
    let codes = fields.texts("operation_codes").map(|code| code.parse().ok());
    let names = fields.list("operation_names").iter().chain(fields.list("device_names"));
    // A longer name was never written, and each request repeats its name.
    if names.into_iter().any(|name| name.len() > LONGEST_NAME) {
        return None;
    }
    let operations = codes.zip(fields.texts("operation_names"));
    let numbers = fields.texts("device_numbers").map(|number| number.parse().ok());
    let devices = numbers.zip(fields.texts("device_names"));
    Some(Summary {
        lost: fields.number("lost")?,
        missing: fields.texts("missing").collect(),
        counts: Vec::new(),
        operations: operations.map(|(code, name)| Some((code?, name))).collect::<Option<_>>()?,
        devices: devices.map(|(number, name)| Some((number?, name))).collect::<Option<_>>()?,
        chains: fields.texts("chains").map(|chain| chain.lines().map(str::to_owned).collect()).collect(),
        chain_of: fields.texts("chain_of").map(|place| place.parse().ok()).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests;
