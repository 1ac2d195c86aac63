//! Experiments run by their commands: what they exit with, keep and leave behind.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::scene::{FERRY, text};

/// An experiment that has ended.
pub(crate) struct Measured {
    pub(crate) output: Output,
    pub(crate) record: Value,
}

/// Runs `ferry lab NAME --quick` in an empty folder: it must measure, keep a record that follows the published schema,
/// and leave nothing else behind.
#[track_caller]
pub(crate) fn quick(name: &str, arguments: &[&str]) -> Measured {
    let place = tempfile::tempdir().unwrap();
    let output = lab(place.path(), &[&[name, "--quick", "--seed=7", "--json=record"], arguments].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    let record = std::fs::read_to_string(place.path().join("record")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    follows_the_schema(&record);
    assert_eq!(record["complete"], true, "{}", text(&output.stderr));
    assert_eq!(left_in(place.path()), ["record"]);
    Measured { output, record }
}

/// Runs `ferry lab` in a folder.
pub(crate) fn lab(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(FERRY).arg("lab").args(arguments).current_dir(folder).output().unwrap()
}

/// The names in a folder.
pub(crate) fn left_in(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[track_caller]
fn follows_the_schema(record: &Value) {
    let schema = include_str!("../../../../docs/record.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(record).map(|error| format!("{error} at {}", error.instance_path)).collect();
    assert_eq!(errors, Vec::<String>::new());
}
