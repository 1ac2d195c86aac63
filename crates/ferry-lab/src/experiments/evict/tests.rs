use super::{Case, Evict, MemoryLimit, USES, cells};
use crate::error::Failure;
use crate::experiment::Experiment;
use crate::experiments::tests::every_verdict_goes_every_way;
use crate::record::Scale;
use crate::settings::Settings;

#[test]
fn sizes_that_show_nothing_are_refused() {
    let needs = |given: &[(&str, &str)]| {
        let given: Vec<_> =
            given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Evict.needs(&Settings::new(Evict.spec().parameters, &given, Scale::Default).unwrap())
    };
    assert_eq!(needs(&[]).unwrap().len(), 3);
    let why = "'--memory' must be more than '--resident' and less than '--size'";
    for given in [("memory", "512M"), ("memory", "4G")] {
        assert_eq!(needs(&[given]).unwrap_err().to_string(), why);
    }
}

#[test]
fn every_finding_can_hold_or_not_or_be_unclear() {
    let settings = Settings::new(Evict.spec().parameters, &[], Scale::Default).unwrap();
    let cells = cells(&USES.map(str::to_owned));
    every_verdict_goes_every_way(&Evict, cells, settings.values());
}

/// Beside the next copy the working set would else be read by as many as there were runs before.
#[test]
fn a_reader_that_is_not_needed_any_more_is_gone() {
    let limit = match MemoryLimit::make(64 << 20) {
        Ok(limit) => limit,
        Err(Failure::Run(why)) => {
            eprintln!("SKIP: {why}");
            return;
        }
        Err(other) => panic!("{other}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("resident");
    std::fs::write(&file, vec![1; 1 << 20]).unwrap();
    let case = |is_used| Case {
        limit: &limit,
        resident: &file,
        resident_bytes: 1 << 20,
        is_used,
        source: &file,
        bytes: 0,
    };
    let processes = || std::fs::read_to_string(limit.processes()).unwrap().lines().count();
    for (is_used, readers) in [(true, 1), (false, 0)] {
        let reader = case(is_used).reader().unwrap();
        // One loops, once it has begun; what reads for it comes and goes.
        let begun = std::time::Instant::now();
        while processes() < readers && begun.elapsed().as_secs() < 5 {
            std::thread::yield_now();
        }
        assert!((readers..=2 * readers).contains(&processes()), "{is_used}: {}", processes());
        assert!(case(is_used).share() > 0.99);
        reader.undo().unwrap();
        assert_eq!(processes(), 0, "{is_used}");
    }
    limit.remove().unwrap();
}
