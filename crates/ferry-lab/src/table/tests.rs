use super::{Table, measured, not_measured, of_cells, of_record, wrapped};
use crate::record::tests::record;
use crate::record::{Better, Cell, Measure, Record};
use crate::statistics::Interval;

#[test]
fn tables_are_aligned_text_and_markdown() {
    let mut table = Table::new("Speeds", &["tool", "time"]);
    table.row(vec!["cp".into(), "1.00 s".into()]);
    table.row(vec!["a|b".into(), "10.0 µs".into()]);
    table.notes.push("Not measured: rcp.".to_owned());
    assert_eq!(table.text(), "Speeds\ntool     time\ncp     1.00 s\na|b   10.0 µs\nNot measured: rcp.\n");
    let markdown = "### Speeds\n\n| tool | time |\n| --- | ---: |\n| cp | 1.00 s |\n| a\\|b | 10.0 µs |\n\nNot \
                    measured: rcp.\n";
    assert_eq!(table.markdown(), markdown);
    table.rows.clear();
    assert_eq!(table.text_in(80), "Speeds\nNot measured: rcp.\n");
    assert_eq!(table.markdown(), "### Speeds\n\nNot measured: rcp.\n");
}

fn wide() -> Table {
    let mut table =
        Table::new("Counts", &["mode and block", "calls of the ring", "why", "time until it returned"]);
    table.row(["many-sqpoll/1M", "12,345", "it sleeps", "310 ms"].map(str::to_owned).to_vec());
    table.row(["one/4K", "1", "", "1.20 s"].map(str::to_owned).to_vec());
    table
}

#[test]
fn headings_are_wrapped_before_cells() {
    let expected = "\
Counts
                                              time
                 calls of the             until it
mode and block           ring  why        returned
many-sqpoll/1M         12,345  it sleeps    310 ms
one/4K                      1               1.20 s
";
    assert_eq!(wide().text_in(50), expected);
    for width in [80, 60, 40, 30, 24] {
        let text = wide().text_in(width);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
        // No figure is broken.
        for figure in ["12,345", "310 ms", "1.20 s"] {
            assert!(text.contains(figure), "{width}: {text}");
        }
    }
}

#[test]
fn columns_without_room_follow_below_the_first_ones() {
    let mut table = Table::new("Speeds", &["tool", "returned (95 %)", "durable (95 %)"]);
    table.row(["cp", "3.00 s (2.90-3.10)", "4.00 s (3.90-4.10)"].map(str::to_owned).to_vec());
    let expected = "\
Speeds
tool     returned (95 %)
cp    3.00 s (2.90-3.10)

tool      durable (95 %)
cp    4.00 s (3.90-4.10)
";
    assert_eq!(table.text_in(40), expected);
    assert_eq!(table.text_in(44).lines().count(), 3);
}

#[test]
fn a_figure_without_room_beside_the_names_stands_below_its_name() {
    let mut table = Table::new("Writes", &["cell", "returned (95 %)", "runs"]);
    table.row(["direct-pipelined/1M/16", "2.39 s (294 ms-2.56 s)", "15"].map(str::to_owned).to_vec());
    let expected = "\
Writes
direct-pipelined/1M/16
  returned (95 %):
    2.39 s (294 ms-2.56 s)
  runs: 15
";
    assert_eq!(table.text_in(40), expected);
    assert_eq!(table.text_in(60).lines().count(), 3);
}

#[test]
fn sentences_in_a_narrow_table_have_their_figures_below_them() {
    let mut table = Table::new("Claims", &["claim", "verdict", "here"]);
    let claim = "Several blocks of a file in flight are faster than one at a time";
    table.row([claim, "holds, smaller", "0.75 (0.70-0.80)"].map(str::to_owned).to_vec());
    let expected = "\
Claims
Several blocks of a file in flight are
faster than one at a time
  verdict: holds, smaller
  here: 0.75 (0.70-0.80)
";
    assert_eq!(table.text_in(40), expected);
}

#[test]
fn long_words_are_broken_after_slashes_only() {
    assert_eq!(wrapped("one two/three four", 9), ["one", "two/three", "four"]);
    assert_eq!(wrapped("random/4K/64/read", 13), ["random/4K/64/", "read"]);
    assert_eq!(wrapped("unbreakable", 4), ["unbreakable"]);
    assert_eq!(wrapped("", 4), [""]);
    assert_eq!(wrapped("  12 ms   3 %", 13), ["  12 ms   3 %"]);
}

