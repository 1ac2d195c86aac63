//! `ferry lab cache`: record and errors.

use crate::measured::{cells, left_in, quick};
use crate::scene::{ferry, text};

#[test]
fn a_quick_run_makes_a_record() {
    let record = quick("cache", &[]).record;
    let cells = cells(&record);
    // Two cache states: five methods with two, six with three.
    assert_eq!(cells.len(), 2 * 5 + 3 * 6);
    assert!(cells.iter().all(|(_, missing)| missing.is_none()), "{cells:?}");
    for cell in record["cells"].as_array().unwrap() {
        let way = cell["parameters"]["way"].as_str().unwrap();
        for run in cell["runs"].as_array().unwrap() {
            let figure = |name: &str| run["figures"][name].as_f64();
            assert_eq!(figure("throughput_b_s").is_some(), way != "lru", "{cell}");
            if way != "lru" && way != "page-cache" {
                // Missing if the kernel does not report it.
                assert!(figure("page_cache_b").is_none_or(|bytes| bytes == 0.0), "{cell}");
            }
            if let Some(ratio) = figure("hit_ratio") {
                assert!((0.0..=1.0).contains(&ratio) && way != "device" && way != "one-at-a-time", "{cell}");
            }
        }
    }
}

#[test]
fn what_it_needs_is_checked_first() {
    let place = tempfile::tempdir().unwrap();
    let said = |options: &[&str], code: i32| {
        let output = ferry(place.path(), &[&["lab", "cache"], options].concat());
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert!(left_in(place.path()).is_empty());
        let said = text(&output.stderr).to_owned();
        assert!(said.starts_with("ferry lab: ") && said.lines().count() <= 2, "{said}");
        said
    };
    assert!(said(&["--file-size", "1000001"], 2).contains("--file-size"));
    assert!(said(&["--cache-sizes", "300000"], 2).contains("in multiples of 16K"));
    assert!(said(&["--block-size", "12K"], 2).contains("in multiples of '--block-size'"));
    assert!(said(&["--access", "backwards"], 2).contains("valid are: sequential, overwrite"));
    assert!(said(&["--work-dir", "/proc/self"], 1).contains("cannot work in '/proc/self'"));
}
