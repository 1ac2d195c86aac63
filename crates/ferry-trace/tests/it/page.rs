//! The page in a browser: its data equals the trace, it is fast with a million events, and its words make sense.

use ferry_io::{Options, RouteChoice, Tracing};
use ferry_trace::Trace;
use ferry_trace::model::{Did, Fiber, KernelEvent, Lost, Role, Scope, ScopeKind, Thread};
use ferry_trace::sample::{copy_of, with_device};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::program::{FILES, content, traced};

/// Number of files whose copy makes a trace of a million entries.
const MANY: u32 = 68_200;

fn entries(trace: &Trace) -> usize {
    let kernel = trace.requests.len() + trace.kernel.len();
    let ring = trace.submissions.len() + trace.enters.len() + trace.rests.len() + trace.samples.len();
    trace.scopes.len() + trace.fibers.len() + trace.operations.len() + ring + kernel
}

/// Median and maximum of frame times in milliseconds.
fn pace(browser: &mut Browser) -> (f64, f64) {
    let sorted = browser.is("pace.toSorted((a, b) => a - b)");
    let sorted: Vec<f64> = sorted.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    assert!(!sorted.is_empty());
    (sorted[sorted.len() / 2], sorted[sorted.len() - 1])
}

/// Presses keys, each after the previous movement has ended.
fn press(browser: &mut Browser, keys: &[&str]) {
    for key in keys {
        browser.press(key);
        browser.until("view.move === null && !frame.isDue");
    }
}

#[test]
fn a_million_events_are_zoomed_panned_and_searched_without_delay() {
    let Some(mut browser) = Browser::started() else { return };
    let trace = copy_of(MANY);
    assert!(entries(&trace) >= 1_000_000);
    let bytes = browser.open(&trace);
    assert!(bytes < 6_000_000, "{bytes}");
    browser.until("document.querySelectorAll('#summary table').length >= 5");
    browser.is("pace.length = 0");
    press(&mut browser, &["w", "w", "+", "d", "ArrowRight", "a", "s", "-", "0"]);
    for _ in 0..8 {
        press(&mut browser, &["w", "d"]);
    }
    assert!(browser.is("view.end - view.begin").as_f64().unwrap() < 20_000_000.0);
    press(&mut browser, &["/"]);
    browser.write("read file 34567");
    press(&mut browser, &["Enter"]);
    browser.until("!panel.hidden");
    assert_eq!(browser.words("found"), "1 of 1 match");
    let story = browser.words("story");
    for words in [
        "read 4 KiB file 34567",
        "Requested by fiber 34569 file 34567",
        "a batch of",
        "in the queue",
        "the ring",
    ] {
        assert!(story.contains(words), "{words}: {story}");
    }
    press(&mut browser, &["Escape"]);
    browser.is("timeline.focus()");
    press(&mut browser, &["f", "0"]);
    let (median, most) = pace(&mut browser);
    println!("{bytes} bytes; a frame took {median:.1} ms, {most:.1} ms at most");
    // Four times what an idle machine needs, because others may be at work.
    assert!(median < 33.0 && most < 250.0, "{median} {most}");
    browser.assert_content();
}

#[test]
fn a_million_operations_are_zoomed_and_panned_without_delay() {
    let Some(mut browser) = Browser::started() else { return };
    let trace = copy_of(250_000);
    assert_eq!(trace.operations.len(), 1_000_000);
    let bytes = browser.open(&trace);
    let ready = browser.is("performance.now()").as_f64().unwrap();
    browser.until("document.querySelectorAll('#summary table').length >= 5");
    browser.is("pace.length = 0");
    for _ in 0..8 {
        press(&mut browser, &["w", "d", "ArrowDown"]);
    }
    press(&mut browser, &["0", "a", "s"]);
    browser.is("goTo({ kind: 'operation', index: 654_321 })");
    press(&mut browser, &["f", "0"]);
    let (median, most) = pace(&mut browser);
    let entries = entries(&trace);
    println!(
        "{entries} entries, {bytes} bytes; drawn after {ready:.0} ms; a frame took {median:.1} ms, {most:.1} ms at most"
    );
    // Several times what an idle machine needs.
    assert!(bytes < 24_000_000 && ready < 60_000.0, "{bytes} {ready}");
    assert!(median < 50.0 && most < 500.0, "{median} {most}");
    browser.assert_content();
}

