use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use super::symbols::Symbols;
use super::{Decoder, Encoder, Event, Refusal, SampleKind, Sampling, Summary, ThreadSelection, Tracepoint};
use crate::counting::{self, Count};

/// Events and counts of a run of fio's ring. Returns `None` and prints the reason if sampling is unavailable.
fn fio(bytes: usize, mode: &str) -> Option<(Vec<Event>, Summary, [u64; 3])> {
    if Command::new("fio").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("SKIP: fio is not installed");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let (events, path) = (Arc::new(Mutex::new(Vec::new())), folder.path().join("reads"));
    std::fs::write(&path, vec![1; 1 << 20]).unwrap();
    let taken = Arc::clone(&events);
    let take = move |batch: &[Event]| taken.lock().unwrap().extend_from_slice(batch);
    let sampling = match Sampling::with_buffers(ThreadSelection::Programs, bytes, take) {
        Ok(sampling) => sampling,
        Err(refusal) => {
            assert!(matches!(refusal, Refusal::NoRight | Refusal::Missing(_)), "{refusal}");
            eprintln!("SKIP: nothing can be sampled here: {refusal}");
            return None;
        }
    };
    let counted =
        [counting::Event::RingEnter, counting::Event::RingRequest, counting::Event::KernelWorkerHandover];
    let counts = counted.map(|event| Count::of_programs(event).unwrap());
    let ran = Command::new("fio")
        .args([
            "--name=reads",
            "--ioengine=io_uring",
            "--bs=4k",
            "--iodepth=8",
            "--thread",
            "--number_ios=2000",
        ])
        .args(["--loops=8", "--size=1m", "--norandommap", "--output-format=terse", mode])
        .arg(format!("--filename={}", path.display()))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let counts = counts.map(|count| count.so_far().unwrap());
    let summary = sampling.finish();
    let events = std::mem::take(&mut *events.lock().unwrap());
    Some((events, summary, counts))
}

fn count(summary: &Summary, tracepoint: Tracepoint) -> u64 {
    summary.counts.iter().find(|(known, _)| *known == tracepoint).map_or(0, |(_, count)| *count)
}

#[test]
fn what_is_sampled_is_what_is_counted() {
    let Some((events, summary, counts)) = fio(8 << 20, "--rw=randread") else { return };
    assert_eq!(summary.lost, 0);
    let sampled = [Tracepoint::Enter, Tracepoint::Submit, Tracepoint::HandOver];
    assert_eq!(sampled.map(|tracepoint| count(&summary, tracepoint)), counts);
    assert!(counts[1] >= 2000, "{counts:?}");
    let submitted = events.iter().filter(|event| matches!(event.what, SampleKind::Submit { .. })).count();
    assert_eq!(u64::try_from(submitted).unwrap(), counts[1]);
    let timed: Vec<u64> = events.iter().map(|event| event.at).filter(|at| *at > 0).collect();
    assert!(timed.is_sorted());
    assert!(events.iter().any(|event| event.what == SampleKind::Named("fio".to_owned())));
    assert!(summary.operations.iter().any(|(_, name)| name == "READ"), "{:?}", summary.operations);
}

#[test]
fn what_a_small_buffer_has_no_room_for_is_counted() {
    let Some((events, summary, counts)) = fio(4096, "--rw=randread") else { return };
    assert!(summary.lost > 0);
    let submitted = count(&summary, Tracepoint::Submit);
    assert!(submitted < counts[1], "{submitted} of {}", counts[1]);
    let all: u64 = summary.counts.iter().map(|(_, count)| count).sum();
    assert!(summary.lost + all >= counts[0] + counts[1], "{summary:?}");
    assert!(!events.is_empty());
}

#[test]
fn a_function_is_named_by_any_address_in_it() {
    let text = b"ffffffff81000100 T do_syscall_64\nffffffff81000000 T first\nffffffff81000200 d datum\n\
        ffffffffc0000000 t ext4_read [ext4]\nffffffff81000180 t asm_common_interrupt\n";
    // Interrupted functions are left out. A return address at a function's end belongs to the function before it.
    let interrupted = [0xffff_ffff_8100_0100, 0xffff_ffff_8100_0200, 0xffff_ffff_8100_0004].into();
    let chains: [Box<[u64]>; 4] =
        [interrupted, [0xffff_ffff_8100_0104].into(), [0xffff_ffff_c000_0010].into(), [0x10].into()];
    let symbols = Symbols::find(text, &chains);
    assert!(!symbols.is_hidden());
    let names: Vec<Vec<String>> = chains.iter().map(|chain| symbols.chain(chain)).collect();
    let expected: [&[&str]; 4] =
        [&["do_syscall_64", "asm_common_interrupt"], &["do_syscall_64"], &["ext4_read"], &["0x10"]];
    assert_eq!(names, expected);
    assert!(Symbols::find(b"0000000000000000 T hidden\n", &chains).is_hidden());
}

