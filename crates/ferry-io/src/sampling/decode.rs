//! Decodes the kernel's records (perf_event_open(2), `PERF_RECORD_*`) to events.
//!
//! Nothing is trusted: incomplete records and unknown types are skipped.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::tracepoint::{Format, Tracepoint};
use super::{DeviceKind, Event, SampleKind};

/// Maximum number of distinct call chains; later events with other chains have none and are counted.
pub(super) const MOST_CHAINS: usize = 1 << 16;

const LOST: u32 = 2;
const NAMED: u32 = 3;
const ENDED: u32 = 4;
const BEGAN: u32 = 7;
const SAMPLE: u32 = 9;
const SWITCHED: u32 = 14;
/// Flags of [`SWITCHED`]: the thread left the processor; it was preempted (Linux 4.17).
const OUT: u32 = 1 << 13;
const PREEMPTED: u32 = 1 << 14;
/// Bits of `common_flags` during a device's or a software interrupt (tracefs' 'h' and 's').
const IN_INTERRUPT: u64 = 8 | 16;
/// Size of a record's header: type, flags and size.
const HEADER: usize = 8;
/// Smallest of the markers in a chain that name the context of the following addresses.
const CONTEXTS: u64 = u64::MAX - 4094;

/// State of decoding.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    pub(super) formats: Vec<Format>,
    chains: HashMap<Box<[u64]>, u32>,
    /// By index.
    pub(super) distinct: Vec<Box<[u64]>>,
    /// Number of events whose chain was left out.
    pub(super) chainless: u64,
    /// Names of ring operations.
    pub(super) operations: Vec<(u8, String)>,
    /// Numbers of the block devices with requests.
    pub(super) devices: BTreeSet<u32>,
    /// Samples of each tracepoint.
    pub(super) counts: HashMap<Tracepoint, u64>,
    /// Number of lost events by LOST records.
    pub(super) lost: u64,
    /// Sampled threads; wake-ups of others are skipped.
    threads: HashSet<u32>,
}

/// Reads a record's words one after another.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (found, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(found)
    }

    fn half(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn whole(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(8)?.try_into().ok()?))
    }
}

impl Decoder {
    /// Creates a decoder for this kernel's tracepoints and the first thread, if it exists already.
    pub(super) fn of(formats: Vec<Format>, thread: Option<u32>) -> Self {
        Self { formats, threads: thread.into_iter().collect(), ..Self::default() }
    }

    /// Returns true if this kernel has the tracepoint.
    pub(super) fn has(&self, tracepoint: Tracepoint) -> bool {
        self.formats.iter().any(|format| format.tracepoint == tracepoint)
    }

    /// Adds the thread events of one buffer. Called for all buffers before [`Decoder::decode`], because a thread woken
    /// on one processor may have begun on another.
    pub(super) fn decode_threads(&mut self, bytes: &[u8], into: &mut Vec<Event>) {
        for (kind, _, body) in records(bytes) {
            let event = match kind {
                BEGAN | ENDED => thread(kind, Words(body)),
                NAMED => named(Words(body)),
                _ => None,
            };
            self.threads.extend(event.iter().map(|event| event.tid));
            into.extend(event);
        }
    }

    /// Adds the other events of one buffer.
    pub(super) fn decode(&mut self, bytes: &[u8], into: &mut Vec<Event>) {
        for (kind, flags, body) in records(bytes) {
            match kind {
                SAMPLE => into.extend(self.sample(Words(body))),
                SWITCHED => into.extend(switched(flags, Words(body))),
                LOST => {
                    let mut words = Words(body);
                    self.lost += words.whole().and(words.whole()).unwrap_or(0);
                }
                _ => {}
            }
        }
    }

    /// Decodes TID, TIME, CPU, CALLCHAIN and RAW, in the kernel's order.
    fn sample(&mut self, mut words: Words<'_>) -> Option<Event> {
        let (_, tid) = (words.half()?, words.half()?);
        let at = words.whole()?;
        let (processor, _) = (words.half()?, words.half()?);
        let depth = usize::try_from(words.whole()?).ok()?;
        let chain = words.bytes(depth.checked_mul(8)?)?;
        let size = usize::try_from(words.half()?).ok()?;
        let raw = words.bytes(size)?;
        let number = u16::from_ne_bytes(raw.get(..2)?.try_into().ok()?);
        let format = self.formats.iter().position(|format| format.number == number)?;
        let what = self.what(format, raw)?;
        let has_chain = self.formats[format].tracepoint.has_chain();
        let chain = if has_chain { self.chain(chain) } else { None };
        Some(Event { at, tid, processor, chain, what })
    }