/// Asserts that a column of the page equals the trace's; missing values are null.
fn assert_column<T: Into<Value>>(browser: &mut Browser, column: &str, expected: impl Iterator<Item = T>) {
    let expected: Vec<Value> = expected.map(Into::into).collect();
    let found = browser.is(&format!("Array.from(trace.{column}, (x) => Number.isNaN(x) ? null : x)"));
    assert_eq!(found, Value::from(expected), "{column}");
}

#[test]
fn what_the_page_reads_is_what_was_written() {
    let Some(mut browser) = Browser::started() else { return };
    let mut trace = with_device(copy_of(1_001));
    trace.device_requests[2].completed = None;
    trace.operations[6].offset = Some(1 << 50);
    trace.operations[7].taken = None;
    trace.operations[7].result = None;
    trace.operations[8].result = Some(Ok(u64::from(u32::MAX) * 1_000));
    trace.requests[3].user_data = u64::MAX - 1;
    trace.requests[4].result = Some(-11);
    trace.fibers[9].name = "ü 漢字 \u{1f980}".to_owned();
    browser.open(&trace);
    let operations = trace.operations.iter();
    assert_column(&mut browser, "operations.kind", operations.clone().map(|one| one.kind as u64));
    assert_column(&mut browser, "operations.route", operations.clone().map(|one| one.route as u64));
    assert_column(&mut browser, "operations.reason", operations.clone().map(|one| one.reason as u64));
    assert_column(&mut browser, "operations.began", operations.clone().map(|one| one.asked));
    assert_column(&mut browser, "operations.started", operations.clone().map(|one| one.started));
    assert_column(&mut browser, "operations.completed", operations.clone().map(|one| one.completed));
    assert_column(&mut browser, "operations.taken", operations.clone().map(|one| one.taken));
    let offsets =
        operations.clone().map(|one| one.offset.map_or(-1, |offset| i64::try_from(offset).unwrap()));
    assert_column(&mut browser, "operations.offset", offsets);
    let index = |index: Option<u32>| index.map_or(-1, i64::from);
    let devices = trace.device_requests.iter();
    assert_column(&mut browser, "devices.thread", devices.clone().map(|one| one.device));
    assert_column(&mut browser, "devices.kind", devices.clone().map(|one| one.kind as u64));
    assert_column(&mut browser, "devices.sector", devices.clone().map(|one| one.sector));
    assert_column(&mut browser, "devices.bytes", devices.clone().map(|one| one.bytes));
    assert_column(&mut browser, "devices.by", devices.clone().map(|one| index(one.thread)));
    assert_column(&mut browser, "devices.began", devices.clone().map(|one| one.issued));
    assert_column(&mut browser, "devices.completed", devices.map(|one| one.completed));
    assert_column(&mut browser, "operations.fiber", operations.clone().map(|one| index(one.fiber)));
    assert_column(&mut browser, "operations.submission", operations.clone().map(|one| index(one.submission)));
    assert_column(&mut browser, "operations.request", operations.clone().map(|one| index(one.request)));
    assert_column(&mut browser, "submissions.requests", trace.submissions.iter().map(|one| one.requests));
    assert_column(&mut browser, "enters.ended", trace.enters.iter().map(|one| one.ended));
    assert_column(&mut browser, "rests.began", trace.rests.iter().map(|one| one.began));
    assert_column(&mut browser, "samples.value", trace.samples.iter().map(|one| one.value));
    assert_column(&mut browser, "requests.handedOver", trace.requests.iter().map(|one| one.handed_over));
    assert_column(&mut browser, "kernel.began", trace.kernel.iter().map(|one| one.at));
    assert_column(&mut browser, "kernel.chain", trace.kernel.iter().map(|one| index(one.chain)));
    assert_column(&mut browser, "scopes.fiber", trace.scopes.iter().map(|one| index(one.fiber)));
    assert_column(&mut browser, "fibers.ended", trace.fibers.iter().map(|one| one.ended));
    assert_eq!(browser.is("fiberTitle(9)"), "fiber 9 ü 漢字 \u{1f980}");
    assert_eq!(browser.is("STORIES.request(3).at(-1).innerText.includes('0xfffffffffffffffe')"), true);
    assert_eq!(
        browser.is("resultText(trace.requests.result[4])"),
        "EAGAIN, errno 11: Resource temporarily unavailable"
    );
    assert_eq!(browser.is("resultText(trace.operations.result[8])"), "4,294,967,295,000");
    assert_eq!(browser.is("trace.operations.result[7]"), 0);
    browser.assert_content();
}