#[test]
fn cut_off_and_foreign_records_are_passed_over() {
    use super::decode::Decoder;
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&7_u32.to_ne_bytes());
    bytes.extend_from_slice(&(32_u32 << 16).to_ne_bytes());
    for number in [5_u32, 4, 6, 4] {
        bytes.extend_from_slice(&number.to_ne_bytes());
    }
    bytes.extend_from_slice(&1000_u64.to_ne_bytes());
    let began = Event { at: 1000, tid: 6, processor: 0, chain: None, what: SampleKind::Began { parent: 4 } };
    for size in 0..=bytes.len() {
        let mut found = Vec::new();
        Decoder::of(Vec::new(), None).decode_threads(&bytes[..size], &mut found);
        assert_eq!(found, if size == bytes.len() { vec![began.clone()] } else { vec![] });
    }
    // A record of size zero ends the buffer.
    let mut found = Vec::new();
    Decoder::of(Vec::new(), None).decode(&[0; 64], &mut found);
    assert!(found.is_empty());
}

#[test]
fn who_runs_again_is_told_where_nobody_woke_it() {
    let mut sleeps = super::sleeps::Sleeps::default();
    let event = |tid, what| Event { at: 0, tid, processor: 0, chain: None, what };
    let told = [
        // It was only preempted.
        (event(1, SampleKind::Run), false),
        (event(1, SampleKind::Sleep), true),
        (event(2, SampleKind::Wake { woken: 1, by_interrupt: false }), true),
        (event(1, SampleKind::Run), false),
        (event(1, SampleKind::Sleep), true),
        (event(1, SampleKind::Run), true),
        (event(1, SampleKind::Run), false),
        // Its thread number is used again.
        (event(1, SampleKind::Sleep), true),
        (event(1, SampleKind::Ended), true),
        (event(1, SampleKind::Run), false),
    ];
    for (event, is_told) in told {
        assert_eq!(sleeps.is_told(&event), is_told, "{event:?}");
    }
    assert_eq!((sleeps.begun, sleeps.unseen), (3, 1));
}

#[test]
fn who_was_woken_while_it_fell_asleep_was_woken() {
    let told = |woken_at, slept_at| {
        let mut sleeps = super::sleeps::Sleeps::default();
        let event = |at, what| Event { at, tid: 1, processor: 0, chain: None, what };
        assert!(sleeps.is_told(&event(woken_at, SampleKind::Wake { woken: 1, by_interrupt: true })));
        assert!(sleeps.is_told(&event(slept_at, SampleKind::Sleep)));
        assert!(sleeps.is_told(&event(slept_at + 1, SampleKind::Run)), "its sleep ends in any case");
        sleeps.unseen
    };
    assert_eq!([told(1000, 5000), told(1000, 900_000)], [0, 1]);
}

#[test]
fn what_an_interrupt_woke_is_told_from_what_a_thread_did() {
    use super::decode::Decoder;
    use super::tracepoint::Format;
    let text = "ID: 5\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                \tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n";
    let format = Format::parse(Tracepoint::Waking, text).unwrap();
    // Interrupts off; in a device's interrupt; in a software interrupt.
    for (flags, by_interrupt) in [(0, false), (1, false), (8, true), (9, true), (16, true)] {
        let fields = [5 | flags << 16, 0, 7];
        let mut found = Vec::new();
        Decoder::of(vec![format.clone()], Some(7)).decode(&sample(&[], &fields), &mut found);
        let what = SampleKind::Wake { woken: 7, by_interrupt };
        assert_eq!(found, [Event { at: 1000, tid: 7, processor: 0, chain: None, what }], "{flags}");
    }
}

/// A sample of thread 7: the functions' addresses and the tracepoint's fields.
fn sample(chain: &[u64], fields: &[u32]) -> Vec<u8> {
    let mut body = Vec::new();
    [1_u32, 7].iter().for_each(|half| body.extend_from_slice(&half.to_ne_bytes()));
    // Time and processor.
    let whole = [1000, 0, chain.len() as u64];
    whole.iter().chain(chain).for_each(|whole| body.extend_from_slice(&whole.to_ne_bytes()));
    let size = u32::try_from(fields.len() * 4).unwrap();
    [size].iter().chain(fields).for_each(|half| body.extend_from_slice(&half.to_ne_bytes()));
    let size = u32::try_from(body.len() + 8).unwrap();
    let mut bytes = [9_u32.to_ne_bytes(), (size << 16).to_ne_bytes()].concat();
    bytes.extend(body);
    bytes
}

