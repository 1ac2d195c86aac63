use std::cell::RefCell;
use std::path::Path;

use super::dirty::Dirty;
use super::{Ended, Observer, Request, Session, Subject, conduct};
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::error::Failure;
use crate::experiments::Experiment;
use crate::needs::Need;
use crate::plot::Plot;
use crate::record::{Better, Cell, Figures, Measure, Record, Scale};
use crate::schedule::Progress;
use crate::settings::{Kind, Parameter, Settings};
use crate::stop::Stop;
use crate::verdict::Verdict;

/// Two cells that count their calls; the second one fails in the round that it is told to fail in.
struct Counting;

const PARAMETERS: &[Parameter] = &[
    Parameter::new("fail", "CALL", "", Kind::Number(0, 100), "99"),
    Parameter::new("end", "CALL", "", Kind::Number(0, 100), "99"),
];

impl Experiment for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }
    fn about(&self) -> &'static str {
        ""
    }
    fn manual(&self) -> &'static str {
        ""
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn runs(&self, _: Scale) -> u64 {
        6
    }
    fn measures(&self) -> Vec<Measure> {
        vec![Measure::new("calls", "calls", "", Better::Neither)]
    }
    fn needs(&self, _: &Settings) -> Result<Vec<Need>, Failure> {
        Ok(vec![Need::Space { bytes: 1, entries: 1 }])
    }
    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let calls = RefCell::new(0_u64);
        let (fail, end) = (session.settings().number("fail"), session.settings().number("end"));
        let subject = |name: &str| {
            let cell = Cell::new(&[("tool", name.into())], State::AsItIs);
            let (calls, fails) = (&calls, name == "two");
            Subject::new(cell, move |turn| {
                *calls.borrow_mut() += 1;
                let count = *calls.borrow();
                std::fs::write(turn.fresh("file"), "made").unwrap();
                turn.remove(turn.fresh("file"))?;
                if fails && count >= fail {
                    return Err(Failure::Run("it broke".to_owned()));
                }
                if count >= end {
                    return Err(Failure::Interrupted);
                }
                Ok(Figures::from([("calls".to_owned(), crate::units::real(count))]))
            })
        };
        session.plan(2);
        session.interleave(&mut [subject("one"), subject("two")], &Sample::none())
    }
    fn plots(&self, _: &Record) -> Vec<Plot> {
        Vec::new()
    }
    fn verdicts(&self, _: &Record) -> Vec<Verdict> {
        Vec::new()
    }
}

#[derive(Default)]
struct Heard {
    progress: RefCell<Vec<Progress>>,
    notes: RefCell<Vec<String>>,
}

impl Observer for Heard {
    fn progress(&self, progress: &Progress) {
        self.progress.borrow_mut().push(progress.clone());
    }
    fn note(&self, line: &str) {
        self.notes.borrow_mut().push(line.to_owned());
    }
}

fn request(place: &Path, parameters: &[(&str, &str)]) -> Request {
    Request {
        parameters: parameters.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect(),
        seed: Some(5),
        work_dir: place.to_owned(),
        record: Some(place.join("record.json")),
        ferry: "/bin/true".into(),
        ..Request::default()
    }
}

fn conducted(request: &Request, heard: &Heard) -> Result<Ended, Failure> {
    conduct(&Counting, request, heard, &Stop::on_signals().unwrap())
}

