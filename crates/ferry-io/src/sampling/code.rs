//! Encodes kernel events for a recording: a tag, then time, thread and ring as differences from the event before.
//! Numbers use LEB128 with folded signs.

use super::{DeviceKind, Event, SampleKind};

/// Longest name of a thread in bytes: 15 for the kernel, each of which may have become a replacement character.
const LONGEST_NAME: usize = 48;

/// Values that the next event is relative to.
#[derive(Debug, Clone, Copy)]
struct Before {
    at: u64,
    tid: u32,
    ring: u64,
}

/// Writes events one after another.
#[derive(Debug)]
pub struct Encoder {
    bytes: Vec<u8>,
    before: Before,
}

impl Encoder {
    /// Continues `bytes`; times count from `base`.
    #[must_use]
    pub fn after(bytes: Vec<u8>, base: u64) -> Self {
        Self { bytes, before: Before { at: base, tid: 0, ring: 0 } }
    }

    /// Returns all bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Adds an event.
    pub fn add(&mut self, event: &Event) {
        self.bytes.push(tag(&event.what));
        self.signed(event.at.wrapping_sub(self.before.at).cast_signed());
        self.before.at = event.at;
        self.signed(i64::from(event.tid) - i64::from(self.before.tid));
        self.before.tid = event.tid;
        self.number(event.processor.into());
        self.number(event.chain.map_or(0, |chain| u64::from(chain) + 1));
        match event.what {
            SampleKind::Began { parent: number } | SampleKind::Wake { woken: number, .. } => {
                self.number(number.into())
            }
            SampleKind::Named(ref name) => {
                self.number(u64::try_from(name.len()).unwrap_or(u64::MAX));
                self.bytes.extend_from_slice(name.as_bytes());
            }
            SampleKind::Ended | SampleKind::Sleep | SampleKind::Run => {}
            SampleKind::TaskWork { count, ring } => {
                self.number(count.into());
                self.ring(ring.unwrap_or(0));
            }
            SampleKind::TaskAdd { ring, user_data } | SampleKind::HandOver { ring, user_data } => {
                self.ring(ring);
                self.number(user_data);
            }
            SampleKind::Submit { ring, user_data, opcode } => {
                self.ring(ring);
                self.number(user_data);
                self.number(opcode.into());
            }
            SampleKind::Complete { ring, user_data, result } => {
                self.ring(ring);
                self.number(user_data);
                self.signed(result.into());
            }
            SampleKind::Enter { requests, completions, flags } => {
                self.number(requests.into());
                self.number(completions.into());
                self.number(flags.into());
            }
            SampleKind::Leave { result } => self.signed(result.into()),
            SampleKind::DeviceIssue { device, sector, kind, bytes } => {
                self.device(device, sector, kind);
                self.number(bytes.into());
            }
            SampleKind::DeviceComplete { device, sector, kind, is_failed } => {
                self.device(device, sector, kind);
                self.number(is_failed.into());
            }
        }
    }

    fn device(&mut self, device: u32, sector: u64, kind: DeviceKind) {
        self.number(device.into());
        self.number(sector);
        self.number(kind as u64);
    }

    fn ring(&mut self, ring: u64) {
        self.signed(ring.wrapping_sub(self.before.ring).cast_signed());
        self.before.ring = ring;
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.bytes.push(number.to_le_bytes()[0]);
    }

    fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63).cast_unsigned());
    }
}

fn tag(what: &SampleKind) -> u8 {
    match what {
        SampleKind::Began { .. } => 1,
        SampleKind::Named(_) => 2,
        SampleKind::Ended => 3,
        SampleKind::TaskWork { .. } => 4,
        SampleKind::TaskAdd { .. } => 5,
        SampleKind::Submit { .. } => 6,
        SampleKind::HandOver { .. } => 7,
        SampleKind::Complete { .. } => 8,
        SampleKind::Enter { .. } => 9,
        SampleKind::Leave { .. } => 10,
        SampleKind::Sleep => 11,
        SampleKind::Wake { by_interrupt: false, .. } => 12,
        SampleKind::Wake { by_interrupt: true, .. } => 13,
        SampleKind::Run => 14,
        SampleKind::DeviceIssue { .. } => 15,
        SampleKind::DeviceComplete { .. } => 16,
    }
}

/// Reads events from a chunk's bytes.
#[derive(Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    before: Before,
}

impl<'a> Decoder<'a> {
    /// Decodes events that were written by [`Encoder::after`] with no bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8], base: u64) -> Self {
        Self { bytes, before: Before { at: base, tid: 0, ring: 0 } }
    }

    /// Returns true if every byte was read.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the next event; `None` at the end or for malformed bytes.
    pub fn next_event(&mut self) -> Option<Event> {
        let tag = self.byte()?;
        let at = self.before.at.wrapping_add(self.signed()?.cast_unsigned());
        self.before.at = at;
        let tid = u32::try_from(i64::from(self.before.tid).checked_add(self.signed()?)?).ok()?;
        self.before.tid = tid;
        let processor = self.short()?;
        let chain = match self.number()? {
            0 => None,
            more => Some(u32::try_from(more - 1).ok()?),
        };
        let what = match tag {
            1 => SampleKind::Began { parent: self.short()? },
            2 => {
                // A longer name was never written, and each new thread could repeat it.
                let size = usize::try_from(self.number()?).ok().filter(|size| *size <= LONGEST_NAME)?;
                let (name, rest) = self.bytes.split_at_checked(size)?;
                self.bytes = rest;
                SampleKind::Named(String::from_utf8_lossy(name).into_owned())
            }
            3 => SampleKind::Ended,
            4 => SampleKind::TaskWork {
                count: self.short()?,
                ring: Some(self.ring()?).filter(|ring| *ring != 0),
            },
            5 => SampleKind::TaskAdd { ring: self.ring()?, user_data: self.number()? },
            6 => SampleKind::Submit { ring: self.ring()?, user_data: self.number()?, opcode: self.opcode()? },
            7 => SampleKind::HandOver { ring: self.ring()?, user_data: self.number()? },
            8 => {
                SampleKind::Complete { ring: self.ring()?, user_data: self.number()?, result: self.result()? }
            }
            9 => SampleKind::Enter {
                requests: self.short()?,
                completions: self.short()?,
                flags: self.short()?,
            },
            10 => SampleKind::Leave { result: self.result()? },
            11 => SampleKind::Sleep,
            12 => SampleKind::Wake { woken: self.short()?, by_interrupt: false },
            13 => SampleKind::Wake { woken: self.short()?, by_interrupt: true },
            14 => SampleKind::Run,
            15 => SampleKind::DeviceIssue {
                device: self.short()?,
                sector: self.number()?,
                kind: DeviceKind::at(self.number()?)?,
                bytes: self.short()?,
            },
            16 => SampleKind::DeviceComplete {
                device: self.short()?,
                sector: self.number()?,
                kind: DeviceKind::at(self.number()?)?,
                is_failed: self.number()? != 0,
            },
            _ => return None,
        };
        Some(Event { at, tid, processor, chain, what })
    }

    fn ring(&mut self) -> Option<u64> {
        let ring = self.before.ring.wrapping_add(self.signed()?.cast_unsigned());
        self.before.ring = ring;
        Some(ring)
    }

    fn opcode(&mut self) -> Option<u8> {
        u8::try_from(self.number()?).ok()
    }

    fn result(&mut self) -> Option<i32> {
        i32::try_from(self.signed()?).ok()
    }

    fn short(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let folded = self.number()?;
        Some((folded >> 1).cast_signed() ^ -(folded & 1).cast_signed())
    }
}