#[test]
fn a_record_has_a_row_for_each_cell_with_runs_and_one_footnote_for_the_others() {
    let table = of_record(&record());
    assert_eq!(table.columns, ["cell", "returned", "times small/cp"]);
    assert_eq!(table.rows, [["small/cp", "200 ms", ""], ["small/ferry", "100 ms", "0.50"]]);
    assert_eq!(table.notes, [""; 0]);
    let note = "Not measured: small/rsync ('rsync' is not found on the PATH).";
    assert_eq!(not_measured(&record()).as_deref(), Some(note));
    assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
}

/// Returns the footnote of a record whose cells have runs, unless their names are followed by a reason.
fn footnote(cells: &[(&str, Option<&str>)]) -> Option<String> {
    let known = record();
    let cell = |(name, missing): &(&str, Option<&str>)| Cell {
        name: (*name).to_owned(),
        missing: missing.map(str::to_owned),
        runs: if missing.is_some() { Vec::new() } else { known.cells[0].runs.clone() },
        ..known.cells[0].clone()
    };
    not_measured(&Record { cells: cells.iter().map(cell).collect(), ..known.clone() })
}

#[test]
fn a_part_that_only_absent_cells_have_stands_for_all_of_them() {
    let (cold, rcp) = (Some("in memory"), Some("no 'rcp'"));
    let copies = [
        ("small/cold/cp", cold),
        ("small/cold/rcp", cold),
        ("large/cold/cp", cold),
        ("large/cold/rcp", cold),
        ("small/warm/cp", None),
        ("small/warm/rcp", rcp),
        ("large/warm/cp", None),
        ("large/warm/rcp", rcp),
    ];
    assert_eq!(footnote(&copies).as_deref(), Some("Not measured: cold (in memory); rcp (no 'rcp')."));
    // Trees that make it clear are left out.
    let one = footnote(&copies[4..6]);
    assert_eq!(one.as_deref(), Some("Not measured: small/warm/rcp (no 'rcp')."));
    assert_eq!(footnote(&[("one/4K", None)]), None);
}

#[test]
fn a_part_that_a_measured_cell_has_stands_for_none() {
    let why = Some("it failed");
    let found = footnote(&[("one/64/ring", why), ("two/64/ring", why), ("two/8/ring", None), ("one/8", why)]);
    assert_eq!(found.as_deref(), Some("Not measured: one, two/64/ring (it failed)."));
    // Numbers alone would not say what they are.
    let found =
        footnote(&[("one/64/ring", why), ("two/64/ring", why), ("two/8/ring", None), ("one/8", None)]);
    assert_eq!(found.as_deref(), Some("Not measured: one/64/ring, two/64/ring (it failed)."));
}

#[test]
fn names_lack_what_the_cells_share() {
    let mut record = record();
    for (cell, name) in
        record.cells.iter_mut().zip(["small/warm/cp", "small/warm/ferry/4K", "small/warm/rsync"])
    {
        name.clone_into(&mut cell.name);
    }
    record.cells[1].base = Some("small/warm/cp".to_owned());
    let table = of_cells(&record, "small, warm", &record.cells);
    assert_eq!(table.columns[2], "times cp");
    assert_eq!([&table.rows[0][0], &table.rows[1][0]], ["cp", "ferry/4K"]);
    // A single cell keeps its last parameter.
    assert_eq!(of_cells(&record, "cp", &record.cells[..1]).rows[0][0], "cp");
}

#[test]
fn intervals_and_runs_are_shown_if_they_say_something() {
    let mut record = record();
    record.measures.push(Measure::new("flush_s", "flushing", "s", Better::Lower));
    let runs = record.cells[0].runs.clone();
    record.cells[0].runs.extend(runs);
    let table = of_cells(&record, "All", &record.cells);
    // One of the cells has enough runs, and not both have as many; nothing was flushed.
    assert_eq!(table.columns, ["cell", "runs", "returned (95 %)", "times cp"]);
    assert!(table.rows[0][2].starts_with("200 ms ("), "{table:?}");
    assert_eq!(table.rows[1][2], "100 ms");
}

#[test]
fn intervals_name_their_unit_once_if_they_can() {
    let found = |low, high, count| Interval { middle: f64::midpoint(low, high), low, high, count };
    assert_eq!(measured(&found(0.1, 0.2, 5), "s"), "150 ms (100-200)");
    assert_eq!(measured(&found(0.8, 1.0, 5), "s"), "900 ms (800 ms-1.00 s)");
    assert_eq!(measured(&found(1.0, 3.0, 5), ""), "2 (1-3)");
    assert_eq!(measured(&found(1.1e9, 1.3e9, 5), "B/s"), "1.20 GB/s (1.10-1.30)");
    assert_eq!(measured(&found(0.1, 0.2, 4), "s"), "150 ms");
}
