use std::cell::RefCell;
use std::path::Path;

use super::{Ended, Request, conduct};
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::needs::Need;
use crate::plot::Plot;
use crate::record::warning::{Warning, WarningKind};
use crate::record::{Better, Cell, Failed, Figures, Measure, Record, Scale};
use crate::schedule::Progress;
use crate::session::{Observer, Session, Subject};
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::stop::Stop;
use crate::verdict::Verdict;

/// Two cells that count their calls; the second one fails in the round that it is told to fail in. What is named here
/// can't be measured.
#[derive(Default)]
struct Counting(&'static [&'static str]);

const PARAMETERS: &[Parameter] = &[
    Parameter::new("fail", "CALL", "", ParameterKind::Number(0, 100), "99"),
    Parameter::new("end", "CALL", "", ParameterKind::Number(0, 100), "99"),
    Parameter::new("differ", "CALL", "", ParameterKind::Number(0, 100), "99"),
];

const SPEC: Spec = Spec {
    name: "counting",
    about: "",
    manual: "",
    parameters: PARAMETERS,
    operands: &[],
    runs: Runs { default: 6, quick: 6, published: 6 },
    is_measured: true,
};

impl Experiment for Counting {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }
    fn measures(&self) -> Vec<Measure> {
        vec![Measure::new("calls", "calls", "", Better::Neither)]
    }
    fn needs(&self, _: &Settings) -> Result<Vec<Need>, Failure> {
        Ok(vec![Need::Space { bytes: 1, entries: 1 }])
    }
    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let calls = RefCell::new(0_u64);
        let number = |name: &str| session.settings().number(name);
        let (fail, end, differ) = (number("fail"), number("end"), number("differ"));
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
                if fails && count >= differ {
                    return Err(Failure::Differs("the copy differs".to_owned()));
                }
                if count >= end {
                    return Err(Failure::Interrupted);
                }
                Ok(Figures::from([("calls".to_owned(), crate::units::real(count))]))
            })
        };
        session.plan(2);
        let mut subjects = vec![subject("one"), subject("two")];
        for absent in subjects.extract_if(.., |subject| self.0.contains(&subject.cell.name.as_str())) {
            session.leave_out(absent.cell, "it is not here");
        }
        session.interleave(&mut subjects, &Sample::none())
    }
    fn plots(&self, _: &Record) -> Vec<Plot> {
        Vec::new()
    }
    fn verdicts(&self, record: &Record) -> Vec<Verdict> {
        let ratio =
            record.cell("one").zip(record.cell("two")).and_then(|(one, two)| record.ratio(one, two, "calls"));
        vec![Verdict::above("", "the second counts on", ratio, 0.0, |_| String::new())]
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
    conduct(&Counting::default(), request, heard, &Stop::on_signals().unwrap())
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
fn cells_take_turns_in_an_order_of_chance() {
    let place = tempfile::tempdir().unwrap();
    let ended = conducted(&request(place.path(), &[]), &Heard::default()).unwrap();
    let calls = |name: &str| -> Vec<f64> { ended.record.cell(name).unwrap().figures("calls") };
    let (one, two) = (calls("one"), calls("two"));
    for (round, (one, two)) in one.iter().zip(&two).enumerate() {
        // Two warm-ups, then two calls a round.
        let first = crate::units::real(u64::try_from(2 * round + 3).unwrap());
        assert!((one.min(*two) - first).abs() < 1e-9 && (one - two).abs() < 1.5, "{one} {two} in {round}");
    }
    let firsts = one.iter().zip(&two).filter(|(one, two)| one < two).count();
    assert!(firsts > 0 && firsts < 6, "{firsts} of 6 rounds begin with the same cell");
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
        (Request { seed: Some(6), ..resume.clone() }, "the seed cannot be changed"),
        (Request { scale: Scale::Quick, ..resume.clone() }, "the scale cannot be changed"),
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

fn without(absent: &'static [&'static str], request: &Request) -> Ended {
    conduct(&Counting(absent), request, &Heard::default(), &Stop::on_signals().unwrap()).unwrap()
}

#[test]
fn where_nothing_was_measured_it_failed() {
    let place = tempfile::tempdir().unwrap();
    let ended = without(&["one", "two"], &request(place.path(), &[]));
    let failure = ended.failure.unwrap();
    assert_eq!(
        (failure.to_string().as_str(), failure.exit_code()),
        ("nothing was measured: it is not here", 1)
    );
    assert!(!ended.record.complete);
    assert_eq!(left(place.path()), Vec::<String>::new());
}

#[test]
fn a_finding_that_lost_its_cell_is_told() {
    let place = tempfile::tempdir().unwrap();
    let ended = without(&["two"], &request(place.path(), &[]));
    assert!(ended.failure.is_none() && ended.record.complete);
    let lost: Vec<&Warning> = ended.record.warnings.iter().filter(|warning| warning.distrust).collect();
    assert!(
        lost.iter().any(|warning| warning.message == "1 finding cannot be judged because cells are missing"),
        "{lost:?}"
    );
}

#[test]
fn what_differs_or_failed_is_not_complete() {
    for (what, kind, line) in
        [("differ", Failed::Copy, "the copy differs"), ("fail", Failed::Run, "it broke")]
    {
        let place = tempfile::tempdir().unwrap();
        let heard = Heard::default();
        let ended = conducted(&request(place.path(), &[(what, "11")]), &heard).unwrap();
        let two = &ended.record.cells[1];
        assert!(ended.failure.is_none() && !two.runs.is_empty(), "{two:?}");
        assert_eq!((two.failed, two.missing.as_deref()), (Some(kind), Some(line)));
        assert!(!ended.record.complete && heard.notes.borrow().contains(&format!("two: {line}")));
        let told = |warning: &Warning| {
            warning.kind == WarningKind::Failed && warning.distrust && warning.cell == "two"
        };
        assert!(ended.record.warnings.iter().any(told), "{:?}", ended.record.warnings);
    }
}

/// The record at `path`, changed.
fn change(path: &Path, with: impl FnOnce(&mut Record)) {
    let mut record = crate::record::read::read(path).unwrap();
    with(&mut record);
    std::fs::write(path, crate::record::store::json(&record)).unwrap();
}

#[test]
fn what_was_left_out_is_taken_when_it_is_there_again() {
    let place = tempfile::tempdir().unwrap();
    let first = without(&["two"], &request(place.path(), &[]));
    assert_eq!(first.record.cells.iter().map(|cell| cell.runs.len()).collect::<Vec<_>>(), [0, 6]);
    let path = place.path().join("record.json");
    let resume = Request { resume: Some(path), record: None, ..request(place.path(), &[]) };
    let ended = without(&[], &resume);
    assert!(ended.record.cells.iter().all(|cell| cell.runs.len() == 6 && cell.missing.is_none()));
    // A complete cell stays as it is, even if it could not be measured now.
    let ended = without(&["one", "two"], &resume);
    assert!(ended.failure.is_none() && ended.record.cells.iter().all(|cell| cell.missing.is_none()));
}

#[test]
fn what_made_the_first_session_doubtful_is_not_forgotten() {
    let place = tempfile::tempdir().unwrap();
    conducted(&request(place.path(), &[("end", "8")]), &Heard::default()).unwrap();
    let path = place.path().join("record.json");
    let stolen = crate::warnings::of_stolen_time(10, 100).unwrap();
    change(&path, |record| {
        record.warnings.push(stolen.clone());
        record.machine.memory.limit_bytes = Some(1 << 20);
    });
    let resume = Request { resume: Some(path), record: None, runs: Some(4), ..request(place.path(), &[]) };
    for _ in 0..2 {
        let ended = conducted(&resume, &Heard::default()).unwrap();
        assert_eq!(ended.record.warnings.iter().filter(|warning| **warning == stolen).count(), 1);
        assert_eq!(ended.record.machine.memory.limit_bytes, Some(1 << 20));
        let changed = |warning: &&Warning| warning.kind == WarningKind::Changed && warning.distrust;
        let changed: Vec<&Warning> = ended.record.warnings.iter().filter(changed).collect();
        assert!(changed.len() == 1 && changed[0].message.contains("'1048576'"), "{changed:?}");
        assert!(!ended.record.warnings.iter().any(|warning| warning.kind == WarningKind::Incomplete));
    }
}

#[test]
fn another_program_or_machine_does_not_go_on() {
    let place = tempfile::tempdir().unwrap();
    conducted(&request(place.path(), &[("end", "8")]), &Heard::default()).unwrap();
    let path = place.path().join("record.json");
    let whole = std::fs::read(&path).unwrap();
    let resume = Request { resume: Some(path.clone()), record: None, ..request(place.path(), &[]) };
    let other = Request { ferry: "/bin/false".into(), ..resume.clone() };
    let refused = |request: &Request| conducted(request, &Heard::default()).unwrap_err();
    let build = refused(&other);
    assert!(
        build.to_string().starts_with("the record was started by another build of ferry ('ferry "),
        "{build}"
    );
    assert_eq!(build.exit_code(), 2);
    let changes: [fn(&mut Record); 3] = [
        |record| record.machine.place.filesystem = "minix".to_owned(),
        |record| record.machine.processor.affinity = "7".to_owned(),
        |record| record.machine.kernel = "2.4.0".to_owned(),
    ];
    for with in changes {
        change(&path, with);
        let refused = refused(&resume).to_string();
        assert!(refused.starts_with("the record was started on another machine or disk ("), "{refused}");
        std::fs::write(&path, &whole).unwrap();
    }
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
