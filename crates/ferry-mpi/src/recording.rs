//! `--trace`: spans that ranks measure, and the recording that rank 0 makes of them, with a track for each rank.
//!
//! A rank measures time by its own clock. Before the job, rank 0 asks each rank for its time, and takes the answer that came
//! back the fastest: the rank's clock is then known to half of the time that the question and the answer took.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use ferry_cluster::{Grant, ToCoordinator, ToRank, Totals, Work};
use ferry_io::event::file::{CHUNK_HEADER, Chunk, ChunkKind, Fields, Writer};
use ferry_io::event::{Encoder, Event, Opener};
use ferry_io::{Operation, Reason, Route, Way};
use serde::{Deserialize, Serialize};

/// Events in a chunk of the file.
const CHUNK: usize = 10_000;
/// Most spans of a rank: more are counted, and lost.
const MOST: usize = 1 << 18;

/// Returns nanoseconds since the first call in this process.
pub(crate) fn now() -> u64 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    u64::try_from(BEGAN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Activity of a rank, by its own clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Span {
    /// Set if the rank had no work.
    is_idle: bool,
    name: String,
    began: u64,
    ended: u64,
}

/// Spans of a rank since its last note.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    is_on: bool,
    spans: Vec<Span>,
}

impl Recorder {
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_on, spans: Vec::new() }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Adds a span that ends now.
    pub(crate) fn add(&mut self, began: u64, name: impl FnOnce() -> String) {
        if self.is_on {
            self.spans.push(Span { is_idle: false, name: name(), began, ended: now() });
        }
    }

    /// Adds a time without work that ends now.
    pub(crate) fn add_idle(&mut self, began: u64) {
        if self.is_on {
            self.spans.push(Span { is_idle: true, name: String::new(), began, ended: now() });
        }
    }

    /// Adds a message that has arrived.
    pub(crate) fn received(&mut self, message: &ToRank) {
        self.add(now(), || match message {
            ToRank::Grant(Grant { lease, works }) => format!("message: lease {lease} with {}", pieces(works)),
            ToRank::Taken(lease) => format!("message: the report on lease {lease} is in the journal"),
            ToRank::Split(ranks) => format!("message: {ranks} leases are asked for"),
            ToRank::Stop(_) => "message: stop".to_owned(),
            ToRank::End => "message: everything is done".to_owned(),
        });
    }

    /// Adds a message to rank 0.
    pub(crate) fn sent(&mut self, message: &ToCoordinator) {
        self.add(now(), || match message {
            ToCoordinator::Want => "to rank 0: a lease is wanted".to_owned(),
            ToCoordinator::Report(report) => format!("to rank 0: report on lease {}", report.lease),
            ToCoordinator::Stopped(..) => "to rank 0: stopped".to_owned(),
        });
    }

    /// Takes the spans.
    pub(crate) fn take(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.spans)
    }
}

/// Returns the name of a lease that was performed: its pieces and what was done.
pub(crate) fn lease(number: u64, pieces: &str, totals: &Totals) -> String {
    let Totals { entries, files, bytes, failed, .. } = totals;
    let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
    format!("lease {number}: {pieces}; {entries} entries, {files} files, {bytes} bytes{failed}")
}

/// Returns the pieces of a lease by kind.
pub(crate) fn pieces(works: &[Work]) -> String {
    const KINDS: [&str; 8] = [
        "folders",
        "batches of files",
        "linked files",
        "ranges",
        "ends of files",
        "removals",
        "links",
        "ends of folders",
    ];
    let mut counts = [0; KINDS.len()];
    for work in works {
        counts[match work {
            Work::Folder { .. } => 0,
            Work::Files { .. } => 1,
            Work::Owner { .. } => 2,
            Work::Range { .. } => 3,
            Work::Close { .. } => 4,
            Work::Discard { .. } => 5,
            Work::Link { .. } => 6,
            Work::Finish { .. } => 7,
        }] += 1;
    }
    let counted = counts.iter().zip(KINDS).filter(|(count, _)| **count > 0);
    let counted: Vec<_> = counted.map(|(count, kind)| format!("{count} {kind}")).collect();
    if counted.is_empty() { "nothing".to_owned() } else { counted.join(", ") }
}