    fn what(&mut self, format: usize, raw: &[u8]) -> Option<SampleKind> {
        let format = &self.formats[format];
        let field = |index: usize| format.fields.get(index).and_then(|field| field.of(raw));
        let number = |index| field(index).and_then(|value| u32::try_from(value).ok());
        let device_kind = |index: usize| Some(DeviceKind::of(format.fields.get(index)?.bytes(raw)?));
        *self.counts.entry(format.tracepoint).or_default() += 1;
        Some(match format.tracepoint {
            Tracepoint::TaskWorkRun => SampleKind::TaskWork { count: number(0)?, ring: None },
            Tracepoint::LocalWorkRun => SampleKind::TaskWork { count: number(0)?, ring: field(1) },
            Tracepoint::TaskAdd => SampleKind::TaskAdd { ring: field(0)?, user_data: field(1)? },
            Tracepoint::HandOver => SampleKind::HandOver { ring: field(0)?, user_data: field(1)? },
            Tracepoint::Submit => {
                let opcode = u8::try_from(field(2)?).ok()?;
                if !self.operations.iter().any(|(known, _)| *known == opcode) {
                    let place = format.operation.and_then(|field| field.of(raw));
                    let name = place.and_then(|place| text_at(raw, place));
                    self.operations.push((opcode, name.unwrap_or_else(|| format!("opcode {opcode}"))));
                }
                SampleKind::Submit { ring: field(0)?, user_data: field(1)?, opcode }
            }
            Tracepoint::Complete => {
                let result = i32::try_from(field(2)?.cast_signed()).ok()?;
                SampleKind::Complete { ring: field(0)?, user_data: field(1)?, result }
            }
            Tracepoint::Enter => {
                SampleKind::Enter { requests: number(0)?, completions: number(1)?, flags: number(2)? }
            }
            Tracepoint::Leave => SampleKind::Leave { result: i32::try_from(field(0)?.cast_signed()).ok()? },
            Tracepoint::Waking => {
                let (woken, by_interrupt) = (number(0)?, field(1)? & IN_INTERRUPT != 0);
                self.threads.contains(&woken).then_some(SampleKind::Wake { woken, by_interrupt })?
            }
            Tracepoint::DeviceIssue => {
                let device = number(0)?;
                self.devices.insert(device);
                SampleKind::DeviceIssue {
                    device,
                    sector: field(1)?,
                    kind: device_kind(2)?,
                    bytes: number(3)?,
                }
            }
            Tracepoint::DeviceComplete => SampleKind::DeviceComplete {
                device: number(0)?,
                // A flush has no sector: it is issued with 0 and completed with -1.
                sector: field(1).map(|sector| if sector == u64::MAX { 0 } else { sector })?,
                kind: device_kind(2)?,
                is_failed: field(3)? != 0,
            },
        })
    }

    fn chain(&mut self, bytes: &[u8]) -> Option<u32> {
        let addresses = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok().map(u64::from_ne_bytes));
        let chain: Box<[u64]> = addresses.filter(|address| *address < CONTEXTS).collect();
        if chain.is_empty() {
            return None;
        }
        if let Some(index) = self.chains.get(&chain) {
            return Some(*index);
        }
        if self.distinct.len() == MOST_CHAINS {
            self.chainless += 1;
            return None;
        }
        let index = u32::try_from(self.distinct.len()).ok()?;
        self.chains.insert(chain.clone(), index);
        self.distinct.push(chain);
        Some(index)
    }
}

/// The records in the bytes of a buffer, as kind, flags and content.
fn records(bytes: &[u8]) -> impl Iterator<Item = (u32, u32, &[u8])> {
    let mut rest = Words(bytes);
    std::iter::from_fn(move || {
        let mut header = Words(rest.bytes(HEADER)?);
        let (kind, sizes) = (header.half()?, header.half()?);
        // The upper half is the total size; the lower half are flags.
        let size = usize::try_from(sizes >> 16).ok()?.checked_sub(HEADER)?;
        Some((kind, sizes & 0xffff, rest.bytes(size)?))
    })
}

/// A string in a sample: `place` has its size in the upper half and its offset in the lower.
fn text_at(raw: &[u8], place: u64) -> Option<String> {
    let (start, size) =
        (usize::try_from(place & 0xffff).ok()?, usize::try_from((place >> 16) & 0xffff).ok()?);
    let bytes = raw.get(start..start.checked_add(size)?)?;
    Some(until_zero(bytes))
}

fn until_zero(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// Process, parent's process, thread, parent's thread, time.
fn thread(kind: u32, mut words: Words<'_>) -> Option<Event> {
    let (_, _) = (words.half()?, words.half()?);
    let (tid, parent) = (words.half()?, words.half()?);
    let at = words.whole()?;
    let what = if kind == BEGAN { SampleKind::Began { parent } } else { SampleKind::Ended };
    Some(Event { at, tid, processor: 0, chain: None, what })
}

/// Process, thread, time, processor.
fn switched(flags: u32, mut words: Words<'_>) -> Option<Event> {
    let (_, tid) = (words.half()?, words.half()?);
    let at = words.whole()?;
    let processor = words.half()?;
    let what = match flags & (OUT | PREEMPTED) {
        0 => SampleKind::Run,
        OUT => SampleKind::Sleep,
        _ => return None,
    };
    Some(Event { at, tid, processor, chain: None, what })
}

/// Process, thread, name; these have no time.
fn named(mut words: Words<'_>) -> Option<Event> {
    let (_, tid) = (words.half()?, words.half()?);
    let name = until_zero(words.0);
    Some(Event { at: 0, tid, processor: 0, chain: None, what: SampleKind::Named(name) })
}
