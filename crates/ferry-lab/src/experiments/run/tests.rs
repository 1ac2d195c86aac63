use super::Run;
use super::comparison::Comparison;
use crate::cache::State;
use crate::experiment::Experiment;
use crate::record::tests::record;
use crate::record::{Cell, Figures, Record, Run as Taken, Scale, Value};
use crate::settings::Settings;

fn settings(given: &[(&str, &str)]) -> Settings {
    let given: Vec<_> = given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Settings::new(Run.spec().parameters, &given, Scale::Default).unwrap()
}

/// Names of the cells of two commands.
fn names(given: &[(&str, &str)]) -> Vec<String> {
    let cells = Comparison::of(&settings(given)).unwrap().cells();
    cells.into_iter().map(|cell| cell.name).collect()
}

#[test]
fn commands_are_named_after_their_programs_if_these_differ() {
    let pair = |first, second| [("first", first), ("second", second)];
    assert_eq!(names(&pair("cp -r a b", "/usr/bin/rsync -a a b")), ["cp", "rsync"]);
    assert_eq!(names(&pair("cp -r a b", "/bin/cp -a a b")), ["A", "B"]);
    assert_eq!(names(&[&pair("ls", "sort f")[..], &[("shell", "yes")]].concat()), ["A", "B"]);
    assert_eq!(names(&[&pair("ls", "ls")[..], &[("names", "one, other")]].concat()), ["one", "other"]);
}

#[test]
fn commands_that_make_no_sense_are_refused() {
    let refused = |given: &[(&str, &str)]| Run.needs(&settings(given)).unwrap_err().to_string();
    let both = [("first", "ls"), ("second", "ls")];
    assert_eq!(refused(&both[..1]), "two commands are needed: '-- COMMAND -- COMMAND'");
    for names in ["one", "one,one", "one,", "a,b,c"] {
        let said = refused(&[&both[..], &[("names", names)]].concat());
        let allowed = "for '--names'; it must be two different names: A,B";
        assert_eq!(said, format!("invalid value '{names}' {allowed}"));
    }
    let said = refused(&[&both[..], &[("prepare", "rm 'x")]].concat());
    assert_eq!(said, "a quote is not closed in 'rm \\'x'");
    assert_eq!(refused(&[&both[..], &[("cleanup", " ")]].concat()), "there is no command in ' '");
    let said = refused(&[&both[..], &[("files", "/no/such/file")]].concat());
    assert_eq!(said, "cannot open '/no/such/file': No such file or directory");
}

/// A record of two commands with these times in seconds.
fn timed(first: &[f64], second: &[f64]) -> Record {
    let cell = |name: &str, times: &[f64]| {
        let cell = Cell::new(&[("command", name.into())], State::Warm);
        let run = |(round, time): (u64, &f64)| Taken {
            round,
            started: "2026-08-01T12:00:00.000Z".to_owned(),
            figures: Figures::from([
                ("returned_s".to_owned(), *time),
                ("user_s".to_owned(), 0.001),
                ("exit_status".to_owned(), if round == 0 { 1.0 } else { 0.0 }),
            ]),
            proof: None,
        };
        Cell { runs: (0..).zip(times).map(run).collect(), ..cell.with("line", "sleep '0.1\u{1b}'".into()) }
    };
    let a = cell("A", first);
    let b = cell("B", second).against(&a);
    let runs = u64::try_from(first.len()).unwrap();
    let settled = [("memory_floor_b".to_owned(), Value::Number(9_000_000))].into();
    let parameters = [("prepare".to_owned(), Value::from("sync"))].into();
    let measures = Run.measures();
    Record {
        experiment: "run".to_owned(),
        cells: vec![a, b],
        runs,
        settled,
        parameters,
        measures,
        ..record()
    }
}

fn answer(first: &[f64], second: &[f64]) -> String {
    Run.headline(&timed(first, second)).lines().join("\n")
}

#[test]
fn the_answer_names_the_faster_command_and_the_interval() {
    assert_eq!(answer(&[0.4; 6], &[0.2; 6]), "B is 2.00x as fast as A (95 %: 2.00-2.00)");
    assert_eq!(answer(&[0.2; 6], &[0.5; 6]), "A is 2.50x as fast as B (95 %: 2.50-2.50)");
    let (early, late) = ([0.1, 0.3, 0.1, 0.3, 0.1, 0.3], [0.3, 0.1, 0.3, 0.1, 0.3, 0.1]);
    let said = answer(&early, &late);
    assert!(said.starts_with("A and B can't be told apart: 1.67 (0.33-3.00)"), "{said}");
    // Two digits would say that they are the same.
    assert_eq!(answer(&[0.2004; 6], &[0.2; 6]), "B is 1.002x as fast as A (95 %: 1.002-1.002)");
}

#[test]
fn fewer_than_five_rounds_have_no_interval() {
    assert_eq!(answer(&[0.4; 4], &[0.2; 4]), "B is 2.00x as fast as A (4 runs: decides nothing)");
    assert_eq!(answer(&[0.2; 1], &[0.4; 1]), "A is 2.00x as fast as B (1 run: decides nothing)");
    assert_eq!(answer(&[0.2; 6], &[]), "No answer: the commands lack figures of the same runs");
}

#[test]
fn the_table_names_commands_memory_and_failures() {
    let record = timed(&[0.4; 6], &[0.2; 6]);
    let table = &Run.tables(&record)[0];
    assert_eq!(table.rows[1][0], "B");
    assert_eq!(table.rows[1].last().map(String::as_str), Some("under 9.00 MB"));
    let notes = [
        "A: sleep '0.1\\u{1b}'",
        "B: sleep '0.1\\u{1b}'",
        "Before each run: sync",
        "Warm caches: each command has run before; without --files nothing is proved.",
        "A: 1 of 6 runs ended with another status than 0.",
        "B: 1 of 6 runs ended with another status than 0.",
    ];
    assert_eq!(table.notes, notes);
}

#[test]
fn memory_has_a_median_only_if_each_run_has_a_peak() {
    let shown = |peaks: &[f64]| {
        let mut record = timed(&[0.4; 6], &[0.2; 6]);
        for (run, peak) in record.cells[1].runs.iter_mut().zip(peaks) {
            run.figures.insert("peak_memory_b".to_owned(), *peak);
        }
        Run.tables(&record)[0].rows[1].last().cloned().unwrap_or_default()
    };
    assert_eq!(shown(&[20e6, 20e6, 20e6, 20e6, 20e6, 40e6]), "20.0 MB");
    assert_eq!(shown(&[20e6, 40e6, 20e6, 20e6, 20e6]), "up to 40.0 MB");
    assert_eq!(shown(&[]), "under 9.00 MB");
}