/// The clock of a rank, compared with that of rank 0.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clock {
    /// Nanoseconds that are added to the rank's times.
    pub(crate) ahead: i64,
    /// Largest error of that.
    pub(crate) error: Duration,
}

/// Spans of a rank on rank 0.
#[derive(Debug, Default)]
pub(crate) struct Track {
    clock: Clock,
    pub(crate) host: String,
    spans: Vec<Span>,
    lost: u64,
}

impl Track {
    pub(crate) fn of(clock: Clock) -> Self {
        Self { clock, ..Self::default() }
    }

    pub(crate) fn add(&mut self, spans: Vec<Span>) {
        for span in spans {
            match self.spans.len() < MOST {
                true => self.spans.push(span),
                false => self.lost += 1,
            }
        }
    }
}

/// Writes a recording.
///
/// # Errors
/// A message for the user.
pub(crate) fn write(path: &Path, tracks: &[Track]) -> Result<(), String> {
    ferry::job::write_recording(path, |file| write_tracks(file, tracks))
}

fn write_tracks(file: File, tracks: &[Track]) -> io::Result<()> {
    // Times of rank 0's clock become those of CLOCK_MONOTONIC.
    let monotonic = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let monotonic =
        Duration::try_from(monotonic).unwrap_or_default().saturating_sub(Duration::from_nanos(now()));
    let zero = u64::try_from(monotonic.as_nanos()).unwrap_or(0);
    let mut writer = Writer::new(file)?;
    let lines: Vec<Vec<Line<'_>>> = tracks.iter().map(|track| lines(track, zero)).collect();
    let times = || lines.iter().flatten().map(|line| line.time);
    let (began, ended) = (times().min().unwrap_or(zero), times().max().unwrap_or(zero));
    writer.add_fields(ChunkKind::Header, &header(began))?;
    for (rank, lines) in (0_u32..).zip(&lines) {
        for lines in lines.chunks(CHUNK) {
            let base = lines.first().map_or(began, |line| line.time);
            let mut events = Encoder::after(vec![0; CHUNK_HEADER], base);
            lines.iter().for_each(|line| events.add(line.time, &line.event));
            let count = u32::try_from(lines.len()).unwrap_or(u32::MAX);
            let chunk = Chunk { kind: ChunkKind::Events, thread: rank, events: count, lost: 0, base };
            writer.add(chunk, &mut events.into_bytes())?;
        }
    }
    let events = lines.iter().map(Vec::len).sum();
    writer.add_fields(ChunkKind::End, &end(tracks, ended, events))
}

/// An event of a track.
struct Line<'a> {
    time: u64,
    event: Event<'a>,
}

/// Returns the events of a track by time: a scope for the rank, and a fiber for each span.
fn lines(track: &Track, zero: u64) -> Vec<Line<'_>> {
    let at = |time: u64| zero.saturating_add(time).saturating_add_signed(track.clock.ahead);
    let mut lines = Vec::new();
    for (fiber, span) in (1..).zip(&track.spans) {
        let (began, ended) = (at(span.began), at(span.ended));
        if span.is_idle {
            lines.push(Line { time: began, event: Event::Rested { took: ended - began } });
            continue;
        }
        let name = span.name.as_bytes();
        lines.push(Line { time: began, event: Event::FiberBegan { fiber, scope: 1 } });
        lines.push(Line { time: began, event: Event::FiberNamed { fiber, name } });
        lines.push(Line { time: ended, event: Event::FiberEnded { fiber } });
    }
    // Stable: a fiber of no duration ends after it has begun.
    lines.sort_by_key(|line| line.time);
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return lines };
    let last = track.spans.iter().map(|span| at(span.ended)).max().unwrap_or(last.time);
    let opened = Event::ScopeOpened { scope: 1, opener: Opener::Run, fiber: 0 };
    lines.insert(0, Line { time: first.time, event: opened });
    lines.push(Line { time: last, event: Event::ScopeEnded { scope: 1 } });
    lines
}

