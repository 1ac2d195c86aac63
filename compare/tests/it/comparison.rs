//! Every runtime of this build does every work, and the record tells it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use ferry_compare::record::Record;
use ferry_compare::runtimes::NAMES;

fn compare(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ferry-compare")).args(arguments).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn every_runtime_does_every_work() {
    let place = tempfile::tempdir().unwrap();
    // Without the works that drop the machine's caches, which other tests need.
    let works = ["small-warm", "read-warm", "copy-warm", "log", "logs-16"];
    let line = format!("measure --quick --rounds 2 --json record --works {}", works.join(","));
    let output = compare(&line.split(' ').collect::<Vec<_>>(), place.path());
    assert!(output.status.success(), "{output:?}");
    assert!(!place.path().join("ferry-compare-files").exists(), "the files are removed");
    let record = Record::read(&place.path().join("record")).unwrap();
    let measured: Vec<&str> = record.works.iter().map(|work| work.work.as_str()).collect();
    assert_eq!(measured, works);
    for work in &record.works {
        let found: BTreeMap<&str, (usize, Option<&str>)> = work
            .runtimes
            .iter()
            .map(|runs| (runs.runtime.as_str(), (runs.runs.len(), runs.failure.as_deref())))
            .collect();
        let expected = NAMES.iter().map(|&name| (name, (2, None))).collect();
        assert_eq!(found, expected, "{}", work.work);
    }
    let table = compare(&["table", "record"], place.path());
    assert_eq!(text(&table.stdout), text(&output.stdout), "the record has the tables");
    assert_eq!(text(&table.stdout).matches("| ferry-io | 2 | ").count(), works.len(), "{table:?}");
    let marked = "# Title\n<!-- results: written by `ferry-compare table --into` -->\nold\n<!-- end of results -->\nrest\n";
    std::fs::write(place.path().join("page"), marked).unwrap();
    assert!(compare(&["table", "record", "--into=page"], place.path()).status.success());
    let page = std::fs::read_to_string(place.path().join("page")).unwrap();
    assert_eq!(page, marked.replace("old\n", text(&table.stdout)), "the tables are in the document");
    let again = compare(&["measure", "--quick", "--rounds=3", "--json=record", "--works=log"], place.path());
    assert!(again.status.success(), "{again:?}");
    let record = Record::read(&place.path().join("record")).unwrap();
    let runs: BTreeMap<&str, usize> =
        record.works.iter().map(|work| (work.work.as_str(), work.runtimes[0].runs.len())).collect();
    let expected = works.map(|work| (work, if work == "log" { 3 } else { 2 }));
    assert_eq!(runs, expected.into(), "one work was measured again");
}

#[test]
fn a_runtime_that_fails_is_named_with_its_reason() {
    let place = tempfile::tempdir().unwrap();
    for name in NAMES {
        let output = compare(&["run", "--runtime", name, "small", "missing"], place.path());
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        std::fs::write(place.path().join("list"), "/missing/file\n").unwrap();
        let output = compare(&["run", "--runtime", name, "small", "list"], place.path());
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        assert!(text(&output.stderr).contains("No such file"), "{name}: {output:?}");
        std::fs::remove_file(place.path().join("list")).unwrap();
    }
    let output = compare(&["run", "--runtime", "none", "log", ".", "1", "1"], place.path());
    assert!(text(&output.stderr).contains("'none' is none of ferry-io, threads"), "{output:?}");
}