/// Selects each thing of each table, and checks that its story and tip make sense.
fn tell_everything(browser: &mut Browser) {
    let told = browser.is(
        "Object.entries(TABLES).flatMap(([kind, table]) => Array.from({ length: Math.min(trace[table].count, 400) }, (_, index) => {
           goTo({ kind, index });
           return story.textContent + tipLines({ kind, index, among: 1 }).join(' ');
         }))",
    );
    for story in told.as_array().unwrap() {
        let story = story.as_str().unwrap();
        assert!(story.len() > 10);
        for mark in ["NaN", "undefined", "null", "Infinity", "[object"] {
            assert!(!story.contains(mark), "{mark}: {story}");
        }
    }
}

/// Trace of another program: one thread, its requests, and events of the kernel.
pub(crate) fn foreign() -> Trace {
    let mut trace = copy_of(60);
    trace.about.command = vec!["fio".to_owned(), "--name=x".to_owned()];
    trace.about.backend = String::new();
    trace.about.missing = vec!["no right to see tracepoints".to_owned()];
    trace.lost = Lost { program: 0, kernel: 12_345 };
    trace.threads.iter_mut().for_each(|thread| thread.role = Role::Other);
    let Trace { scopes, fibers, operations, submissions, enters, rests, samples, .. } = &mut trace;
    scopes.clear();
    fibers.clear();
    operations.clear();
    submissions.clear();
    enters.clear();
    rests.clear();
    samples.clear();
    let event = |at, did| KernelEvent { thread: 0, at, processor: 1, did, chain: Some(0) };
    trace.kernel.extend([
        event(400_000, Did::Sleep),
        event(410_000, Did::Wake { by: Some(1) }),
        event(420_000, Did::TaskAdd),
        event(430_000, Did::HandOver(Some(3))),
        event(440_000, Did::Sleep),
    ]);
    trace
}

#[test]
fn a_trace_without_anything_in_it_is_shown() {
    let Some(mut browser) = Browser::started() else { return };
    browser.open(&Trace::default());
    press(&mut browser, &["w", "s", "a", "d", "0", "f", "n", ".", "Enter"]);
    browser.until("document.querySelectorAll('#summary p').length === 1");
    browser.press("?");
    browser.until("help.open");
    browser.press("Escape");
    browser.assert_content();
}

#[test]
fn a_trace_of_another_program_is_shown() {
    let Some(mut browser) = Browser::started() else { return };
    browser.open(&foreign());
    assert!(browser.words("lost").contains("12,345 of the kernel"));
    assert!(browser.words("missing").contains("no right to see tracepoints"));
    // Two runs of task work for each of 60 files, each with one of eight causes in turn.
    browser.until("document.querySelectorAll('#summary table').length === 3");
    let met = browser.is("[...document.querySelectorAll('#summary table')]
        .find((table) => table.caption.innerText === 'How completions were found').tBodies[0].innerText");
    assert_eq!(met, "unknown\t14\nalready there\t74\nfound without sleeping\t16\nfound after sleeping\t16");
    let legend = browser.words("legend");
    for words in
        ["in flight: number", "in the kernel", "with a worker of the kernel", "found by search", "awake"]
    {
        assert!(legend.contains(words), "{words}: {legend}");
    }
    press(&mut browser, &["/"]);
    browser.write("read >5us");
    press(&mut browser, &["Enter"]);
    browser.until("!panel.hidden");
    assert!(browser.words("story").contains("READ"), "{}", browser.words("story"));
    tell_everything(&mut browser);
    browser.assert_content();
}

#[test]
fn a_thread_is_drawn_neither_before_it_began_nor_after_it_ended() {
    let Some(mut browser) = Browser::started() else { return };
    let mut trace = foreign();
    let event = |thread, at, did| KernelEvent { thread, at, processor: 1, did, chain: None };
    // Thread 0 has earlier events, thread 1 has none.
    trace.kernel.retain(|event| event.thread == 0);
    trace.kernel.extend([
        event(0, 445_000, Did::Run),
        event(0, 446_000, Did::Sleep),
        event(0, 450_000, Did::Ended),
        event(1, 450_000, Did::Began),
    ]);
    trace.about.took = 900_000;
    browser.open(&trace);
    assert_eq!(
        browser.is("(({ items, starts, ends }) => [items.length, ...starts, ...ends])(picture.sleeps)"),
        json!([3, 400_000, 440_000, 446_000, 410_000, 445_000, 450_000])
    );
    // Pixels near the left and right edge of each thread's band.
    let colours = browser.is("(({ data, width }) => [5, width - 6].flatMap((x) => [0, 1].map((thread) => {
        const { y } = picture.tracks.find((track) => track.kind === 'kernel' && track.thread === thread);
        const [red, green, blue] = data.slice(4 * ((y - timeline.scrollTop + 3) * width + x));
        return `#${[red, green, blue].map((value) => value.toString(16).padStart(2, '0')).join('')}`;
    })))(context.getImageData(0, 0, canvas.width, canvas.height))");
    let [awake, nothing] = ["colours.states[0]", "colours.paper"].map(|colour| browser.is(colour));
    assert_eq!(colours, json!([awake, nothing, nothing, awake]));
    tell_everything(&mut browser);
    browser.assert_content();
}

