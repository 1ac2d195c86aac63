use std::time::Duration;

use ferry_copy::Summary;
use ferry_io::Stats;

use super::{closing, json, text};
use crate::progress::{All, Counts};

fn summary() -> Summary {
    let mut operations = Stats::default().operations;
    operations[0] = [3, 4, 0, 0];
    operations[2] = [0, 1, 2, 0];
    let io = Stats {
        operations,
        ring_enters: 4,
        submissions: 2,
        submitted: 5,
        system_calls: 9,
        workers: 2,
        backend: "uring",
        backend_reason: "there and allowed".to_owned(),
        ..Stats::default()
    };
    Summary {
        files: 60_000,
        directories: 100,
        symlinks: 20,
        hard_links: 3,
        bytes_by_method: [0, 850_000_000, 0, 0, 1_000_000, 0],
        files_by_method: [0, 10, 0, 0, 59_980, 10],
        wall: Duration::from_millis(1200),
        io,
        ..Summary::default()
    }
}

#[test]
fn the_closing_line_says_what_was_done() {
    let reached = Counts { entries: 60_123, bytes: 851_000_000, ..Counts::default() };
    let expected = "copied 60,123 entries, 851 MB in 1.2 s (709 MB/s)";
    assert_eq!(closing(&summary(), &reached, None, 80), expected);
    let failed = Summary { failed: 2, unfinished: 1, ..summary() };
    assert_eq!(closing(&failed, &reached, None, 80), format!("{expected}, 2 failed, 1 left incomplete"));
}

#[test]
fn after_an_interruption_the_closing_line_has_the_figures_of_progress() {
    let interrupted = Summary { interrupted: true, failed: 2, ..summary() };
    let all = Some(All { entries: 90_000, bytes: Some(1_700_000_000), is_estimate: false });
    let reached = Counts { entries: 60_125, bytes: 872_000_000, all, ..Counts::default() };
    for (columns, expected) in [
        (
            40,
            "interrupted after 60,125/90,000 entries,\n  \
             872 MB/1.7 GB in 1.2 s (727 MB/s), 2\n  \
             failed; 21 MB of incomplete files\n  \
             removed, complete ones kept; with -u\n  \
             the same command continues",
        ),
        (
            80,
            "interrupted after 60,125/90,000 entries, 872 MB/1.7 GB in 1.2 s (727 MB/s), 2\n  \
             failed; 21 MB of incomplete files removed, complete ones kept; with -u the\n  \
             same command continues",
        ),
        (
            200,
            "interrupted after 60,125/90,000 entries, 872 MB/1.7 GB in 1.2 s (727 MB/s), 2 failed; \
             21 MB of incomplete files removed, complete ones kept; with -u the same command continues",
        ),
    ] {
        assert_eq!(closing(&interrupted, &reached, Some("-u"), columns), expected, "{columns} columns");
    }
    let unknown = Counts { entries: 1, bytes: 851_000_000, ..Counts::default() };
    let interrupted = Summary { interrupted: true, ..summary() };
    let expected = "interrupted after 1 entry, 851 MB in 1.2 s (709 MB/s); complete files kept";
    assert_eq!(closing(&interrupted, &unknown, None, 80), expected);
    let continues = format!("{expected}; the same command continues");
    assert_eq!(closing(&interrupted, &unknown, Some(""), 200), continues);
    let full = Summary { out_of_space: true, failed: 1, unfinished: 1, ..summary() };
    assert_eq!(
        closing(&full, &reached, Some("-uT"), 400),
        "stopped early, because the target's space or quota is used up, after 60,125/90,000 entries, 872 MB/1.7 GB in \
         1.2 s (727 MB/s), 1 failed, 1 left incomplete; complete files kept; once there is space, with -uT the same \
         command continues"
    );
    let left = Summary { ended_operands: 1, failed: 1, ..summary() };
    assert_eq!(
        closing(&left, &unknown, Some("-u"), 400),
        "not every source was copied to its end, because a device fails or is gone; the copy ended after 1 entry, 851 MB in \
         1.2 s (709 MB/s), 1 failed; complete files kept; once the device is back, with -u the same command continues"
    );
}

#[test]
fn the_text_has_a_line_for_each_figure() {
    let text = text(&summary(), 80);
    let expected = "\
entries            60,123 (60,000 files, 100 directories, 20 symbolic links, 3
                   hard links), 0 skipped, 0 failed
bytes              851,000,000 (851 MB)
wall time          1.2 s, 709 MB/s
operations         10: inline 3, ring 5, pool 2
  open             inline 3, ring 4
  read             ring 1, pool 2
submissions        2, 2.5 operations each; 4 ring enters
system calls       9
to kernel workers  not counted
not cached         0
pool requests      0
by copy_file_range 10 files, 850 MB
by whole           59,980 files, 1.0 MB
by nothing         10 files, 0 B
backend            uring: there and allowed
workers            2, pool threads 0
peak memory        ";
    assert_eq!(text.strip_prefix(expected).map(|memory| memory.contains("MB")), Some(true), "{text}");
}

#[test]
fn the_text_fits_the_terminal() {
    let expected = "\
entries            60,123 (60,000 files,
                   100 directories, 20
                   symbolic links, 3
                   hard links), 0
                   skipped, 0 failed
bytes              851,000,000 (851 MB)
wall time          1.2 s, 709 MB/s
";
    let narrow = text(&summary(), 40);
    assert!(narrow.starts_with(expected), "{narrow}");
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    let wide = text(&summary(), 200);
    let first = "entries            60,123 (60,000 files, 100 directories, 20 symbolic links, 3 hard links), \
                 0 skipped, 0 failed\nbytes";
    assert!(wide.starts_with(first), "{wide}");
}

#[test]
fn the_object_has_what_the_text_has() {
    let line = json(&summary());
    assert!(!line.contains('\n'));
    let object: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(object["entries"], 60_123);
    assert_eq!(object["bytes"], 851_000_000);
    assert_eq!(object["wall_seconds"], 1.2);
    assert_eq!(object["operations_by_route"]["ring"], 5);
    assert_eq!(object["operations_by_kind"]["open"]["inline"], 3);
    assert_eq!(object["submissions"], 2);
    assert_eq!(object["operations_per_submission"], 2.5);
    assert_eq!(object["kernel_worker_handovers"], serde_json::Value::Null);
    assert_eq!(object["methods"]["copy_file_range"]["bytes"], 850_000_000);
    assert!(object["peak_memory_bytes"].as_u64().unwrap() > 100_000);
}
