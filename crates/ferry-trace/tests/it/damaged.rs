//! Files that are not complete recordings: each is reported in one line, and none crashes the program.

use std::io::Write;

use ferry_io::event::file::{self, CHUNK_HEADER, Chunk, ChunkKind, Fields, Writer};
use ferry_io::event::{Asked, Encoder, Event, Gauge};
use ferry_io::{Options, Reason, Tracing, Way, run, sampling};
use ferry_trace::Summary;
use ferry_trace::export::{html, perfetto, svg};
use ferry_trace::read::{self, Broken};

/// The bytes of a short recording.
fn recording() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace");
    let options = Options { trace: Some(Tracing::to(&file)), ..Options::default() };
    let ran = run(&options, async |io| {
        let proc = io.open_dir("/proc/self".as_ref()).expect("it is there");
        proc.stat_entry(&crate::program::name("stat"), false).await.expect("it is there");
    });
    ran.expect("it runs");
    std::fs::read(&file).expect("it is there")
}

#[test]
fn a_recording_is_whole_or_it_is_told_why_not() {
    let whole = recording();
    assert!(read::read(whole.as_slice()).is_ok());
    assert_eq!(read::read(&b""[..]), Err(Broken::Empty));
    assert_eq!(read::read(&b"FERRY"[..]), Err(Broken::Truncated));
    assert_eq!(read::read(&b"something else altogether"[..]), Err(Broken::Foreign));
    for size in 1..whole.len() {
        assert_eq!(read::read(&whole[..size]), Err(Broken::Truncated), "{size} of {} bytes", whole.len());
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert_eq!(read::read(longer.as_slice()), Err(Broken::Damaged));
    for version in [1, 200] {
        let mut other = whole.clone();
        other[8] = version;
        let told = read::read(other.as_slice()).expect_err("it is of another version");
        assert_eq!(told, Broken::Version(version.into()));
        let words =
            format!("it is of version {version}, and only version {} is understood here", file::VERSION);
        assert_eq!(told.to_string(), words);
    }
}

/// Recordings of another version would all be refused.
#[test]
fn the_seeds_of_the_fuzz_target_are_recordings() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/traces");
    let mut has_kernel_side = false;
    for entry in std::fs::read_dir(folder).expect("a folder of seeds") {
        let path = entry.expect("a seed").path();
        let trace = read::open(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        assert!(!trace.operations.is_empty(), "{}", path.display());
        has_kernel_side |= !trace.kernel.is_empty();
    }
    assert!(has_kernel_side, "none has the kernel's side");
}

#[test]
fn a_changed_byte_never_panics() {
    let whole = recording();
    for at in 0..whole.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] ^= change;
            if let Ok(trace) = read::read(damaged.as_slice()) {
                drop(ferry_trace::check::check(&trace));
            }
        }
    }
}

#[test]
fn what_is_not_known_here_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace");
    let mut writer = Writer::new(std::fs::File::create(&file).expect("a file")).expect("room");
    let mut header = Fields::default();
    header.add("operations", ["open", "teleport"]);
    writer.add_fields(ChunkKind::Header, &header).expect("room");
    assert_eq!(read::open(&file), Err(Broken::Unknown("teleport".to_owned())));
}

#[test]
fn folders_and_what_is_not_there_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = read::open(folder.path()).expect_err("it is a folder");
    assert_eq!(told.to_string(), "Is a directory");
    let told = read::open(&folder.path().join("none")).expect_err("it is not there");
    assert_eq!(told.to_string(), "No such file or directory");
}

