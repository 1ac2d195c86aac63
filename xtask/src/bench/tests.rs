use std::fs;
use std::time::{Duration, SystemTime};

use super::cells::CELLS;
use super::document::with_speeds;
use super::{CHART, check_age, is_finished, of_records, plan, records};
use crate::scratch::Scratch;

const README: &str = include_str!("../../../README.md");

const PAGE: &str = "# ferry\n\n<!-- Speeds: `cargo xtask bench` replaces this part. -->\nold\n\n| table |\n<!-- End of the speeds. -->\nrest\n";

const FINISHED: &str = "{\n  \"complete\": true,\n}\n";

#[test]
fn the_text_between_the_markers_is_replaced_and_nothing_else() {
    let once = with_speeds(PAGE, "\n| new |\n").unwrap();
    assert_eq!(once, PAGE.replace("old\n\n| table |", "| new |"));
    assert_eq!(with_speeds(&once, "| new |").unwrap(), once);
}

#[test]
fn a_document_without_both_markers_is_refused() {
    let [begin, end] =
        ["<!-- Speeds: `cargo xtask bench` replaces this part. -->\n", "<!-- End of the speeds. -->\n"];
    for wrong in [
        PAGE.replace(begin, ""),
        PAGE.replace(end, ""),
        PAGE.replace(begin, &begin.repeat(2).replace("\n<", "\n\n<")),
        format!("# ferry\n{end}old\n{begin}rest\n"),
        String::new(),
    ] {
        assert_eq!(with_speeds(&wrong, "new"), None, "{wrong}");
    }
}

#[test]
fn the_page_of_the_table_has_the_markers_and_readme_the_chart() {
    let page = include_str!("../../../docs/performance.md");
    assert!(with_speeds(page, "new").is_some());
    assert!(
        README.contains(&format!("]({CHART})\n")) && README.contains("](docs/performance.md#latest-series)")
    );
}

/// Lines of a usual screen.
const SCREEN: usize = 50;

#[test]
fn readme_fits_a_screen() {
    assert!(README.lines().count() <= SCREEN, "{} lines", README.lines().count());
}

#[test]
fn readme_begins_with_a_copy_then_the_tests() {
    let commands: Vec<&str> = README.lines().filter(|line| line.starts_with("cargo ")).collect();
    let ferry = "cargo run --release --package ferry --";
    assert!(commands[0].starts_with(&format!("{ferry} cp -a ")), "{commands:?}");
    assert_eq!(commands[1], "cargo xtask test");
    assert!(commands[2].starts_with(&format!("{ferry} sync ")), "{commands:?}");
}

#[test]
fn a_cell_without_a_finished_record_is_named_and_nothing_is_written() {
    let folder = Scratch::open().unwrap();
    for cell in &CELLS[1..] {
        fs::write(cell.record(folder.path()), FINISHED).unwrap();
    }
    fs::write(CELLS[2].record(folder.path()), FINISHED.replace("true", "false")).unwrap();
    let shown = folder.path().display();
    let cells = "small-ext4-warm, small-btrfs-warm";
    let line =
        format!("no finished record of {cells} in '{shown}': run `cargo xtask bench` without --records");
    assert_eq!(records(CELLS, folder.path()).unwrap_err().to_string(), line);
    // The root does not exist, so that a build or a written file would be another error.
    let failure = of_records("/no-such-root".as_ref(), folder.path()).unwrap_err();
    assert_eq!(failure.to_string(), line);
    for index in [0, 2] {
        fs::write(CELLS[index].record(folder.path()), FINISHED).unwrap();
    }
    let names: Vec<String> = CELLS.iter().map(|cell| format!("{}.json", cell.name)).collect();
    let found = records(CELLS, folder.path()).unwrap();
    let found: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(found, names);
}

#[test]
fn a_finished_record_is_kept_and_another_is_resumed() {
    let folder = Scratch::open().unwrap();
    let cell = &CELLS[0];
    let record = cell.record(folder.path());
    let words = || -> Vec<String> {
        let command = cell.command("/ferry".as_ref(), &record, folder.path(), "/room".as_ref());
        command.get_args().map(|word| word.to_str().unwrap().to_owned()).collect()
    };
    assert!(!is_finished(&record).unwrap());
    let new = words().join(" ");
    assert!(new.starts_with("--mount --propagation private sh -euc"), "{new}");
    let options = "--trees small --states warm --copy-as shared --runs 15 --programs none --dd-size 0";
    let end =
        format!("/room ext4 /ferry lab copy --work-dir /room/work --json {} {options}", record.display());
    assert!(new.contains(&end) && new.contains("--vs cpz {source} {target} --vs fcp"), "{new}");
    // Text of a cell must not count as the record's.
    fs::write(&record, "{\n  \"complete\": false,\n  \"cells\": [\n    \"complete\": true,\n  ]\n}\n")
        .unwrap();
    assert!(!is_finished(&record).unwrap());
    let resumed = words().join(" ");
    assert!(resumed.ends_with(&format!("--work-dir /room/work --resume {}", record.display())), "{resumed}");
    fs::write(&record, FINISHED).unwrap();
    assert!(is_finished(&record).unwrap());
    let shown = plan(&CELLS[..2], folder.path()).unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "small-ext4-warm          finished before");
    assert_eq!(lines[1], "small-xfs-warm           about 2 min");
    assert!(lines[2].starts_with("about 2 min in all"), "{shown}");
}

/// The lines of a record that end the measurement of a cell: a copier failed, and nothing else is missing.
fn with_failed(cell: &str, more: &str) -> String {
    format!(
        "{{\n  \"complete\": false,\n  \"warnings\": [\n    {{\n      \"kind\": \"failed\",\n      \"cell\": \
         \"{cell}\",\n    }},\n{more}  ]\n}}\n"
    )
}

#[test]
fn a_record_of_which_another_copier_failed_is_finished() {
    let folder = Scratch::open().unwrap();
    let record = CELLS[0].record(folder.path());
    let interrupted = "    {\n      \"kind\": \"incomplete\",\n    }\n";
    for (text, expected) in [
        (with_failed("small/warm/rcp", ""), true),
        (with_failed("small/warm/rcp", interrupted), false),
        // The table has no row without these.
        (with_failed("small/warm/cp", ""), false),
        (with_failed("small/warm/ferry", ""), false),
        // As kept while runs are taken: the failed cell has no warning yet.
        (with_failed("small/warm/rcp", "").replace("\"kind\"", "\"failed\""), false),
    ] {
        fs::write(&record, &text).unwrap();
        assert_eq!(is_finished(&record).unwrap(), expected, "{text}");
    }
}

#[test]
fn names_of_cells_differ() {
    let mut names: Vec<&str> = CELLS.iter().map(|cell| cell.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), CELLS.len());
}

#[test]
fn records_of_an_older_build_are_refused_before_anything_is_measured() {
    let folder = Scratch::open().unwrap();
    let binary = folder.path().join("ferry");
    let written = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let write = |path: &std::path::Path, seconds: u64| {
        fs::write(path, FINISHED).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(written + Duration::from_secs(seconds)).unwrap();
    };
    write(&binary, 10);
    for (cell, seconds) in CELLS.iter().zip([9, 10, 11]) {
        write(&cell.record(folder.path()), seconds);
    }
    let failure = check_age(CELLS, folder.path(), &binary).unwrap_err().to_string();
    let shown = folder.path().display();
    let line =
        format!("records of an older build in '{shown}', remove them to measure again: small-ext4-warm");
    assert_eq!(failure, line);
    assert!(check_age(&CELLS[1..], folder.path(), &binary).is_ok());
}
