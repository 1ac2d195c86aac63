mod scripts;

use std::io::{self, Write};

use serde_json::Value;

use super::{STYLE, html, joined};
use crate::model::{Fiber, Trace};
use crate::sample::copy_of;

/// Would end the script, the data or the style if it became markup.
const HOSTILE: &str = "</script><script>alert(1)</script><!--<script>]]>\u{202e}\0\"'`${1}";

fn page(trace: &Trace) -> String {
    let mut out = Vec::new();
    html(trace, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn between<'p>(page: &'p str, before: &str, after: &str) -> &'p str {
    page.split_once(before).unwrap().1.split_once(after).unwrap().0
}

fn hostile() -> Trace {
    let mut trace = copy_of(3);
    trace.about.command = vec![HOSTILE.to_owned()];
    trace.about.missing = vec![HOSTILE.to_owned()];
    trace.about.run = HOSTILE.to_owned();
    trace.chains.push(vec![HOSTILE.to_owned()]);
    trace.threads.iter_mut().for_each(|thread| thread.name = HOSTILE.to_owned());
    trace.operations.iter_mut().for_each(|operation| operation.name = HOSTILE.to_owned());
    trace.fibers.push(Fiber { scope: 0, name: HOSTILE.to_owned(), began: 5, ended: None });
    trace
}

#[test]
fn the_page_refers_to_nothing_outside_it() {
    for trace in [Trace::default(), copy_of(100)] {
        let page = page(&trace);
        assert!(page.starts_with("<!doctype html>"));
        for mark in ["http:", "https:", " src=", "url(", "@import", "import(", "fetch(", "innerHTML", "@@"] {
            assert!(!page.contains(mark), "{mark}");
        }
        assert!(page.contains("content=\"default-src 'none'; script-src 'sha256-"));
    }
}

#[test]
fn nothing_in_a_trace_becomes_markup() {
    let (harmless, hostile) = (page(&copy_of(3)), page(&hostile()));
    for tag in ["<script", "</script", "<!--", "alert(1)</"] {
        assert_eq!(hostile.matches(tag).count(), harmless.matches(tag).count(), "{tag}");
    }
    let head: Value = serde_json::from_str(between(&hostile, " id=\"head\">", "</script>")).unwrap();
    assert_eq!(head["command"][0], HOSTILE);
    assert_eq!(head["threads"][0][2], HOSTILE);
}

#[test]
fn our_own_files_do_not_end_their_elements() {
    assert!(!STYLE.contains("</"));
    assert!(!joined().contains("</script") && !joined().contains("<!--"));
}

#[test]
fn an_operation_takes_few_bytes() {
    let trace = copy_of(10_000);
    let events = trace.operations.len() + trace.fibers.len() + trace.submissions.len() + trace.enters.len();
    let events = events + trace.rests.len() + trace.samples.len() + trace.requests.len() + trace.kernel.len();
    let data = page(&trace).len() - joined().len() - STYLE.len();
    assert!(data < 6 * events, "{data} bytes for {events} events");
}

#[test]
fn what_cannot_be_written_is_an_error() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    assert_eq!(html(&copy_of(1), &mut Full).unwrap_err().kind(), io::ErrorKind::StorageFull);
}