#[test]
fn devices_and_offsets_are_shown() {
    let Some(mut browser) = Browser::started() else { return };
    let mut trace = with_device(copy_of(50));
    trace.device_requests[1].completed = None;
    trace.device_requests[2].is_failed = true;
    trace.device_requests[3].thread = None;
    browser.open(&trace);
    browser.until("document.querySelectorAll('#summary table').length >= 5");
    assert!(browser.words("legend").contains("Requests of block devices"), "{}", browser.words("legend"));
    let rows = "[...document.querySelectorAll('#summary table')]
        .find((table) => table.caption.innerText.startsWith('Requests of block devices')).tBodies[0].innerText";
    let rows = browser.is(rows);
    assert!(rows.as_str().unwrap().starts_with("vda\tread\t50\t200 KiB\t"), "{rows}");
    for (index, words) in [
        (0, "Given to vda by worker 0 at "),
        (1, "Its completion is not recorded."),
        (2, "Failed after "),
        (3, "by another thread of the machine"),
    ] {
        browser.is(&format!("goTo({{ kind: 'device', index: {index} }})"));
        browser.until("view.move === null && !frame.isDue");
        assert!(browser.words("story").contains(words), "{}", browser.words("story"));
    }
    let read = trace.operations.iter().position(|one| one.offset == Some(8_192)).unwrap();
    browser.is(&format!("goTo({{ kind: 'operation', index: {read} }})"));
    assert!(browser.words("story").contains("at offset 8,192."), "{}", browser.words("story"));
    tell_everything(&mut browser);
    browser.assert_content();
}

#[test]
fn every_story_of_a_small_trace_makes_sense() {
    let Some(mut browser) = Browser::started() else { return };
    let mut trace = copy_of(50);
    for (index, operation) in trace.operations.iter_mut().enumerate().filter(|(index, _)| index % 7 == 0) {
        operation.completed = None;
        operation.taken = (index % 2 == 0).then_some(operation.asked + 1_000);
        operation.started = None;
    }
    trace.operations[3].fiber = None;
    trace.fibers[5].ended = None;
    trace.scopes[3].cancelled = Some(9_000);
    browser.open(&trace);
    tell_everything(&mut browser);
    let legend = browser.words("legend");
    assert!(legend.contains("idle") && !legend.contains("asleep"), "{legend}");
    browser.assert_content();
}

/// Names that try to become markup or script, or to move the words around them.
const HOSTILE: &str =
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}gpj\u{0}\r\n${alert(1)}";

#[test]
fn hostile_names_are_only_text() {
    let Some(mut browser) = Browser::started() else { return };
    let mut trace = copy_of(20);
    trace.about.command = vec![HOSTILE.to_owned()];
    trace.about.missing = vec![HOSTILE.to_owned()];
    trace.about.kernel = HOSTILE.to_owned();
    trace.about.run = HOSTILE.to_owned();
    trace.chains = vec![vec![HOSTILE.to_owned()]; 2];
    trace.counters = vec![(HOSTILE.to_owned(), 1)];
    trace.threads.iter_mut().for_each(|thread| thread.name = HOSTILE.to_owned());
    trace.fibers.iter_mut().for_each(|fiber| fiber.name = HOSTILE.to_owned());
    trace.scopes.iter_mut().for_each(|scope| scope.name = HOSTILE.to_owned());
    trace.operations.iter_mut().for_each(|operation| operation.name = HOSTILE.to_owned());
    trace.requests.iter_mut().for_each(|request| request.opcode = HOSTILE.to_owned());
    browser.open(&trace);
    browser.until("document.querySelectorAll('#summary table').length >= 5");
    tell_everything(&mut browser);
    assert_eq!(browser.is("document.querySelectorAll('img, iframe, object').length"), 0);
    assert_eq!(browser.is("document.scripts.length"), 2);
    let words = browser.is("document.body.innerText + document.title");
    let words = words.as_str().unwrap();
    assert!(
        words.contains("</script><script>alert(1)</script><img src=x onerror=alert(1)>\\u{202e}gpj\\u{0}")
    );
    assert!(!words.contains('\u{202e}'));
    browser.assert_content();
}

