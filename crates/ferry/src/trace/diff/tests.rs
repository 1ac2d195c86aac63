use ferry_io::{Operation as Kind, Route};
use ferry_trace::Trace;
use ferry_trace::diff::{Basis, Cause, Contribution, Diff, HandedOver, Move, Part, Run, Subject};
use ferry_trace::model::{About, Lost};
use serde_json::Value;

use super::{json, text};

const MS: u64 = 1_000_000;

fn trace(words: &str) -> Trace {
    let command = words.split(' ').map(str::to_owned).collect();
    Trace { about: About { command, ..About::default() }, ..Trace::default() }
}

fn traces() -> [Trace; 2] {
    [trace("ferry cp -r --trace a photos backup"), trace("ferry cp -r --trace b photos backup")]
}

fn run(states: [u64; 4], operations: u64, until_begun: u64) -> Run {
    let handed_over = HandedOver {
        to_pool: 500,
        to_ring: 0,
        to_kernel_workers: 0,
        until_begun: 500 * until_begun,
        until_taken: 500 * 10_000,
    };
    let took = states.iter().sum();
    Run { took, states, operations, handed_over, has_kernel: true }
}

fn part(cause: Cause, contributions: &[(Subject, i64)]) -> Part {
    let contributions: Vec<Contribution> =
        contributions.iter().map(|&(subject, difference)| Contribution { subject, difference }).collect();
    let difference = contributions.iter().map(|its| its.difference).sum();
    Part { cause, difference, contributions }
}

/// B waits 552 ms longer for the device, and 48 ms longer for other causes.
fn slower_device() -> Diff {
    let load = Subject::Operations(Kind::Load, Route::Pool);
    let store = Subject::Operations(Kind::Store, Route::Inline);
    let ms = 1_000_000;
    Diff {
        before: run([300 * MS, 800 * MS, 90 * MS, 10 * MS], 1_000, 20_000),
        after: run([294 * MS, 1_352 * MS, 121 * MS, 33 * MS], 1_000, 25_000),
        basis: Basis::Kernel,
        causes: vec![
            part(Cause::DeviceWait, &[(load, 540 * ms), (store, 12 * ms)]),
            part(Cause::HandOvers, &[(load, 31 * ms)]),
            part(Cause::ProcessorTime, &[(Subject::Other, -7 * ms), (store, ms)]),
            part(Cause::Route, &[]),
            part(Cause::OtherOperations, &[]),
            Part { cause: Cause::Unexplained, difference: 23 * ms, contributions: Vec::new() },
        ],
        moves: Vec::new(),
    }
}

fn shown(diff: &Diff, [a, b]: &[Trace; 2], columns: usize) -> String {
    text::of(diff, [a, b], columns)
}

#[test]
fn the_first_line_names_the_cause() {
    let expected = "\
B took 1.80 s, 600 ms (50 %) longer than A. 92 % of it: device wait (+552 ms),
mostly load on the pool.

A  ferry cp -r --trace a photos backup
B  ferry cp -r --trace b photos backup

Causes            difference  share  largest part
device wait           552 ms   92 %  load on the pool: 540 ms
hand-overs           31.0 ms    5 %  load on the pool: 31.0 ms
processor time      -6.00 ms   -1 %  between operations: -7.00 ms
route                    0 s    0 %
other operations         0 s    0 %
unexplained          23.0 ms    4 %

Wall time        A        B  difference
processor   300 ms   294 ms    -6.00 ms
device      800 ms   1.35 s      552 ms
hand-over  90.0 ms   121 ms     31.0 ms
nothing    10.0 ms  33.0 ms     23.0 ms
Each moment counts once, in the first row that applies. Processor: a thread runs
or is ready to run. Device: an operation is performed while its thread sleeps.
Hand-over: an operation or its result waits.

Operations                A        B
performed             1,000    1,000
handed to the pool      500      500
handed to a ring          0        0
to kernel workers         0        0
until begun, mean   20.0 µs  25.0 µs
until taken, mean   10.0 µs  10.0 µs
";
    assert_eq!(shown(&slower_device(), &traces(), 80), expected);
}

#[test]
fn a_narrow_terminal_has_the_largest_parts_on_lines_of_their_own() {
    let text = shown(&slower_device(), &traces(), 40);
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 40).collect();
    assert!(wide.is_empty(), "{wide:?}");
    let lines = "\
Causes            difference  share
device wait           552 ms   92 %
  load on the pool: 540 ms
