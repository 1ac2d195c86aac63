use std::fs::File;
use std::io::Seek;

use ferry_io::event::file::{Broken, CHUNK_HEADER, Chunk, ChunkKind, Fields, Writer};
use ferry_io::event::{Asked, Encoder, Event, Opener};
use ferry_io::sampling::{self, SampleKind};
use ferry_io::{Operation, Reason, Route, Way};

use super::join;
use crate::model::{Did, Role};
use crate::read::read;
use crate::{Trace, check};

const TID: u32 = 4711;

/// A recording that begins at this time.
fn file(command: &str, began: u64) -> (File, Writer) {
    let file = tempfile::tempfile().expect("a file");
    let mut writer = Writer::new(file.try_clone().expect("the same file")).expect("it is written");
    let mut header = Fields::default();
    header.add("operations", Operation::ALL.map(Operation::name));
    header.add("routes", Route::ALL.map(Route::name));
    header.add("reasons", Reason::ALL.map(Reason::name));
    header.add("ways", Way::ALL.map(Way::name));
    header.add("command", command.split(' '));
    header.add_one("recorder", "0.1.0");
    header.add_one("kernel", "6.18.0");
    header.add_one("processors", 2);
    header.add_one("began", began);
    header.add_one("began_since_1970", 1_700_000_000_000_000_000_u64);
    writer.add_fields(ChunkKind::Header, &header).expect("it is written");
    (file, writer)
}

/// Writes the end, and returns the file from its start.
fn ended((mut file, mut writer): (File, Writer), ended: u64, threads: &[u32], events: u32) -> File {
    let mut end = Fields::default();
    end.add_one("ended", ended);
    end.add_one("backend", if threads.is_empty() { "" } else { "uring" });
    end.add("thread_tids", threads.iter().map(u32::to_string));
    end.add("thread_roles", threads.iter().map(|_| "worker"));
    end.add("thread_names", threads.iter().map(|_| "worker 0"));
    end.add_one("events", events);
    end.add_one("lost", 0);
    end.add_one("kernel_lost", 0);
    let missing = (!threads.is_empty()).then_some("nothing of the kernel's side: it was left out");
    end.add("missing", missing);
    writer.add_fields(ChunkKind::End, &end).expect("it is written");
    file.rewind().expect("it is a file");
    file
}

/// The kernel's side from 1,000 ns to 9,000 ns: the thread sleeps from 3,000 to 4,000.
fn kernels_side() -> File {
    let (file, mut writer) = file("ferry cp a b", 1_000);
    let mut encoder = sampling::Encoder::after(vec![0; CHUNK_HEADER], 3_000);
    let wake = SampleKind::Wake { woken: TID, by_interrupt: true };
    for (at, tid, what) in [(3_000, TID, SampleKind::Sleep), (4_000, 1, wake)] {
        encoder.add(&sampling::Event { at, tid, processor: 0, chain: None, what });
    }
    let chunk = Chunk { events: 2, base: 3_000, ..Chunk::plain(ChunkKind::Kernel) };
    writer.add(chunk, &mut encoder.into_bytes()).expect("it is written");
    ended((file, writer), 9_000, &[], 0)
}

/// The program's side from 2,000 ns to 8,000 ns: one stat.
fn programs_side() -> File {
    let (file, mut writer) = file("/usr/bin/ferry cp a b", 2_000);
    let mut encoder = Encoder::after(vec![0; CHUNK_HEADER], 2_500);
    let asked = Asked {
        kind: Operation::Stat as u8,
        fiber: 1,
        name: b"a",
        size: 0,
        offset: None,
        route: Route::Inline as u8,
        reason: Reason::RecentlyFast as u8,
    };
    encoder.add(2_500, &Event::ScopeOpened { scope: 1, opener: Opener::Run, fiber: 0 });
    encoder.add(2_600, &Event::FiberBegan { fiber: 1, scope: 1 });
    encoder.add(2_900, &Event::Ran { asked, took: 1_500, result: 0 });
    encoder.add(7_000, &Event::FiberEnded { fiber: 1 });
    encoder.add(7_500, &Event::ScopeEnded { scope: 1 });
    let chunk = Chunk { events: 5, base: 2_500, ..Chunk::plain(ChunkKind::Events) };
    writer.add(chunk, &mut encoder.into_bytes()).expect("it is written");
    ended((file, writer), 8_000, &[TID], 5)
}

fn joined(kernel: File, program: File) -> Result<Trace, Broken> {
    let mut both = tempfile::tempfile().expect("a file");
    join(kernel, program, both.try_clone().expect("the same file"))?;
    both.rewind().expect("it is a file");
    read(both)
}

#[test]
fn a_joined_recording_has_both_sides_of_the_same_threads() {
    let trace = joined(kernels_side(), programs_side()).expect("a recording");
    assert_eq!(check::check(&trace), Vec::<String>::new());
    assert_eq!(trace.about.command, ["ferry", "cp", "a", "b"].map(str::to_owned));
    assert_eq!((trace.about.took, trace.about.missing.len()), (8_000, 0));
    assert_eq!(trace.about.backend, "uring");
    let [operation] = trace.operations.as_slice() else { panic!("{trace:?}") };
    assert_eq!((operation.name.as_str(), operation.asked), ("a", 1_900));
    assert_eq!((trace.threads.len(), trace.threads[0].role), (1, Role::Worker));
    let did: Vec<(u32, u64, &Did)> =
        trace.kernel.iter().map(|event| (event.thread, event.at, &event.did)).collect();
    assert_eq!(did, [(0, 2_000, &Did::Sleep), (0, 3_000, &Did::Wake { by: None })]);
}

#[test]
fn a_recording_that_is_not_whole_is_not_joined() {
    let cut = |mut file: File| {
        let size = file.metadata().expect("it is a file").len();
        file.set_len(size - 1).expect("it is a file");
        file.rewind().expect("it is a file");
        file
    };
    assert_eq!(joined(kernels_side(), cut(programs_side())), Err(Broken::Truncated));
    assert_eq!(joined(cut(kernels_side()), programs_side()), Err(Broken::Truncated));
}