fn header(began: u64) -> Fields {
    let mut fields = Fields::default();
    fields.add("operations", Operation::ALL.map(Operation::name));
    fields.add("routes", Route::ALL.map(Route::name));
    fields.add("reasons", Reason::ALL.map(Reason::name));
    fields.add("ways", Way::ALL.map(Way::name));
    fields.add("command", std::env::args_os().map(std::ffi::OsString::into_encoded_bytes));
    fields.add_one("recorder", env!("CARGO_PKG_VERSION"));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    fields.add_one("kernel", kernel.trim_end());
    fields.add_one("processors", std::thread::available_parallelism().map_or(0, std::num::NonZero::get));
    fields.add_one("began", began);
    let passed = Duration::from_nanos(now());
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    fields.add_one("began_since_1970", since_1970.map_or(0, |time| time.saturating_sub(passed).as_nanos()));
    fields
}

fn end(tracks: &[Track], ended: u64, events: usize) -> Fields {
    let mut fields = Fields::default();
    fields.add_one("ended", ended);
    fields.add("thread_tids", (1..=tracks.len()).map(|number| number.to_string()));
    fields.add("thread_roles", tracks.iter().map(|_| "worker"));
    let names = (0..).zip(tracks).map(|(rank, track): (u32, _)| format!("rank {rank} on {}", track.host));
    fields.add("thread_names", names);
    fields.add_one("events", events);
    fields.add_one("lost", tracks.iter().map(|track| track.lost).sum::<u64>());
    let error = tracks.iter().map(|track| track.clock.error).max().unwrap_or_default();
    let clocks = format!("the ranks' clocks were compared at the start, to {} us", error.as_micros() + 1);
    fields.add("missing", ["the kernel is not recorded with ferry-mpi", &clocks]);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(began: u64, ended: u64) -> Span {
        Span { is_idle: false, name: format!("{began}"), began, ended }
    }

    #[test]
    fn spans_are_written_by_the_clock_of_rank_0() {
        let clock = Clock { ahead: -100, error: Duration::ZERO };
        let mut track = Track { clock, ..Track::default() };
        track.add(vec![span(1_500, 1_700), span(1_200, 1_200), Span { is_idle: true, ..span(1_700, 1_800) }]);
        let lines = lines(&track, 1_000_000);
        let times: Vec<_> = lines.iter().map(|line| line.time - 1_000_000).collect();
        assert_eq!(times, [1_100, 1_100, 1_100, 1_100, 1_400, 1_400, 1_600, 1_600, 1_700]);
        assert!(matches!(lines[3].event, Event::FiberEnded { fiber: 2 }));
        assert!(matches!(lines[7].event, Event::Rested { took: 100 }));
        assert!(matches!(lines[8].event, Event::ScopeEnded { .. }));
    }

    #[test]
    fn spans_beyond_the_most_are_counted_as_lost() {
        let mut track = Track::default();
        track.add(vec![Span { name: String::new(), ..span(1, 2) }; MOST + 3]);
        assert_eq!((track.spans.len(), track.lost), (MOST, 3));
    }

    #[test]
    fn pieces_are_counted_by_kind() {
        let finish = || Work::Finish { path: "a".into(), is_new: false };
        let files = Work::Files { folder: "a".into(), names: Vec::new() };
        assert_eq!(pieces(&[finish(), files, finish()]), "1 batches of files, 2 ends of folders");
        assert_eq!(pieces(&[]), "nothing");
    }
}
