//! `ferry lab disk`: record and errors.

use crate::measured::{cells, left_in, quick};
use crate::scene::{ferry, text};

#[test]
fn a_quick_run_makes_a_record() {
    let record = quick("disk", &[]).record;
    let cells = cells(&record);
    assert_eq!(cells.len(), 9);
    assert!(cells.iter().all(|(_, missing)| missing.is_none()), "{cells:?}");
    for cell in record["cells"].as_array().unwrap() {
        for run in cell["runs"].as_array().unwrap() {
            let figure = |name: &str| run["figures"][name].as_f64().unwrap();
            let bytes = cell["parameters"]["block_bytes"].as_f64().unwrap();
            let ratio = figure("throughput_b_s") / figure("requests_1_s") / bytes;
            assert!((ratio - 1.0).abs() < 1e-6, "{cell}");
            let writes = cell["parameters"]["operation"] != "read";
            assert_eq!(run["figures"]["flush_s"].is_number(), writes, "{cell}");
        }
    }
}

#[test]
fn what_it_needs_is_checked_first() {
    let place = tempfile::tempdir().unwrap();
    let said = |options: &[&str], code: i32| {
        let output = ferry(place.path(), &[&["lab", "disk"], options].concat());
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert!(left_in(place.path()).is_empty());
        text(&output.stderr).to_owned()
    };
    assert!(said(&["--size", "16000G"], 1).contains(" needs "));
    assert!(said(&["--block-size", "5000"], 2).contains("must be a multiple of 4K"));
    // /proc supports neither direct I/O nor new files.
    assert!(said(&["--work-dir", "/proc/self"], 1).starts_with("ferry lab: cannot work in '/proc/self'"));
}
