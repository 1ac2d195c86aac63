use std::collections::BTreeSet;
use std::path::Path;

use super::{csv, csv_line, current_bench, markdown, text};
use crate::cache::State;
use crate::experiments::named;
use crate::machine::{Filesystem, Machine, Memory, Processor};
use crate::record::read;
use crate::record::tests::record;
use crate::record::warning::{Warning, WarningKind};
use crate::record::{Cell, Record, Run, Scale};

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

mod caches;

const NO_COLD: &str = "cold caches need the right to write /proc/sys/vm/drop_caches: run it as root, or leave out the cold state";

/// A record of `lab limits`: one tree whose figures agree, one whose ferry scatters, and one that could not be measured.
fn limits() -> Record {
    let known = record();
    let measures = named("limits").unwrap().measures();
    let cell = |tree: &str, cache: &str, tool: &str, seconds: [f64; 5], until_durable: f64| {
        let parameters = [("tree", tree.into()), ("cache", cache.into()), ("tool", tool.into())];
        let mut cell = Cell::new(&parameters, State::Warm);
        if tool.starts_with("limit-") {
            cell = cell.with("limit", tool.into());
        }
        if tool != "cp" {
            cell.base = Some(format!("{tree}/{cache}/cp"));
        }
        for (round, seconds) in (0..).zip(seconds) {
            let figures = [
                ("returned_s".to_owned(), seconds),
                ("durable_s".to_owned(), seconds + until_durable),
                ("throughput_b_s".to_owned(), 1e8),
            ];
            cell.runs.push(Run { round, figures: figures.into(), ..known.cells[0].runs[0].clone() });
        }
        cell
    };
    let absent = |tool: &str| Cell {
        runs: Vec::new(),
        missing: Some(NO_COLD.to_owned()),
        ..cell("small", "cold", tool, [1.0; 5], 0.0)
    };
    let lacks = |cell: &Cell| {
        Warning::note(WarningKind::Missing, NO_COLD, "the others are complete").about(&cell.name)
    };
    let cold = ["cp", "ferry", "limit-copy-range-3"].map(absent);
    let wide = "the confidence interval of its median is ±75 %";
    let noisy = Warning::note(WarningKind::Noisy, wide, "take more runs on a quieter machine");
    let mut warnings = known.warnings.clone();
    warnings.extend(cold.iter().map(lacks));
    warnings.push(noisy.about("huge:4/warm/ferry").distrusted());
    let warm = [
        cell("small", "warm", "cp", [3.0; 5], 1.0),
        cell("small", "warm", "ferry", [1.5; 5], 0.5),
        cell("small", "warm", "limit-mapped-2", [1.35; 5], 0.45),
        cell("small", "warm", "limit-copy-range-3", [1.2; 5], 0.4),
    ];
    let huge = [
        cell("huge:4", "warm", "cp", [2.0; 5], 0.5),
        cell("huge:4", "warm", "ferry", [1.0, 1.0, 2.0, 4.0, 4.0], 0.5),
        cell("huge:4", "warm", "limit-pipe-2", [1.8; 5], 0.5),
    ];
    let cells = warm.into_iter().chain(cold).chain(huge).collect();
    let processor = Processor { model: "Xeon".to_owned(), count: 2, usable: 2, ..Processor::default() };
    let place = Filesystem { filesystem: "ext4".to_owned(), ..Filesystem::default() };
    let memory = Memory { total_bytes: 25_200_000_000, ..Memory::default() };
    let machine = Machine { kernel: "6.18.0".to_owned(), processor, place, memory, ..Machine::default() };
    Record { experiment: "limits".to_owned(), runs: 5, machine, measures, cells, warnings, ..known }
}

fn printed(record: &Record, columns: usize) -> String {
    text(named(&record.experiment).unwrap(), record, columns)
}

#[test]
fn the_answer_comes_first_and_everything_fits_the_terminal() {
    let record = limits();
    assert_eq!(printed(&record, 40), include_str!("tests/limits-40.txt"));
    assert_eq!(printed(&record, 80), include_str!("tests/limits-80.txt"));
    assert_eq!(printed(&record, 120), include_str!("tests/limits-120.txt"));
    for columns in [40, 80, 120] {
        let text = printed(&record, columns);
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
        assert!(!text.contains(|char: char| char.is_control() && char != '\n'), "{text:?}");
    }
}