#[test]
fn what_refers_to_nothing_is_drawn_nonetheless() {
    let Some(mut browser) = Browser::started() else { return };
    let mut trace = copy_of(20);
    trace.operations[3].thread = 999;
    trace.operations[4].fiber = Some(99_999);
    trace.operations[5].submission = Some(99_999);
    trace.operations[6].request = Some(99_999);
    trace.operations[7].taken = Some(0);
    trace.operations[8].ran_on = Some(99_999);
    trace.kernel[2].chain = Some(99_999);
    trace.kernel[3].thread = 999;
    trace.submissions[1].thread = 999;
    trace.scopes.push(Scope { fiber: Some(99_999), thread: 999, ..trace.scopes[3].clone() });
    trace.fibers.push(Fiber { scope: 99_999, name: "lost".to_owned(), began: 60_000, ended: Some(1) });
    trace.about.took = 0;
    browser.open(&trace);
    tell_everything(&mut browser);
    browser.assert_content();
}

#[test]
fn scopes_nested_beyond_reason_are_drawn() {
    let Some(mut browser) = Browser::started() else { return };
    let mut trace = Trace::default();
    trace.threads.push(Thread { tid: 1, role: Role::Worker, name: "worker 0".to_owned() });
    for level in 0..20_000_u32 {
        let began = u64::from(level);
        let scope = Scope {
            kind: ScopeKind::Scope,
            thread: 0,
            fiber: level.checked_sub(1),
            name: String::new(),
            began,
            ended: Some(100_000 - began),
            cancelled: None,
        };
        trace.scopes.push(scope);
        trace.fibers.push(Fiber { scope: level, name: String::new(), began, ended: Some(100_000 - began) });
    }
    browser.open(&trace);
    browser.is("goTo({ kind: 'fiber', index: 19_999 })");
    browser.until("view.move === null && !frame.isDue");
    assert!(browser.is("timeline.scrollTop").as_f64().unwrap() > 100_000.0);
    browser.is("toggleScope(3)");
    assert!(browser.is("picture.height").as_f64().unwrap() < 400.0);
    browser.assert_content();
}

#[test]
fn more_fibers_at_once_than_rows_share_the_last() {
    let Some(mut browser) = Browser::started() else { return };
    let mut trace = copy_of(5_000);
    trace.fibers.iter_mut().for_each(|fiber| fiber.ended = None);
    trace.requests.iter_mut().for_each(|request| request.completed = None);
    trace.operations.clear();
    browser.open(&trace);
    // A thread has 2,500 fibers and twice as many requests.
    assert_eq!(
        browser.is("[picture.layout.scopeHeight[2], picture.requests.first[1]]"),
        json!([2_001, 2_000])
    );
    browser.is("goTo({ kind: 'request', index: trace.requests.count - 1 })");
    browser.until("view.move === null && !frame.isDue");
    browser.assert_content();
}