/// The kernel writes one record when a thread leaves its processor: to sleep, or because it is preempted.
#[test]
fn a_thread_that_had_to_leave_does_not_sleep() {
    use super::decode::Decoder;
    let record = |flags: u32| {
        let mut bytes = [14_u32, (32 << 16) | flags, 4, 6].map(u32::to_ne_bytes).concat();
        bytes.extend(1000_u64.to_ne_bytes());
        bytes.extend([3_u32, 0].map(u32::to_ne_bytes).concat());
        bytes
    };
    let decoded = |flags| {
        let mut found = Vec::new();
        Decoder::of(Vec::new(), None).decode(&record(flags), &mut found);
        found
    };
    let event = |what| Event { at: 1000, tid: 6, processor: 3, chain: None, what };
    assert_eq!(decoded(1 << 13), [event(SampleKind::Sleep)]);
    assert_eq!(decoded(1 << 13 | 1 << 14), []);
    assert_eq!(decoded(0), [event(SampleKind::Run)]);
}

#[test]
fn chains_are_told_apart_up_to_a_bound() {
    use super::decode::{Decoder, MOST_CHAINS};
    use super::tracepoint::Format;
    let text = "ID: 5\n\tfield:unsigned int count;\toffset:8;\tsize:4;\tsigned:0;\n";
    let format = Format::parse(Tracepoint::TaskWorkRun, text).unwrap();
    let mut decoder = Decoder::of(vec![format], None);
    let most = u64::try_from(MOST_CHAINS).unwrap();
    let mut found = Vec::new();
    for address in (0..most + 10).chain([0, most - 1, most]) {
        decoder.decode(&sample(&[address], &[5, 0, 3]), &mut found);
    }
    assert_eq!((decoder.distinct.len(), decoder.chainless), (MOST_CHAINS, 11));
    let chain = |index: usize| found[index].chain;
    assert_eq!((chain(0), chain(MOST_CHAINS - 1), chain(MOST_CHAINS)), (Some(0), Some(65_535), None));
    // Chains already known are still found.
    assert_eq!((chain(MOST_CHAINS + 10), chain(MOST_CHAINS + 11)), (Some(0), Some(65_535)));
    assert!(found.iter().all(|event| event.what == SampleKind::TaskWork { count: 3, ring: None }));
}

#[test]
fn events_are_read_as_they_were_written() {
    let (ring, user_data) = (0xffff_8880_0123_4000, u64::MAX - 1);
    let what = [
        SampleKind::Began { parent: 7 },
        SampleKind::Named("iou-wrk-7".to_owned()),
        SampleKind::TaskWork { count: 3, ring: None },
        SampleKind::TaskWork { count: u32::MAX, ring: Some(ring) },
        SampleKind::TaskAdd { ring, user_data },
        SampleKind::Submit { ring, user_data: 0, opcode: 22 },
        SampleKind::HandOver { ring: 1, user_data },
        SampleKind::Complete { ring, user_data, result: -125 },
        SampleKind::Enter { requests: 4, completions: 1, flags: 9 },
        SampleKind::Leave { result: i32::MIN },
        SampleKind::Sleep,
        SampleKind::Run,
        SampleKind::Wake { woken: 9, by_interrupt: false },
        SampleKind::Wake { woken: 8, by_interrupt: true },
        SampleKind::Ended,
    ];
    let times = [0, 5, u64::MAX, 1_000_000_000_000, 3];
    let events: Vec<Event> = what
        .into_iter()
        .enumerate()
        .map(|(index, what)| {
            let tid = [u32::MAX, 0, 4711][index % 3];
            let chain = [None, Some(0), Some(65_535)][index % 3];
            Event { at: times[index % 5], tid, processor: 127, chain, what }
        })
        .collect();
    let mut encoder = Encoder::after(Vec::new(), 1000);
    events.iter().for_each(|event| encoder.add(event));
    let bytes = encoder.into_bytes();
    let mut decoder = Decoder::new(&bytes, 1000);
    let read: Vec<Event> = std::iter::from_fn(|| decoder.next_event()).collect();
    assert!(decoder.is_at_end());
    assert_eq!(read, events);
    // A buffer cut off anywhere yields its complete events.
    for size in 0..bytes.len() {
        let mut decoder = Decoder::new(&bytes[..size], 1000);
        let read: Vec<Event> = std::iter::from_fn(|| decoder.next_event()).collect();
        assert!(read.len() < events.len() && events.starts_with(&read), "{size}");
    }
}