#[test]
fn results_of_experiments_fit_the_terminal() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments/records");
    let (mut seen, mut wide) = (BTreeSet::new(), Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let record = read::read(&path).unwrap();
        for columns in [40, 80, 120] {
            let text = printed(&record, columns);
            assert!(!text.contains(|char: char| char.is_control() && char != '\n'), "{text:?}");
            let lines = text.lines().filter(|line| line.chars().count() > columns);
            wide.extend(lines.map(|line| format!("{} in {columns} columns: {line}", path.display())));
        }
        seen.insert(record.experiment);
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
    for name in ["copy", "disk", "handovers", "ring", "strategies", "syscalls", "when", "write"] {
        assert!(seen.contains(name), "{name} is not in {seen:?}");
    }
}

#[test]
fn quick_figures_decide_nothing_and_that_is_said_once() {
    let mut record = limits();
    (record.runs, record.scale) = (2, Scale::Quick);
    record.cells.iter_mut().for_each(|cell| cell.runs.truncate(2));
    let quick = Warning::note(WarningKind::FewRuns, "--quick takes too few runs", "run it without --quick");
    record.warnings.push(quick.distrusted());
    for text in [printed(&record, 80), markdown(named("limits").unwrap(), &record)] {
        let mut lines = text.lines().skip_while(|line| line.starts_with('#') || line.is_empty());
        let first = "ferry is 0.80x as fast as the fastest limit program on small files, warm (2 runs)";
        // The terminal's line is broken after 80 columns.
        assert!(first.starts_with(lines.next().unwrap()), "{text}");
        assert_eq!(text.matches("decides nothing").count(), 1, "{text}");
        assert!(
            text.contains("--quick decides nothing; run it without --quick for reliable figures\n"),
            "{text}"
        );
        assert!(!text.contains("takes too few runs"), "{text}");
        // No interval: neither of a median nor of a ratio.
        assert!(!text.contains("95 %") && !text.contains("1.50 s ("), "{text}");
    }
    assert!(
        printed(&record, 80)
            .contains("\nNot decided: 2 claims; not measured: 1 claim. --markdown lists them.\n")
    );
}

#[test]
fn few_runs_have_no_interval() {
    let mut record = limits();
    record.cells.iter_mut().for_each(|cell| cell.runs.truncate(4));
    let text = printed(&record, 80).replace('\n', " ");
    let first =
        "ferry is 0.80x as fast as the fastest limit program on small files, warm (4 runs: decides nothing) ";
    assert!(text.starts_with(first), "{text}");
    assert!(!text.contains("95 %") && !text.contains("In 1 other copy"), "{text}");
}

#[test]
fn markdown_has_all_claims_and_the_warnings() {
    let text = markdown(named("limits").unwrap(), &limits());
    let first = "## ferry lab limits\n\nferry is slower than the fastest limit program on small files, warm: 0.80x as \
                 fast (95 %: 0.80-0.80)\n\n";
    assert!(text.starts_with(first), "{text}");
    for part in [
        "| ferry | 1.50 s (1.50-1.50) | 0.50 (0.50-0.50) | 2.00 s | 0.80 |\n",
        "\n\nNot measured: cold (cold caches need the right",
        "| ferry cp reaches 0.97 of the limit (small, warm) | does not hold | 0.80 (0.80-0.80) |\n",
        "| ferry cp reaches 0.97 of the limit (small, cold) | not measured |  |\n",
        "### Warnings\n\n- discards; remount it\n- huge:4/warm/ferry: the confidence interval",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("--markdown"), "{text}");
}

#[test]
fn warnings_that_many_cells_share_are_said_once() {
    let mut record = limits();
    let outlier = || Warning::note(WarningKind::Outliers, "1 run far from the others", "see the plot");
    record.warnings =
        ["one", "two", "three", "four", "five", "six"].map(|cell| outlier().about(cell)).to_vec();
    let text = printed(&record, 120);
    assert!(
        text.ends_with(
            "\nWarnings\n- one, two, three, four and 2 more: 1 run far from the others; see the plot\n"
        ),
        "{text}"
    );
}