#[test]
fn a_chunk_larger_than_any_is_not_believed() {
    let mut bytes = ferry_io::event::file::MARK.to_vec();
    bytes.write_all(&file::VERSION.to_le_bytes()).expect("memory");
    let mut chunk = vec![0; 32];
    chunk[0] = 1;
    chunk[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    bytes.extend(chunk);
    assert_eq!(read::read(bytes.as_slice()), Err(Broken::Damaged));
    assert_eq!(Chunk::plain(ChunkKind::End).events, 0);
}

/// A recording of one worker with these events.
fn told(events: &[(u64, Event<'_>)]) -> Vec<u8> {
    let mut encoder = Encoder::after(vec![0; CHUNK_HEADER], 0);
    events.iter().for_each(|(at, event)| encoder.add(*at, event));
    let mut bytes = encoder.into_bytes();
    let count = u32::try_from(events.len()).expect("a few");
    made(&mut [(Chunk { events: count, ..Chunk::plain(ChunkKind::Events) }, &mut bytes)], events.len(), 1_000)
}

/// A recording of these chunks, with this number of events and this end.
fn made(chunks: &mut [(Chunk, &mut Vec<u8>)], events: usize, ended: u64) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace");
    let mut writer = Writer::new(std::fs::File::create(&file).expect("a file")).expect("room");
    let mut header = Fields::default();
    let names = [
        ("operations", "read"),
        ("routes", "inline"),
        ("reasons", Reason::ALL[0].name()),
        ("ways", Way::ALL[0].name()),
    ];
    for (name, value) in names {
        header.add(name, [value]);
    }
    ["recorder", "kernel", "processors", "began", "began_since_1970"]
        .iter()
        .for_each(|name| header.add_one(name, 0));
    writer.add_fields(ChunkKind::Header, &header).expect("room");
    for (chunk, bytes) in chunks {
        writer.add(*chunk, bytes).expect("room");
    }
    let mut end = Fields::default();
    let totals = [("ended", ended), ("events", events as u64), ("lost", u64::MAX), ("kernel_lost", u64::MAX)];
    totals.iter().for_each(|(name, value)| end.add_one(name, value));
    end.add("thread_tids", ["1", "2"]);
    end.add("thread_roles", ["worker", "pool"]);
    end.add("thread_names", ["worker 0", "pool 0"]);
    writer.add_fields(ChunkKind::End, &end).expect("room");
    std::fs::read(&file).expect("it is there")
}

fn ran(took: u64) -> Event<'static> {
    let asked =
        Asked { kind: 0, fiber: 0, name: b"", size: u64::MAX, offset: Some(u64::MAX), route: 0, reason: 0 };
    Event::Ran { asked, took, result: 0 }
}

#[test]
fn numbers_of_any_size_are_summed_up_and_drawn() {
    let long = vec![(0, ran(1 << 60)); 20];
    let trace = read::read(told(&long).as_slice()).expect("no time is too late");
    assert_eq!(Summary::of(&trace, 10).time(), u64::MAX);
    let moved = Event::Moved { way: 0, bytes: u64::MAX, took: 1 << 60, is_trial: true };
    let trace = read::read(told(&vec![(0, moved); 20]).as_slice()).expect("no time is too late");
    let ways = Summary::of(&trace, 10).ways;
    assert_eq!(
        ways.iter().map(|way| (way.pieces, way.trials, way.bytes)).collect::<Vec<_>>(),
        [(20, 20, u64::MAX)]
    );
    let unknown = Event::Moved { way: 1, bytes: 1, took: 1, is_trial: false };
    assert_eq!(read::read(told(&[(0, unknown)]).as_slice()), Err(Broken::Damaged));
    let full = |value| Event::Sampled { gauge: Gauge::Blocks, value };
    let mut each = [vec![0; CHUNK_HEADER], vec![0; CHUNK_HEADER]];
    for bytes in &mut each {
        let mut encoder = Encoder::after(std::mem::take(bytes), 0);
        encoder.add(0, &full(u64::MAX));
        *bytes = encoder.into_bytes();
    }
    let of_thread = |thread| Chunk { events: 1, thread, ..Chunk::plain(ChunkKind::Events) };
    let [first, second] = &mut each;
    let mut lost = Fields::default();
    lost.add_one("lost", u64::MAX);
    let mut kernel = vec![0; CHUNK_HEADER];
    kernel.extend(lost.to_bytes());
    let mut chunks =
        [(of_thread(0), first), (of_thread(1), second), (Chunk::plain(ChunkKind::KernelEnd), &mut kernel)];
    let trace = read::read(made(&mut chunks, 2, 1_000).as_slice()).expect("it is whole");
    let summary = Summary::of(&trace, 10);
    assert_eq!(summary.depths.iter().map(|depth| depth.peak).collect::<Vec<_>>(), [i64::MAX as u64]);
    for draw in [html, svg, perfetto] {
        let mut drawn = Vec::new();
        draw(&trace, &mut drawn).expect("memory");
        assert!(!drawn.is_empty());
    }
}

#[test]
fn a_time_that_no_recording_has_is_damage() {
    assert!(read::read(told(&[(1 << 60, ran(0))]).as_slice()).is_ok());
    let late = [vec![((1 << 60) + 1, ran(0))], vec![(1, ran(1 << 60))], vec![(1, ran(u64::MAX))]];
    for events in late {
        assert_eq!(read::read(told(&events).as_slice()), Err(Broken::Damaged), "{events:?}");
    }
    assert!(read::read(made(&mut [], 0, 1 << 60).as_slice()).is_ok());
    assert_eq!(read::read(made(&mut [], 0, u64::MAX).as_slice()), Err(Broken::Damaged));
    let mut encoder = sampling::Encoder::after(vec![0; CHUNK_HEADER], 0);
    let what = sampling::SampleKind::Sleep;
    encoder.add(&sampling::Event { at: u64::MAX, tid: 1, processor: 0, chain: None, what });
    let mut kernel = encoder.into_bytes();
    let mut chunks = [(Chunk { events: 1, ..Chunk::plain(ChunkKind::Kernel) }, &mut kernel)];
    assert_eq!(read::read(made(&mut chunks, 0, 1_000).as_slice()), Err(Broken::Damaged));
}

/// A name that is stored once and repeated by each event must be short; otherwise a small file needs terabytes.
#[test]
fn a_name_longer_than_any_that_is_written_is_damage() {
    let fiber = |length: u8| {
        let mut bytes = vec![0; CHUNK_HEADER];
        // The length plus one, seven bits a byte.
        let folded = u16::from(length) + 2;
        let (low, high) = (folded.to_le_bytes()[0] | 0x80, folded >> 7);
        bytes.extend([2, 0, 0, low, high.to_le_bytes()[0]]);
        bytes.extend(vec![b'a'; usize::from(length) + 1]);
        made(&mut [(Chunk { events: 1, ..Chunk::plain(ChunkKind::Events) }, &mut bytes)], 1, 1_000)
    };
    assert!(read::read(fiber(254).as_slice()).is_ok());
    assert_eq!(read::read(fiber(255).as_slice()), Err(Broken::Damaged));
    let thread = |length: usize| {
        let mut encoder = sampling::Encoder::after(vec![0; CHUNK_HEADER], 0);
        let what = sampling::SampleKind::Named("a".repeat(length));
        encoder.add(&sampling::Event { at: 0, tid: 1, processor: 0, chain: None, what });
        let mut bytes = encoder.into_bytes();
        made(&mut [(Chunk { events: 1, ..Chunk::plain(ChunkKind::Kernel) }, &mut bytes)], 0, 1_000)
    };
    assert!(read::read(thread(48).as_slice()).is_ok());
    assert_eq!(read::read(thread(49).as_slice()), Err(Broken::Damaged));
    let opcode = |length: usize| {
        let mut fields = Fields::default();
        fields.add_one("lost", 0);
        fields.add("operation_codes", ["1"]);
        fields.add("operation_names", ["a".repeat(length)]);
        let mut bytes = vec![0; CHUNK_HEADER];
        bytes.extend(fields.to_bytes());
        made(&mut [(Chunk::plain(ChunkKind::KernelEnd), &mut bytes)], 0, 1_000)
    };
    assert!(read::read(opcode(255).as_slice()).is_ok());
    assert_eq!(read::read(opcode(256).as_slice()), Err(Broken::Damaged));
}