hand-overs           31.0 ms    5 %
";
    assert!(text.contains(lines), "{text}");
    let wide = shown(&slower_device(), &traces(), 200);
    assert!(wide.starts_with("B took 1.80 s, 600 ms (50 %) longer than A. 92 % of it: "), "{wide}");
}

/// First sentences of a comparison of A, which took a second, with B.
fn answer(after: u64, causes: Vec<Part>) -> String {
    let (before, after) = (run([1_000 * MS, 0, 0, 0], 9, 0), run([after, 0, 0, 0], 9, 0));
    let diff = Diff { before, after, causes, ..slower_device() };
    shown(&diff, &traces(), 200).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_gain_and_a_cause_that_others_make_up_for_are_told_as_such() {
    let ms = 1_000_000;
    let moved = Subject::Moved(Kind::Load, Route::Pool, Route::Inline);
    assert_eq!(
        answer(600 * MS, vec![part(Cause::Route, &[(moved, -300 * ms), (Subject::Other, -50 * ms)])]),
        "B took 600 ms, 400 ms (40 %) less than A. 88 % of it: route (-350 ms), mostly load, from the pool to inline."
    );
    let replaced = Subject::Replaced(Route::Inline, Route::Ring);
    let causes =
        vec![part(Cause::Route, &[(replaced, 700 * ms)]), part(Cause::DeviceWait, &[(moved, -100 * ms)])];
    assert_eq!(
        answer(1_600 * MS, causes),
        "B took 1.60 s, 600 ms (60 %) longer than A. More than all of it: route (+700 ms), mostly other kinds of \
         operations, from inline to the ring."
    );
    let several = [Cause::HandOvers, Cause::Unexplained, Cause::OtherOperations];
    let causes = several.into_iter().zip([240, 200, 160]);
    let causes = causes.map(|(cause, n)| part(cause, &[(Subject::Other, n * ms)])).collect();
    assert_eq!(
        answer(1_600 * MS, causes),
        "B took 1.60 s, 600 ms (60 %) longer than A. The largest part, 40 %: hand-overs (+240 ms)."
    );
}

#[test]
fn little_is_no_evidence() {
    let cause = || vec![part(Cause::DeviceWait, &[(Subject::Other, 20_000_000)])];
    assert_eq!(
        answer(1_020 * MS, cause()),
        "B took 1.02 s, 20.0 ms (2 %) longer than A. One run of each is no evidence for so small a difference."
    );
    assert_eq!(answer(1_000 * MS, Vec::new()), "B took 1.00 s, as long as A.");
}

#[test]
fn what_makes_figures_doubtful_stands_before_them() {
    let mut traces = traces();
    traces[0].lost = Lost { program: 3, kernel: 4 };
    let refusal = "nothing of the kernel's side: it needs root or CAP_PERFMON";
    traces[1].about.missing.push(refusal.to_owned());
    let mut diff = slower_device();
    diff.basis = Basis::Program;
    (diff.after.has_kernel, diff.after.operations) = (false, 2_000);
    let text = shown(&diff, &traces, 80);
    let lines = "\
mostly load on the pool.
A performed 1,000 operations, and B 2,000 operations: the runs may not have done
the same work.
LOST: A lacks 7 events.
B does not show which calls slept (nothing of the kernel's side: it needs root
or CAP_PERFMON).
So long calls count as device wait, even if they waited for a processor.

A  ferry";
    assert!(text.contains(lines), "{text}");
}

#[test]
fn moves_to_another_route_are_listed() {
    let its = Move {
        kind: Kind::Load,
        before: Route::Inline,
        after: Route::Pool,
        operations: 1_500,
        difference: 28_000_000,
    };
    let text = shown(&Diff { moves: vec![its], ..slower_device() }, &traces(), 80);
    let lines = "\nMoved                 operations  difference
load, inline to pool       1,500     28.0 ms
";
    assert!(text.ends_with(lines), "{text}");
}

#[test]
fn the_object_has_the_same_figures() {
    let [a, b] = traces();
    let text = json::of(&slower_device(), [&a, &b]);
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&told["difference_ns"], &told["basis"]), (&600_000_000.into(), &"kernel".into()));
    assert_eq!(told["a"]["states"]["hand_over_ns"], 90_000_000);
    assert_eq!(told["b"]["handed_over"]["until_begun_mean_ns"], 25_000);
    let first = &told["causes"][0];
    assert_eq!((&first["cause"], &first["share"]), (&"device wait".into(), &0.92.into()));
    assert_eq!(first["parts"][0]["kind"], "load");
    assert_eq!(told["causes"][2]["share"], -0.01);
}
