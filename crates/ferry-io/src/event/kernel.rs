//! The kernel's side of a recording: what [`crate::sampling`] finds, in chunks of the same file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::file::{CHUNK_HEADER, Chunk, Fields, Kind, LARGEST_CHUNK};
use super::queue::Queue;
use crate::sampling::{Encoder, Event, Refusal, Sampling, Summary, Whose};

/// Buffers that it may have besides those of the program's threads.
pub(super) const BUFFERS: usize = 16;
/// The longest name of an operation; the kernel's are far shorter.
const LONGEST_NAME: usize = 255;
/// More than any event needs: a tag, nine numbers of 10 bytes at most, and a name of 16.
const LONGEST_EVENT: usize = 128;

/// What is being recorded of the kernel.
#[derive(Debug)]
pub(super) struct Side {
    sampling: Sampling,
    lost: Arc<AtomicU64>,
    /// What comes later is not of the recording.
    end: Arc<AtomicU64>,
}

impl Side {
    /// Begins, where that is allowed.
    pub(super) fn begin(
        whose: Whose,
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

    /// Ends with what there was until then; all chunks have been handed over when it returns.
    pub(super) fn finish(self, ended: u64) -> Summary {
        self.end.store(ended, Ordering::Relaxed);
        let mut summary = self.sampling.finish();
        summary.lost += self.lost.load(Ordering::Relaxed);
        summary
    }
}

/// A chunk that is being filled.
struct Open {
    encoder: Encoder,
    events: u32,
    base: u64,
}

/// Puts events into chunks. What finds no buffer is lost, and counted.
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
            let chunk = Chunk { events, base, ..Chunk::plain(Kind::Kernel) };
            self.queue.hand_over(chunk, encoder.into_bytes());
        }
    }
}

impl Drop for Chunks {
    /// The sampling has ended.
    fn drop(&mut self) {
        self.hand_over();
    }
}

/// What is known at the end, as fields.
pub(super) fn fields(summary: &Summary) -> Fields {
    let mut fields = Fields::default();
    fields.add_one("lost", summary.lost);
    let mut missing = summary.missing.clone();
    // Half of what a chunk may hold is left for what else there is.
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
    fields.add("chains", chains);
    fields.add("chain_of", summary.chain_of.iter().map(u32::to_string));
    fields
}

/// The same, read again; `None` if they make no sense.
#[must_use]
pub fn summary_of(fields: &Fields) -> Option<Summary> {
    let codes = fields.texts("operation_codes").map(|code| code.parse().ok());
    let names = fields.list("operation_names");
    // Each request repeats one.
    if names.iter().any(|name| name.len() > LONGEST_NAME) {
        return None;
    }
    let operations = codes.zip(fields.texts("operation_names"));
    Some(Summary {
        lost: fields.number("lost")?,
        missing: fields.texts("missing").collect(),
        counts: Vec::new(),
        operations: operations.map(|(code, name)| Some((code?, name))).collect::<Option<_>>()?,
        chains: fields.texts("chains").map(|chain| chain.lines().map(str::to_owned).collect()).collect(),
        chain_of: fields.texts("chain_of").map(|place| place.parse().ok()).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests;
