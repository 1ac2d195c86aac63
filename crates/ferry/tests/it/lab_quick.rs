//! An experiment with `--quick`: its record, which must be as published, and nothing else left behind.

use std::path::Path;

use serde_json::Value;

use crate::scene::{ferry, text};

/// Runs it in `place`, and reads its record.
pub(crate) fn quick(place: &Path, experiment: &str, options: &[&str]) -> Value {
    let arguments =
        [&["lab", experiment, "--quick", "--seed", "7", "--json", "record.json"], options].concat();
    let output = ferry(place, &arguments);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).starts_with("seed 7\n"), "{}", text(&output.stderr));
    assert_eq!(left(place), ["record.json"]);
    let record: Value = serde_json::from_slice(&std::fs::read(place.join("record.json")).unwrap()).unwrap();
    std::fs::remove_file(place.join("record.json")).unwrap();
    let schema = serde_json::from_str(include_str!("../../../../docs/record.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<String> = validator.iter_errors(&record).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(record["experiment"], experiment);
    assert_eq!(record["complete"], true);
    record
}

/// What is in a folder.
pub(crate) fn left(place: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(place).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Each cell's name, with why it is missing.
pub(crate) fn cells(record: &Value) -> Vec<(&str, Option<&str>)> {
    let cells = record["cells"].as_array().unwrap();
    cells.iter().map(|cell| (cell["name"].as_str().unwrap(), cell["missing"].as_str())).collect()
}