#[test]
fn the_mouse_zooms_pans_selects_and_folds() {
    let Some(mut browser) = Browser::started() else { return };
    browser.open(&copy_of(300));
    let centre = browser
        .is("(({ left, top, width }) => [left + width / 2, top + 100])(canvas.getBoundingClientRect())");
    let (x, y) = (centre[0].as_f64().unwrap(), centre[1].as_f64().unwrap());
    let under = "view.time(canvas.clientWidth / 2)";
    let before = browser.is(under).as_f64().unwrap();
    for _ in 0..8 {
        browser.mouse("mouseWheel", x, y, &json!({"deltaX": 0, "deltaY": -240}));
    }
    browser.until("view.end - view.begin < trace.end / 8");
    assert!((browser.is(under).as_f64().unwrap() - before).abs() < 2_000.0);
    let begin = browser.is("view.begin").as_f64().unwrap();
    browser.mouse("mousePressed", x, y, &json!({"buttons": 1}));
    browser.mouse("mouseMoved", x - 200.0, y, &json!({"buttons": 1}));
    browser.mouse("mouseReleased", x - 200.0, y, &json!({}));
    assert!(browser.is("view.begin").as_f64().unwrap() > begin);
    assert_eq!(browser.is("selection.current"), Value::Null);
    browser.is("view.show(0, trace.end)");
    let place = browser.is(
        "(({ left, top }) => [left + view.x(trace.operations.began[100] + 600), top + placeOf({ kind: 'operation', index: 100 }).y + 8])
         (canvas.getBoundingClientRect())",
    );
    let (x, y) = (place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    browser.mouse("mouseMoved", x, y, &json!({}));
    browser.until("!tip.hidden && tip.innerText.includes(operationTitle(100))");
    browser.mouse("mousePressed", x, y, &json!({"buttons": 1}));
    browser.mouse("mouseReleased", x, y, &json!({}));
    assert_eq!(browser.is("selection.current"), json!({"kind": "operation", "index": 100}));
    let tall = browser.is("picture.height").as_f64().unwrap();
    browser.is("document.querySelector('#labels .thread').click()");
    assert!(browser.is("picture.height").as_f64().unwrap() < tall);
    assert_eq!(
        browser.is("document.querySelector('#labels .thread').getAttribute('aria-expanded')"),
        "false"
    );
    browser.assert_content();
}

#[test]
fn a_phone_and_the_dark_are_thought_of() {
    let Some(mut browser) = Browser::started() else { return };
    browser.window(360, 740, true);
    browser.open(&copy_of(300));
    browser.is("goTo({ kind: 'operation', index: 100 })");
    assert_eq!(browser.is("document.documentElement.scrollWidth"), 360);
    assert_eq!(browser.is("[isDark(), colours.paper]"), json!([true, "#14171b"]));
    browser.is("document.getElementById('dark').click()");
    assert_eq!(
        browser.is("[isDark(), getComputedStyle(document.body).backgroundColor]"),
        json!([false, "rgb(255, 255, 255)"])
    );
    // Buttons, fields and pictures have names.
    let nameless = "[...document.querySelectorAll('button, input, canvas:not([aria-hidden])')]
        .filter((one) => !one.getAttribute('aria-label') && !one.textContent.trim()).length";
    assert_eq!(browser.is(nameless), 0);
    browser.assert_content();
}

#[test]
fn an_error_of_the_page_would_be_seen() {
    let Some(mut browser) = Browser::started() else { return };
    browser.open(&copy_of(1));
    browser.is("setTimeout(() => { throw new Error('seen') })");
    browser.is("new Promise((done) => setTimeout(done, 50))");
    assert!(format!("{:?}", browser.said).contains("seen"));
    // The page's policy prevents injected scripts.
    browser.is("document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = true' }))");
    assert_eq!(browser.is("window.ran === undefined"), true);
}

#[test]
fn a_real_recording_is_shown_whole() {
    let Some(mut browser) = Browser::started() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    [&source, &target].iter().for_each(|path| std::fs::create_dir(path).unwrap());
    for index in 0..FILES {
        std::fs::write(source.join(index.to_string()), content(index)).unwrap();
    }
    let tracing = Some(Tracing::to(folder.path().join("recording")));
    let options = Options { trace: tracing, route: RouteChoice::Ring, ..Options::default() };
    let (trace, ..) = traced(&options, &source, &target, "page");
    browser.open(&trace);
    assert_column(&mut browser, "operations.taken", trace.operations.iter().map(|one| one.taken));
    // Everything has a row, and nothing in a row overlaps.
    let unplaced = "[...picture.layout.operationRow, ...picture.layout.fiberRow, ...picture.layout.scopeRow].filter((row) => row < 0).length";
    assert_eq!(browser.is(unplaced), 0);
    let overlapping = "[picture.layout.operations, picture.layout.fibers, picture.layout.scopes].flatMap(({ first, starts, ends }) =>
        Array.from(first.slice(0, -1), (from, row) => Array.from(starts.slice(from, first[row + 1]))
            .filter((start, i) => i > 0 && start < ends[from + i - 1]))).flat().length";
    assert_eq!(browser.is(overlapping), 0);
    tell_everything(&mut browser);
    browser.assert_content();
}
