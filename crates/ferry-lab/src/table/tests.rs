use super::{Table, between, of_record};
use crate::record::tests::record;
use crate::statistics::Interval;

#[test]
fn tables_are_aligned_text_and_markdown() {
    let mut table = Table::new("Speeds", &["tool", "time"]);
    table.row(vec!["cp".into(), "1.00 s".into()]);
    table.row(vec!["a|b".into(), "10.0 µs".into()]);
    assert_eq!(table.text(), "Speeds\ntool     time\ncp     1.00 s\na|b   10.0 µs\n");
    let markdown = "### Speeds\n\n| tool | time |\n| --- | ---: |\n| cp | 1.00 s |\n| a\\|b | 10.0 µs |\n";
    assert_eq!(table.markdown(), markdown);
}

#[test]
fn a_record_has_a_row_a_cell() {
    let table = of_record(&record());
    assert_eq!(table.rows.len(), 3);
    assert_eq!(table.rows[0][..4], ["small/cp", "3", "200 ms", "100 to 300 ms"]);
    assert_eq!(table.rows[1][6], "0.50 (0.50 to 0.50)");
    assert_eq!(table.rows[2][2], "'rsync' is not found on the PATH");
    assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
}

#[test]
fn intervals_name_their_unit_once_if_they_can() {
    let interval = |low, high| Interval { middle: low, low, high };
    assert_eq!(between(&interval(0.1, 0.2), "s"), "100 to 200 ms");
    assert_eq!(between(&interval(0.1, 1.2), "s"), "100 ms to 1.20 s");
    assert_eq!(between(&interval(1.0, 3.0), ""), "1 to 3");
}
