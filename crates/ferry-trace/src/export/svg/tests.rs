use super::axis::{self, Axis};
use super::closer;
use super::svg;
use crate::Trace;
use crate::model::{Role, Thread};
use crate::sample;

/// Maximum size of any picture.
const MOST_BYTES: usize = 1_000_000;

fn drawn(trace: &Trace) -> String {
    let mut out = Vec::new();
    svg(trace, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn count(picture: &str, what: &str) -> usize {
    picture.matches(what).count()
}

#[test]
fn the_picture_of_a_million_operations_is_small() {
    let trace = sample::copy_of(250_000);
    assert_eq!(trace.operations.len(), 1_000_000);
    let picture = drawn(&trace);
    assert!(picture.len() < MOST_BYTES, "{}", picture.len());
    assert!(
        picture
            .contains("1,000,000 operations in 1.25 s; 2,499,986 in 500,000 submissions, 5.0 a submission.")
    );
}

#[test]
fn of_many_threads_the_busiest_are_drawn_and_the_others_counted() {
    let mut trace = sample::copy_of(20_000);
    let thread = |index| Thread { tid: index, role: Role::Worker, name: format!("worker {index}") };
    trace.threads = (0..100).map(thread).collect();
    for (index, operation) in (0_u32..).zip(&mut trace.operations) {
        // Each thread has operations on every route, and thread 7 has the most; their durations differ.
        operation.thread = if index % 50 == 0 { 7 } else { index / 4 % 100 };
        operation.taken = operation.taken.map(|taken| taken + u64::from(index % 100) * 1_000);
    }
    let picture = drawn(&trace);
    assert!(picture.len() < MOST_BYTES, "{}", picture.len());
    assert!(picture.contains(">96 more threads are not drawn.<"));
    assert!(picture.contains(">worker 7<") && picture.contains(" of worker 7, from "), "the busiest");
}

#[test]
fn the_picture_ends_with_the_last_operation_and_not_with_the_recording() {
    let mut trace = sample::copy_of(1_000);
    let before = drawn(&trace);
    trace.about.took *= 3;
    assert_eq!(drawn(&trace), before);
}

#[test]
fn a_few_operations_are_drawn_one_by_one() {
    let mut trace = sample::copy_of(1);
    trace.enters.clear();
    let picture = drawn(&trace);
    assert!(picture.contains(">All of worker 0: 6.90 µs.<") && !picture.contains("The whole"));
    // In the legend and the picture: each of two ring operations has its box, and the waits before and after.
    assert_eq!(count(&picture, "<rect class=\"ring in-ring\""), 1 + 2);
    assert_eq!(count(&picture, "<rect class=\"ring waits\""), 1 + 4);
    assert_eq!(count(&picture, "<rect class=\"inline\""), 1 + 1);
    assert_eq!(count(&picture, "<rect class=\"pool\""), 1 + 1);
    // Two submissions, and their line in the legend.
    assert_eq!(count(&picture, "class=\"mark\""), 1 + 2);
    assert!(!picture.contains("class=\"mark full\""));
}

#[test]
fn the_piece_has_operations_and_submissions_but_not_too_many() {
    for files in [500, 5_000] {
        let trace = sample::copy_of(files);
        let all = Axis::of(0, super::spans::end(&trace));
        let window = closer::window(&trace, 0, all);
        let is_within = |at| (window.began..=window.ended).contains(&at);
        let own = trace.operations.iter().filter(|operation| operation.thread == 0);
        let asked = own.filter(|operation| is_within(operation.asked)).count();
        assert!((50..=closer::MOST).contains(&asked), "{asked}");
        assert!(
            trace.submissions.iter().filter(|batch| batch.thread == 0 && is_within(batch.at)).count() >= 4
        );
    }
}

#[test]
fn a_program_without_operations_is_drawn_from_its_requests() {
    let mut trace = sample::copy_of(200);
    (trace.operations, trace.submissions, trace.rests, trace.enters) = (vec![], vec![], vec![], vec![]);
    let picture = drawn(&trace);
    assert!(picture.contains(">400 requests in 1.0"));
    assert!(count(&picture, "<rect class=\"ring in-ring\"") > 100);
}

#[test]
fn names_are_no_markup() {
    let mut trace = sample::copy_of(1);
    trace.about.command = vec!["/bin/ferry".to_owned(), "</title><script>&\"'\u{202e}\u{1}".to_owned()];
    trace.threads[0].name = "]]><a href='x'>".to_owned();
    let picture = drawn(&trace);
    assert!(!picture.contains("<script") && !picture.contains("<a "));
    assert!(picture.contains(">ferry &lt;/title&gt;&lt;script&gt;&amp;&quot;&#39;\u{fffd}\u{fffd}<"));
    trace.about.command = vec!["x".repeat(10_000), "y".to_owned()];
    assert!(!drawn(&trace).contains(&"x".repeat(200)));
}

#[test]
fn a_recording_of_nothing_is_a_picture_all_the_same() {
    let picture = drawn(&Trace::default());
    assert!(picture.contains(">A recording<") && picture.contains(">0 operations in 0 ns.<"));
    let mut trace = sample::copy_of(3);
    trace.lost.kernel = 1_234;
    trace.threads.clear();
    assert!(drawn(&trace).contains(">1,234 events were lost because buffers were full.<"));
}

#[test]
fn a_route_has_one_colour_in_picture_and_page() {
    let style = include_str!("style.css");
    let page = include_str!("../html/colours.js");
    let tables: Vec<&str> = page.lines().filter_map(|line| line.trim().strip_prefix("routes: [")).collect();
    assert_eq!(tables.len(), 2, "light and dark");
    // The lines of the style are light, dark, and paper, which is light.
    for (line, table) in style.lines().zip([tables[0], tables[1], tables[0]]) {
        let colours = table.split('\'').filter(|part| part.starts_with('#'));
        for (route, colour) in ferry_io::Route::ALL.iter().zip(colours) {
            assert!(line.contains(&format!("--{}:{colour}", route.name())), "{route:?} {colour}: {line}");
        }
    }
}

#[test]
fn waiting_is_called_idle_and_not_sleep() {
    let trace = sample::copy_of(200);
    assert!(!trace.rests.is_empty());
    let picture = drawn(&trace);
    assert!(picture.contains(">idle<") && !picture.contains("sleep"));
}

#[test]
fn devices_are_drawn_beneath_the_operations() {
    let without = drawn(&sample::copy_of(1_000));
    assert!(!without.contains("Requests of block devices"));
    let mut trace = sample::with_device(sample::copy_of(1_000));
    let picture = drawn(&trace);
    let shape = "<path class=\"device\"";
    assert!(picture.contains("Requests of block devices in flight, of every program: mean."));
    assert!(
        picture.contains(&format!(
            ">vda: {} requests, up to ",
            axis::grouped(trace.device_requests.len() as u64)
        ))
    );
    assert_eq!((count(&picture, shape), count(&without, shape)), (1, 0));
    // Of many devices, the busiest are drawn and the others counted.
    for device in 0..4 {
        trace.threads.push(Thread { tid: 0, role: Role::Device, name: format!("loop{device}") });
        let device = u32::try_from(trace.threads.len() - 1).unwrap();
        let request = crate::model::DeviceRequest { device, ..trace.device_requests[0].clone() };
        trace.device_requests.push(request);
    }
    let picture = drawn(&trace);
    assert_eq!(count(&picture, shape), 3);
    assert!(picture.contains(">2 more devices are not drawn.<") && picture.contains(">vda: "));
}
