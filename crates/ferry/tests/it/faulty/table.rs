//! Compares docs/faults.md with the results of its tests.

use std::path::Path;
use std::process::Command;

/// Separates consecutive lines.
const THEN: &str = ", then ";

/// Follows the lines of a row if other paths are reported too.
const MORE: &str = ", and other paths";

/// One row: fault and result.
#[derive(Debug)]
pub(crate) struct Row {
    /// Printed lines without the program's name; `…` matches anything. Empty if the copy succeeds.
    pub(crate) says: Vec<String>,
    /// True if lines about other paths are printed too.
    pub(crate) says_more: bool,
    pub(crate) code: i32,
    pub(crate) test: String,
}

fn rows() -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/faults.md");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("| ") && line.contains("`faulty::"));
    lines.map(row).collect()
}

fn row(line: &str) -> Row {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [_, _, says, code, _, test] = cells.as_slice() else { panic!("not six cells: {line}") };
    let quoted =
        |cell: &str| cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')).map(str::to_owned);
    let (messages, says_more) = match says.strip_suffix(MORE) {
        Some(messages) => (messages, true),
        None => (*says, false),
    };
    let says = match messages {
        "nothing" => Vec::new(),
        messages => messages.split(THEN).map(|message| quoted(message).expect(line)).collect(),
    };
    Row { says, says_more, code: code.parse().unwrap(), test: quoted(test).unwrap() }
}

/// Returns true if a line matches a message with `…` as wildcards.
fn is_like(line: &str, message: &str) -> bool {
    match message.split_once('…') {
        None => line == message,
        Some((start, end)) => line.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
    }
}

/// Expects a test's exit codes and lines to be those of its rows, in order.
#[track_caller]
pub(crate) fn assert_told(test: &str, nth: usize, (code, said): (Option<i32>, &str)) {
    let rows: Vec<Row> = rows().into_iter().filter(|row| row.test == test).collect();
    let row = rows
        .get(nth)
        .unwrap_or_else(|| panic!("docs/faults.md lacks a row {nth} of {test}: exit code {code:?}, {said}"));
    assert_eq!(code, Some(row.code), "{row:?}: {said}");
    let lines: Vec<&str> = said.lines().map(|line| line.strip_prefix("ferry cp: ").unwrap_or(line)).collect();
    for message in &row.says {
        let told = lines.iter().filter(|line| is_like(line, message)).count();
        assert_eq!(told, 1, "{message} once: {said}");
    }
    let is_all = lines.len() == row.says.len();
    let is_in_order = lines.iter().zip(&row.says).all(|(line, message)| is_like(line, message));
    assert!(row.says_more || is_all && is_in_order, "{row:?} and nothing else: {said}");
}

#[test]
fn each_row_has_its_test_and_each_test_its_row() {
    let listed = Command::new(std::env::current_exe().unwrap()).arg("--list").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let tests = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    let mut tests: Vec<&str> =
        tests.filter(|test| test.starts_with("faulty::") && !test.starts_with("faulty::table::")).collect();
    let rows = rows();
    let mut told: Vec<&str> = rows.iter().map(|row| row.test.as_str()).collect();
    tests.sort_unstable();
    told.sort_unstable();
    told.dedup();
    assert_eq!(told, tests, "docs/faults.md, and the tests");
}
