//! Experiments run as commands: exit codes, records, and leftovers.

use std::path::Path;
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use ferry_lab::record::read::read;
use serde_json::Value;

use crate::scene::{FERRY, text};

pub(crate) struct Measured {
    pub(crate) output: Output,
    pub(crate) record: Value,
}

/// Time that `--quick` is promised to take at most. A debug build, alone on two processors, takes 10 s (`ring` and `when`).
const QUICK: Duration = Duration::from_secs(20);

/// Factor by which a quick run may take longer here than alone: another test runs beside it, and a busier machine has more
/// tasks than that for each processor.
fn slowdown() -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    let load: f64 = load.split_whitespace().next().unwrap().parse().unwrap();
    let processors = u32::try_from(std::thread::available_parallelism().unwrap().get()).unwrap();
    (load / f64::from(processors)).max(2.0)
}

/// Runs `ferry lab NAME --quick` in an empty directory on the tests' disk.
#[track_caller]
pub(crate) fn quick(name: &str, arguments: &[&str]) -> Measured {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let measured = quick_in(place.path(), name, arguments, "record");
    assert_eq!(left_in(place.path()), ["record"]);
    measured
}

/// Runs it in `folder`. It must write a valid record and warn that quick figures are not to be trusted.
#[track_caller]
pub(crate) fn quick_in(place: &Path, name: &str, arguments: &[&str], record: &str) -> Measured {
    let json = format!("--json={record}");
    let begun = Instant::now();
    let output = lab(place, &[&[name, "--quick", "--seed=7", &json], arguments].concat());
    let (took, most) = (begun.elapsed(), QUICK.mul_f64(slowdown()));
    assert!(took < most, "{name} took {took:?}, more than {most:?}");
    let is_measured = name != "tree";
    assert_eq!(output.status.code(), Some(if is_measured { 3 } else { 0 }), "{output:?}");
    assert_eq!(text(&output.stderr).starts_with("seed 7\n"), is_measured, "{output:?}");
    let record = valid(&place.join(record));
    assert_eq!((&record["complete"], &record["experiment"]), (&true.into(), &name.into()), "{output:?}");
    Measured { output, record }
}

pub(crate) fn lab(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(FERRY).arg("lab").args(arguments).current_dir(folder).output().unwrap()
}

/// Returns a result's text without line breaks.
pub(crate) fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn left_in(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

pub(crate) fn cells(record: &Value) -> Vec<(&str, Option<&str>)> {
    let cells = record["cells"].as_array().unwrap();
    cells.iter().map(|cell| (cell["name"].as_str().unwrap(), cell["missing"].as_str())).collect()
}

/// Largest figure of a cell.
#[track_caller]
pub(crate) fn best(record: &Value, name: &str, measure: &str) -> f64 {
    let cell = record["cells"].as_array().unwrap().iter().find(|cell| cell["name"] == name).unwrap();
    let runs = cell["runs"].as_array().unwrap().iter();
    runs.map(|run| run["figures"][measure].as_f64().unwrap()).fold(f64::NEG_INFINITY, f64::max)
}

/// Reads a record and validates it against the schema.
#[track_caller]
pub(crate) fn valid(path: &Path) -> Value {
    let record: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let schema = include_str!("../../../../docs/record.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&record).map(|error| format!("{error} at {}", error.instance_path)).collect();
    assert_eq!(errors, Vec::<String>::new());
    record
}

/// Waits until the record at `path` has a run of the running command.
#[track_caller]
pub(crate) fn wait_for_a_run(path: &Path, child: &mut Child) {
    let begun = Instant::now();
    while !read(path).is_ok_and(|record| record.cells.iter().any(|cell| !cell.runs.is_empty())) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing was measured in a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}
