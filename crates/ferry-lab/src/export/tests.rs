use super::{csv, csv_line, current_bench, markdown};
use crate::experiments::named;
use crate::record::tests::record;

#[test]
fn csv_has_a_line_a_run() {
    let text = csv(&record());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "experiment,cell,tool,tree,cache,cache_proved,round,started,returned_s");
    assert_eq!(lines[1], "copy,small/cp,cp,small,warm,yes,0,2026-08-01T12:00:00.000Z,0.1");
    assert_eq!(lines.len(), 7);
    assert_eq!(csv_line(&["a,b".into(), "say \"x\"".into(), "c".into()]), "\"a,b\",\"say \"\"x\"\"\",c\n");
}

#[test]
fn current_bench_has_a_result_a_cell() {
    let value = current_bench(&record());
    let results = value["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    assert_eq!(results[0]["name"], "small/cp");
    assert_eq!(results[0]["metrics"][0]["value"], 0.2);
    assert_eq!(results[0]["metrics"][0]["units"], "s");
    assert!(value["config"]["uname"].as_str().unwrap().starts_with("Linux"));
}

#[test]
fn markdown_has_tables_verdicts_and_warnings() {
    let text = markdown(named("copy").unwrap(), &record());
    for part in
        ["## ferry lab copy\n", "| small/cp | 3 | 200 ms |", "### Warnings\n\n- discards; remount it\n"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
}
