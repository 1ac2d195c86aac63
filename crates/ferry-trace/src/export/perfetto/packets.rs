//! Packets of one sequence, with strings that are written only once.

use std::collections::HashMap;
use std::io::{self, Write};

use prost::Message;

use super::proto::{
    COUNTER, Clock, ClockSnapshot, DebugAnnotation, INSTANT, Interned, InternedData, NEEDS_STATE, PACKET_KEY,
    SLICE_BEGIN, SLICE_END, STATE_CLEARED, SystemInfo, TracePacket, TracePacketDefaults, TrackDescriptor,
    TrackEvent,
};
use crate::model::Nanos;

/// Number of the only sequence.
const SEQUENCE: u32 = 1;

pub(super) enum Value<'a> {
    Count(u64),
    Number(i64),
    /// A frequent string, which is interned.
    Word(&'a str),
    /// A rare string.
    Text(&'a str),
    Yes,
}

pub(super) type Arguments<'a> = Vec<(&'static str, Value<'a>)>;

/// A beginning slice, or an instant.
pub(super) struct Event<'a> {
    pub(super) track: u64,
    pub(super) at: Nanos,
    pub(super) category: &'static str,
    pub(super) name: &'a str,
    /// True if the name is interned.
    pub(super) is_common: bool,
    pub(super) arguments: Arguments<'a>,
    pub(super) flows: Vec<u64>,
    /// Flows that end in it.
    pub(super) ending: Vec<u64>,
}

impl<'a> Event<'a> {
    pub(super) fn new(track: u64, at: Nanos, category: &'static str, name: &'a str) -> Self {
        Self {
            track,
            at,
            category,
            name,
            is_common: true,
            arguments: Vec::new(),
            flows: Vec::new(),
            ending: Vec::new(),
        }
    }

    pub(super) fn with(mut self, arguments: Arguments<'a>) -> Self {
        self.arguments.extend(arguments);
        self
    }
}

/// Interned strings of one type, and the new ones to write with the next packet.
#[derive(Default)]
struct Strings {
    known: HashMap<String, u64>,
    untold: Vec<Interned>,
}

impl Strings {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.known.get(text) {
            return *number;
        }
        let number = self.known.len() as u64 + 1;
        self.known.insert(text.to_owned(), number);
        self.untold.push(Interned { iid: Some(number), name: Some(text.to_owned()) });
        number
    }
}

pub(super) struct Packets<'w, W> {
    out: &'w mut W,
    buffer: Vec<u8>,
    /// Offset added to each time.
    clock: u64,
    categories: Strings,
    names: Strings,
    arguments: Strings,
    values: Strings,
    tracks: u64,
}

impl<'w, W: Write> Packets<'w, W> {
    /// Writes the first packet, which relates the clock of all times to real time in nanoseconds.
    pub(super) fn open(out: &'w mut W, clock: u64, real: u64) -> io::Result<Self> {
        let mut packets = Self {
            out,
            buffer: Vec::new(),
            clock,
            categories: Strings::default(),
            names: Strings::default(),
            arguments: Strings::default(),
            values: Strings::default(),
            tracks: 0,
        };
        let of = |id, timestamp| Clock { clock_id: Some(id), timestamp: Some(timestamp) };
        let clocks = vec![of(super::proto::CLOCK_MONOTONIC, clock), of(super::proto::CLOCK_REALTIME, real)];
        packets.send(TracePacket {
            clock_snapshot: Some(ClockSnapshot {
                clocks,
                primary_trace_clock: Some(super::proto::CLOCK_MONOTONIC),
            }),
            trace_packet_defaults: Some(TracePacketDefaults {
                timestamp_clock_id: Some(super::proto::CLOCK_MONOTONIC),
            }),
            sequence_flags: Some(STATE_CLEARED),
            ..TracePacket::default()
        })?;
        Ok(packets)
    }

    pub(super) fn system(&mut self, system: SystemInfo) -> io::Result<()> {
        self.send(TracePacket { system_info: Some(system), ..TracePacket::default() })
    }

