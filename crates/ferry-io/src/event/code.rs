//! Encodes events: a tag, then time and fiber as differences from the event before. Numbers use LEB128 with folded
//! signs. A name comes last, and is left out if it equals the one before.

use super::{Asked, CompletionMet, Event, Gauge, Key, Opener, SubmitReason};

/// Longest name kept, in bytes.
const LONGEST_NAME: usize = 255;
/// Upper bound of an event's size without its name: 1 tag, five numbers of up to 10 bytes, four of up to 5.
const LONGEST: usize = 80;
/// Upper bound of an event's size.
pub(super) const LONGEST_EVENT: usize = LONGEST + LONGEST_NAME;

/// Values that the next event is relative to.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    time: u64,
    fiber: u32,
    /// Range of the last name among the bytes.
    name: (usize, usize),
}

/// Writes events one after another.
#[derive(Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
    before: Before,
}

/// One event without its name.
struct Short {
    bytes: [u8; LONGEST],
    used: usize,
}

impl Short {
    fn byte(&mut self, byte: u8) {
        self.bytes[self.used] = byte;
        self.used += 1;
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.byte(number.to_le_bytes()[0]);
    }

    fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63).cast_unsigned());
    }

    fn key(&mut self, key: Key) {
        self.number(key.index.into());
        self.number(key.generation.into());
    }
}

impl Encoder {
    /// Continues `bytes`, to which no event refers. Times count from `base`.
    #[must_use]
    pub fn after(bytes: Vec<u8>, base: u64) -> Self {
        Self { bytes, before: Before { time: base, ..Before::default() } }
    }

    /// Returns all bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Adds an event at `time`.
    pub fn add(&mut self, time: u64, event: &Event<'_>) {
        let mut short = Short { bytes: [0; LONGEST], used: 0 };
        short.byte(tag(event));
        short.signed(time.wrapping_sub(self.before.time).cast_signed());
        self.before.time = time;
        let name = self.fields(&mut short, event);
        let Some(name) = name else { return self.bytes.extend_from_slice(&short.bytes[..short.used]) };
        let name = &name[..name.len().min(LONGEST_NAME)];
        let (start, end) = self.before.name;
        if name.is_empty() {
            short.number(0);
        } else if self.bytes.get(start..end).is_some_and(|before| before == name) {
            short.number(1);
        } else {
            short.number(name.len() as u64 + 1);
            self.bytes.extend_from_slice(&short.bytes[..short.used]);
            self.before.name = (self.bytes.len(), self.bytes.len() + name.len());
            return self.bytes.extend_from_slice(name);
        }
        self.bytes.extend_from_slice(&short.bytes[..short.used]);
    }

    fn fiber(&mut self, short: &mut Short, fiber: u32) {
        short.signed(i64::from(fiber) - i64::from(self.before.fiber));
        self.before.fiber = fiber;
    }

    /// Writes all fields except the name, which is returned.
    fn fields<'a>(&mut self, short: &mut Short, event: &Event<'a>) -> Option<&'a [u8]> {
        match *event {
            Event::FiberBegan { fiber, scope } => {
                self.fiber(short, fiber);
                short.number(scope.into());
            }
            Event::FiberNamed { fiber, name } => {
                self.fiber(short, fiber);
                return Some(name);
            }
            Event::FiberEnded { fiber } => self.fiber(short, fiber),
            Event::ScopeOpened { scope, opener, fiber } => {
                short.number(scope.into());
                short.byte(opener as u8);
                self.fiber(short, fiber);
            }
            Event::ScopeCancelled { scope } | Event::ScopeEnded { scope } => short.number(scope.into()),
            Event::Ran { asked, took, result } => {
                short.number(took);
                short.signed(result);
                return Some(self.asked(short, asked));
            }
            Event::Queued { key, asked, waited } => {
                short.key(key);
                short.number(waited);
                return Some(self.asked(short, asked));
            }
            Event::Sent { key } => short.key(key),
            Event::PassedOn { key, reason } => {
                short.key(key);
                short.byte(reason);
            }
            Event::Started { worker, key } | Event::Finished { worker, key } => {
                short.number(worker.into());
                short.key(key);
            }
            Event::CompletionMet { key, how } => {
                short.key(key);
                short.byte(how as u8);
            }
            Event::Taken { key, result, abandoned } => {
                short.key(key);
                short.signed(result);
                short.byte(abandoned.into());
            }
            Event::Submitted { requests, why, in_flight } => {
                short.number(requests.into());
                short.byte(why as u8);
                short.number(in_flight.into());
            }
            Event::Entered { took, submitted, waits, slept, found, taken } => {
                short.number(took);
                short.number(submitted.into());
                short.byte(u8::from(waits) | u8::from(slept) << 1);
                short.number(found.into());
                short.number(taken.into());
            }
            Event::Rested { took } => short.number(took),
            Event::Moved { way, bytes, took, is_trial } => {
                short.byte(way);
                short.number(bytes);
                short.number(took);
                short.byte(is_trial.into());
            }
            Event::Sampled { gauge, value } => {
                short.byte(gauge as u8);
                short.number(value);
            }
        }
        None
    }

    fn asked<'a>(&mut self, short: &mut Short, asked: Asked<'a>) -> &'a [u8] {
        let Asked { kind, fiber, name, size, offset, route, reason } = asked;
        short.byte(kind);
        self.fiber(short, fiber);
        short.number(size);
        short.number(offset.map_or(0, |offset| offset.saturating_add(1)));
        short.byte(route);
        short.byte(reason);
        name
    }
}

