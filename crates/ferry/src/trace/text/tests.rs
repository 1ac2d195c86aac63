use ferry_io::sampling::DeviceKind;
use ferry_io::{Operation as Kind, Reason, Route, Way};
use ferry_trace::model::{About, Lost, Piece, Request, Role, Thread, Trace};
use ferry_trace::sample;

use super::{Page, of};
use crate::trace::figures::Glyphs::{Ascii, Blocks};

/// A copy of a folder by two workers and three threads of the pool.
fn recording() -> Trace {
    let mut trace = sample::copy_of(24);
    "0.1.0".clone_into(&mut trace.about.recorder);
    for (tid, name) in [(15, "pool 1"), (16, "pool 2")] {
        trace.threads.push(Thread { tid, role: Role::Pool, name: name.to_owned() });
    }
    for fiber in &mut trace.fibers[..2] {
        "photos".clone_into(&mut fiber.name);
    }
    for operation in &mut trace.operations {
        let file: usize = operation.name.rsplit(' ').next().unwrap().parse().unwrap();
        operation.ran_on = operation.ran_on.map(|_| [2, 4, 5][file % 3]);
    }
    trace
}

/// A recording with long names, large numbers and everything that may be missing.
fn unusual() -> Trace {
    let mut trace = recording();
    let name = "a long name with spaces ".repeat(8);
    trace.about.missing =
        vec!["requests of rings: the kernel has no such tracepoint, because it is old".into()];
    trace.lost = Lost { program: 12_345_678, kernel: 1 };
    for (index, operation) in trace.operations.iter_mut().enumerate() {
        operation.name.clone_from(&name);
        operation.kind = if index % 2 == 0 { Kind::CopyRange } else { Kind::ListXattr };
        operation.size = 123_456_789_012;
        operation.reason = Reason::ALL[index % Reason::ALL.len()];
        operation.result = Some(Err([84, 95, 2][index % 3]));
        if operation.route == Route::Ring {
            operation.completed = None;
        }
    }
    trace.requests.iter_mut().for_each(|request| "SYNC_FILE_RANGE".clone_into(&mut request.opcode));
    trace.submissions.iter_mut().for_each(|batch| batch.requests = 123_456_789);
    let piece = |way| Piece { thread: 0, began: 0, ended: 9_000, way, bytes: 1 << 60, is_trial: true };
    trace.pieces = Way::ALL.map(piece).to_vec();
    trace
}

/// A recording of a program with a ring of its own.
fn foreign() -> Trace {
    let request = |opcode: &str, submitted, completed| Request {
        thread: 0,
        ring: 0,
        opcode: opcode.to_owned(),
        user_data: 0,
        submitted,
        completed,
        result: None,
        handed_over: None,
    };
    let name = "fio".to_owned();
    Trace {
        about: About { command: vec![name.clone()], took: 1_000_000, ..About::default() },
        threads: vec![Thread { tid: 7, role: Role::Other, name }],
        requests: vec![
            request("READ", 0, Some(600_000)),
            request("READ", 100_000, Some(970_000)),
            request("POLL_ADD", 0, None),
        ],
        ..Trace::default()
    }
}

#[test]
fn a_recording_is_shown_in_as_many_columns_as_there_are() {
    let trace = recording();
    for (columns, glyphs, expected) in [
        (40, Ascii, include_str!("tests/narrow.txt")),
        (80, Blocks, include_str!("tests/usual.txt")),
        (200, Blocks, include_str!("tests/wide.txt")),
    ] {
        let shown = of(&trace, Page::new(columns, glyphs));
        assert!(shown == expected, "{columns} columns:\n{shown}");
    }
}

#[test]
fn every_line_fits_the_page() {
    for trace in [recording(), unusual(), foreign(), sample::with_device(recording()), Trace::default()] {
        for columns in [40, 60, 79, 80, 200] {
            for glyphs in [Ascii, Blocks] {
                let shown = of(&trace, Page::new(columns, glyphs));
                let wide: Vec<&str> = shown.lines().filter(|line| line.chars().count() > columns).collect();
                assert!(wide.is_empty(), "{columns} columns: {wide:#?}");
                assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
            }
        }
    }
}

#[test]
fn requests_of_devices_are_told_beside_the_operations() {
    assert!(!of(&recording(), Page::new(200, Blocks)).contains("block devices"));
    let mut trace = sample::with_device(recording());
    let read = trace.device_requests.iter().position(|its| its.kind == DeviceKind::Read).unwrap();
    trace.device_requests[read].is_failed = true;
    let own = trace.device_requests.iter().filter(|its| its.thread.is_some()).count();
    let shown = of(&trace, Page::new(200, Blocks));
    let part = shown.split("\n\n").find(|part| part.starts_with("Requests of block devices")).unwrap();
    let lines: Vec<&str> = part.lines().collect();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    assert_eq!(words(lines[1]), "device kind requests own failed bytes median p99 slowest");
    assert!(words(lines[2]).starts_with(&format!("vda read 24 {own} 1 98 kB ")), "{}", lines[2]);
    assert!(lines.iter().any(|line| line.starts_with("A device was busy ")), "{part}");
    assert!(part.contains(" of the time in which an operation was in flight; up to "), "{part}");
    assert!(shown.lines().any(|line| line.starts_with("devices      ")), "{shown}");
    trace.device_requests[0].completed = None;
    let shown = of(&trace, Page::new(80, Blocks));
    assert!(shown.contains("The completion of 1 of "), "{shown}");
    let offset = |line: &str| line.contains("4,096 bytes at offset ");
    assert!(shown.lines().any(offset), "{shown}");
}

#[test]
fn lost_events_are_told_with_the_answer() {
    let shown = of(&unusual(), Page::new(200, Blocks));
    let (answer, _) = shown.split_once("\n\n").unwrap();
    assert!(answer.contains("\nLOST: 12,345,678 events of the program and 1 of the kernel"), "{answer}");
}

#[test]
fn names_that_are_too_long_lose_their_middle() {
    let shown = of(&unusual(), Page::new(80, Blocks));
    let named: Vec<&str> = shown.lines().filter(|line| line.contains("'photos/a l")).collect();
    assert_eq!(named.len(), 11, "the answer, and the longest ten: {shown}");
    let is_cut = |line: &&str| line.contains('…') && line.contains("spaces '");
    assert!(named.iter().all(is_cut), "{named:#?}");
}

#[test]
fn the_sum_of_times_is_explained_once() {
    for (trace, table) in [(recording(), "Time by route"), (foreign(), "Requests of rings")] {
        let shown = of(&trace, Page::new(200, Blocks));
        let noted: Vec<&str> = shown.split("\n\n").filter(|part| part.contains("add up: a sum")).collect();
        let [part] = noted.as_slice() else { panic!("{noted:#?}") };
        assert!(part.starts_with(table), "{part}");
    }
}

#[test]
fn a_program_without_operations_is_answered_from_its_requests() {
    let shown = of(&foreign(), Page::new(80, Ascii));
    let picture = format!("{}{}{}", "*".repeat(8), "@".repeat(40), "*".repeat(30));
    let expected = format!(
        "A read was in flight 97 % of the time; longest wait: 870 µs, READ.\n\n\
         Requests in flight over 1.00 ms, up to 3\n{picture}--\n\nfio\n"
    );
    assert!(shown.starts_with(&expected), "{shown}");
}

#[test]
fn a_recording_without_anything_says_so() {
    let shown = of(&Trace::default(), Page::new(80, Blocks));
    assert!(shown.starts_with("No operation was in flight.\n\n"), "{shown}");
}