    /// Writes a track, and returns its number.
    pub(super) fn track(&mut self, descriptor: TrackDescriptor) -> io::Result<u64> {
        self.tracks += 1;
        let descriptor = TrackDescriptor { uuid: Some(self.tracks), ..descriptor };
        self.send(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() })?;
        Ok(self.tracks)
    }

    /// Begins a slice.
    pub(super) fn begin(&mut self, event: Event<'_>) -> io::Result<()> {
        self.event(event, SLICE_BEGIN)
    }

    pub(super) fn instant(&mut self, event: Event<'_>) -> io::Result<()> {
        self.event(event, INSTANT)
    }

    /// Ends the innermost slice of the track.
    pub(super) fn end(&mut self, track: u64, at: Nanos) -> io::Result<()> {
        self.send_event(
            at,
            TrackEvent { r#type: Some(SLICE_END), track_uuid: Some(track), ..TrackEvent::default() },
        )
    }

    /// Writes a slice that contains no other.
    pub(super) fn slice(&mut self, event: Event<'_>, ended: Nanos) -> io::Result<()> {
        let (track, ended) = (event.track, ended.max(event.at));
        self.begin(event)?;
        self.end(track, ended)
    }

    pub(super) fn counter(&mut self, track: u64, at: Nanos, value: u64) -> io::Result<()> {
        self.send_event(
            at,
            TrackEvent {
                r#type: Some(COUNTER),
                track_uuid: Some(track),
                counter_value: Some(i64::try_from(value).unwrap_or(i64::MAX)),
                ..TrackEvent::default()
            },
        )
    }

    fn event(&mut self, event: Event<'_>, kind: i32) -> io::Result<()> {
        let category = self.categories.number(event.category);
        let (name_iid, name) = if event.is_common {
            (Some(self.names.number(event.name)), None)
        } else {
            (None, Some(event.name.to_owned()))
        };
        let debug_annotations =
            event.arguments.iter().map(|(name, value)| self.annotation(name, value)).collect();
        self.send_event(
            event.at,
            TrackEvent {
                category_iids: vec![category],
                debug_annotations,
                r#type: Some(kind),
                name_iid,
                track_uuid: Some(event.track),
                name,
                counter_value: None,
                flow_ids: event.flows,
                terminating_flow_ids: event.ending,
            },
        )
    }

    fn annotation(&mut self, name: &str, value: &Value<'_>) -> DebugAnnotation {
        let mut annotation =
            DebugAnnotation { name_iid: Some(self.arguments.number(name)), ..DebugAnnotation::default() };
        match value {
            Value::Count(count) => annotation.uint_value = Some(*count),
            Value::Number(number) => annotation.int_value = Some(*number),
            Value::Word(word) => annotation.string_value_iid = Some(self.values.number(word)),
            Value::Text(text) => annotation.string_value = Some((*text).to_owned()),
            Value::Yes => annotation.bool_value = Some(true),
        }
        annotation
    }

    fn send_event(&mut self, at: Nanos, event: TrackEvent) -> io::Result<()> {
        let timestamp = Some(self.clock.saturating_add(at));
        self.send(TracePacket { timestamp, track_event: Some(event), ..TracePacket::default() })
    }

    fn send(&mut self, packet: TracePacket) -> io::Result<()> {
        let packet = TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: packet.sequence_flags.or(Some(NEEDS_STATE)),
            interned_data: self.untold(),
            ..packet
        };
        self.buffer.clear();
        self.buffer.push(PACKET_KEY);
        packet.encode_length_delimited(&mut self.buffer)?;
        self.out.write_all(&self.buffer)
    }

    fn untold(&mut self) -> Option<InternedData> {
        let data = InternedData {
            event_categories: std::mem::take(&mut self.categories.untold),
            event_names: std::mem::take(&mut self.names.untold),
            debug_annotation_names: std::mem::take(&mut self.arguments.untold),
            debug_annotation_string_values: std::mem::take(&mut self.values.untold),
        };
        (data != InternedData::default()).then_some(data)
    }
}