fn left(place: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(place).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_cell_gets_its_runs_and_only_the_record_is_left() {
    let place = tempfile::tempdir().unwrap();
    let heard = Heard::default();
    let ended = conducted(&request(place.path(), &[]), &heard).unwrap();
    assert!(ended.failure.is_none() && ended.record.complete);
    assert!(ended.record.cells.iter().all(|cell| cell.runs.len() == 6));
    // One warm-up each comes first, and is not counted.
    let least = ended.record.cells.iter().flat_map(|cell| cell.figures("calls")).fold(f64::MAX, f64::min);
    assert!((least - 3.0).abs() < 1e-9, "{least}");
    assert_eq!(left(place.path()), ["record.json"]);
    assert_eq!(crate::record::read::read(&place.path().join("record.json")).unwrap(), ended.record);
    assert_eq!(heard.notes.borrow()[0], "seed 5");
    let progress = heard.progress.borrow();
    assert_eq!((progress.last().unwrap().taken, progress.last().unwrap().planned), (11, 12));
    assert!(progress.last().unwrap().left.is_some());
}

#[test]
fn an_interrupted_record_is_resumed_with_what_is_missing() {
    let place = tempfile::tempdir().unwrap();
    let ended = conducted(&request(place.path(), &[("end", "8")]), &Heard::default()).unwrap();
    assert_eq!(ended.failure.unwrap().exit_code(), 130);
    let taken = |record: &Record| record.cells.iter().map(|cell| cell.runs.len()).sum::<usize>();
    assert_eq!((taken(&ended.record), ended.record.complete), (5, false));
    assert!(!ended.record.is_to_be_trusted());
    assert_eq!(left(place.path()), ["record.json"]);
    let path = place.path().join("record.json");
    let resume =
        Request { resume: Some(path.clone()), record: None, runs: Some(4), ..request(place.path(), &[]) };
    let ended = conducted(&resume, &Heard::default()).unwrap();
    assert!(ended.failure.is_none() && ended.record.complete, "{:?}", ended.failure);
    assert_eq!(taken(&ended.record), 8);
    for cell in &ended.record.cells {
        let mut rounds: Vec<u64> = cell.runs.iter().map(|run| run.round).collect();
        rounds.sort_unstable();
        assert_eq!(rounds, [0, 1, 2, 3]);
    }
    let nothing_missing = conducted(&resume, &Heard::default()).unwrap();
    assert_eq!(taken(&nothing_missing.record), 8);
    for (wrong, why) in [
        (
            Request { parameters: vec![("end".into(), "9".into())], ..resume.clone() },
            "'--end' can't be changed",
        ),
        (Request { seed: Some(6), ..resume.clone() }, "a record is resumed with the seed"),
        (Request { scale: Scale::Quick, ..resume.clone() }, "a record is resumed with the scale"),
    ] {
        let error = conducted(&wrong, &Heard::default()).unwrap_err();
        assert!(error.to_string().starts_with(why) && error.exit_code() == 2, "{error}");
    }
}

#[test]
fn a_failed_run_ends_its_cell_only() {
    let place = tempfile::tempdir().unwrap();
    let heard = Heard::default();
    let ended = conducted(&request(place.path(), &[("fail", "5")]), &heard).unwrap();
    let (one, two) = (&ended.record.cells[0], &ended.record.cells[1]);
    assert!(ended.failure.is_none() && one.runs.len() == 6 && two.runs.len() < 6);
    assert_eq!(two.missing.as_deref(), Some("it broke"));
    assert!(heard.notes.borrow().contains(&"two: it broke".to_owned()));
}

#[test]
fn what_is_missing_is_found_before_anything_is_written() {
    let place = tempfile::tempdir().unwrap();
    let refused = |request: Request| conducted(&request, &Heard::default()).unwrap_err().to_string();
    let missing = Request { work_dir: place.path().join("missing"), ..request(place.path(), &[]) };
    assert!(refused(missing).ends_with("missing': No such file or directory"));
    let record = Request { record: Some(place.path().join("no/record")), ..request(place.path(), &[]) };
    assert!(refused(record).ends_with("no/record': No such file or directory"));
    let record = Request { record: Some(place.path().to_owned()), ..request(place.path(), &[]) };
    assert!(refused(record).ends_with("': Is a directory"));
    assert_eq!(
        refused(request(place.path(), &[("end", "x")])),
        "invalid value 'x' for '--end'; it must be from 0 to 100"
    );
    assert_eq!(left(place.path()), Vec::<String>::new());
}

#[test]
fn a_failure_before_the_first_run_leaves_no_record() {
    let place = tempfile::tempdir().unwrap();
    let ended = conducted(&request(place.path(), &[("end", "0")]), &Heard::default()).unwrap();
    assert!(ended.failure.is_some());
    assert_eq!(left(place.path()), Vec::<String>::new());
}

#[test]
fn writing_more_than_may_wait_is_told() {
    let at = |dirtied: u64| {
        let text = format!(
            "nr_dirty 3\nnr_dirtied {dirtied}\nnr_dirty_threshold 200\nnr_dirty_background_threshold 100\n"
        );
        Dirty::parse(&text)
    };
    assert!(at(150).warning_since(&at(0)).is_none());
    let warning = at(151).warning_since(&at(0)).unwrap();
    assert!(warning.message.starts_with("a run writes more than the 614 kB"), "{warning}");
    assert!(Dirty::parse("").warning_since(&Dirty::parse("")).is_none());
}