fn tag(event: &Event<'_>) -> u8 {
    match event {
        Event::FiberBegan { .. } => 1,
        Event::FiberNamed { .. } => 2,
        Event::FiberEnded { .. } => 3,
        Event::ScopeOpened { .. } => 4,
        Event::ScopeCancelled { .. } => 5,
        Event::ScopeEnded { .. } => 6,
        Event::Ran { .. } => 7,
        Event::Queued { .. } => 8,
        Event::Sent { .. } => 9,
        Event::PassedOn { .. } => 10,
        Event::Started { .. } => 11,
        Event::Finished { .. } => 12,
        Event::CompletionMet { .. } => 13,
        Event::Taken { .. } => 14,
        Event::Submitted { .. } => 15,
        Event::Entered { .. } => 16,
        Event::Rested { .. } => 17,
        Event::Sampled { .. } => 18,
        Event::Moved { .. } => 19,
    }
}

/// Reads events from a chunk's bytes.
#[derive(Debug, Clone)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    before: Before,
}

impl<'a> Decoder<'a> {
    /// Decodes events that were written by [`Encoder::after`] with no bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8], base: u64) -> Self {
        Self { bytes, at: 0, before: Before { time: base, ..Before::default() } }
    }

    /// Returns true if every byte was read.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Returns the next event with its time; `None` at the end or for malformed bytes.
    pub fn next_event(&mut self) -> Option<(u64, Event<'a>)> {
        let tag = self.byte()?;
        let time = self.before.time.wrapping_add(self.signed()?.cast_unsigned());
        self.before.time = time;
        let event = match tag {
            1 => Event::FiberBegan { fiber: self.fiber()?, scope: self.short()? },
            2 => Event::FiberNamed { fiber: self.fiber()?, name: self.name()? },
            3 => Event::FiberEnded { fiber: self.fiber()? },
            4 => Event::ScopeOpened { scope: self.short()?, opener: self.opener()?, fiber: self.fiber()? },
            5 => Event::ScopeCancelled { scope: self.short()? },
            6 => Event::ScopeEnded { scope: self.short()? },
            7 => Event::Ran { took: self.number()?, result: self.signed()?, asked: self.asked()? },
            8 => Event::Queued { key: self.key()?, waited: self.number()?, asked: self.asked()? },
            9 => Event::Sent { key: self.key()? },
            10 => Event::PassedOn { key: self.key()?, reason: self.byte()? },
            11 => Event::Started { worker: self.short()?, key: self.key()? },
            12 => Event::Finished { worker: self.short()?, key: self.key()? },
            13 => Event::CompletionMet { key: self.key()?, how: self.met()? },
            14 => Event::Taken { key: self.key()?, result: self.signed()?, abandoned: self.byte()? != 0 },
            15 => Event::Submitted { requests: self.short()?, why: self.why()?, in_flight: self.short()? },
            16 => self.entered()?,
            17 => Event::Rested { took: self.number()? },
            18 => Event::Sampled { gauge: self.gauge()?, value: self.number()? },
            19 => self.moved()?,
            _unknown => return None,
        };
        Some((time, event))
    }

    fn entered(&mut self) -> Option<Event<'a>> {
        let (took, submitted, flags) = (self.number()?, self.short()?, self.byte()?);
        let (waits, slept) = (flags & 1 != 0, flags & 2 != 0);
        Some(Event::Entered { took, submitted, waits, slept, found: self.short()?, taken: self.short()? })
    }

    fn moved(&mut self) -> Option<Event<'a>> {
        let (way, bytes, took) = (self.byte()?, self.number()?, self.number()?);
        Some(Event::Moved { way, bytes, took, is_trial: self.byte()? != 0 })
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn short(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn signed(&mut self) -> Option<i64> {
        let folded = self.number()?;
        Some((folded >> 1).cast_signed() ^ -(folded & 1).cast_signed())
    }

    fn key(&mut self) -> Option<Key> {
        Some(Key { index: self.short()?, generation: self.short()? })
    }

    fn fiber(&mut self) -> Option<u32> {
        let fiber = i64::from(self.before.fiber).checked_add(self.signed()?)?;
        self.before.fiber = u32::try_from(fiber).ok()?;
        Some(self.before.fiber)
    }

    fn name(&mut self) -> Option<&'a [u8]> {
        match usize::try_from(self.number()?).ok()? {
            0 => Some(&[]),
            1 => self.bytes.get(self.before.name.0..self.before.name.1),
            more => {
                // A longer name was never written, and each later event could repeat it for one byte.
                let length = Some(more - 1).filter(|length| *length <= LONGEST_NAME)?;
                let end = self.at + length;
                let name = self.bytes.get(self.at..end)?;
                self.before.name = (self.at, end);
                self.at = end;
                Some(name)
            }
        }
    }

    fn asked(&mut self) -> Option<Asked<'a>> {
        let (kind, fiber, size) = (self.byte()?, self.fiber()?, self.number()?);
        let offset = self.number()?.checked_sub(1);
        let (route, reason) = (self.byte()?, self.byte()?);
        Some(Asked { kind, fiber, size, offset, route, reason, name: self.name()? })
    }

    fn opener(&mut self) -> Option<Opener> {
        let all = [Opener::Run, Opener::Scope, Opener::ForEach, Opener::Join];
        all.get(usize::from(self.byte()?)).copied()
    }

    fn why(&mut self) -> Option<SubmitReason> {
        [SubmitReason::Full, SubmitReason::Idle, SubmitReason::Forced].get(usize::from(self.byte()?)).copied()
    }

    fn met(&mut self) -> Option<CompletionMet> {
        [CompletionMet::Peek, CompletionMet::AtOnce, CompletionMet::Slept]
            .get(usize::from(self.byte()?))
            .copied()
    }

    fn gauge(&mut self) -> Option<Gauge> {
        [Gauge::InFlight, Gauge::Blocks, Gauge::Descriptors].get(usize::from(self.byte()?)).copied()
    }
}
