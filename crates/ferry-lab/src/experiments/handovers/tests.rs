use ferry_io::counting::Event;

use super::trials::{Counts, HANDED, SERIAL, STRIDE, TRIALS};
use super::{FILESYSTEMS, Handovers, cells};
use crate::experiment::Experiment;
use crate::experiments::tests::every_verdict_goes_every_way;
use crate::needs::{self, Need};
use crate::record::tests::record;
use crate::record::{Cell, Record, Run, Scale};
use crate::settings::Settings;
use crate::stop::Stop;
use crate::table::not_measured;
use crate::verdict::Outcome;

fn all_cells() -> Vec<Cell> {
    FILESYSTEMS.iter().flat_map(|filesystem| cells(filesystem)).map(|(_, cell)| cell).collect()
}

/// A record in which these shares of each kind of request were handed over, and one at a time.
fn taken(shares: impl Fn(&Cell) -> Option<(f64, f64)>) -> Record {
    let run = record().cells[0].runs[0].clone();
    let mut cells = all_cells();
    for cell in &mut cells {
        let Some((handed, serial)) = shares(cell) else {
            cell.missing = Some("'mkfs.btrfs' is not found on the PATH".to_owned());
            continue;
        };
        for round in 0..5 {
            let figures = [(HANDED, handed), (SERIAL, serial)];
            let figures = figures.map(|(name, figure)| (name.to_owned(), figure)).into();
            cell.runs.push(Run { round, figures, ..run.clone() });
        }
    }
    Record { cells, measures: Handovers.measures(), experiment: "handovers".to_owned(), ..record() }
}

#[test]
fn what_is_handed_over_is_shown_by_filesystem() {
    let record = taken(|cell| match (cell.text("filesystem").as_str(), cell.text("operation").as_str()) {
        ("btrfs", _) => None,
        ("ext4", "write") if !cell.text("how").starts_with("direct") => Some((1.0, 1.0)),
        ("here", "write") => Some((0.25, 0.0)),
        _ => Some((0.0, 0.0)),
    });
    let tables = Handovers.tables(&record);
    let here = format!("here ({})", record.machine.place.filesystem);
    assert_eq!(tables[0].columns, ["operation", "ext4", "xfs", "btrfs", here.as_str()]);
    assert_eq!(tables[0].rows.len(), TRIALS.len());
    assert_eq!(tables[0].rows[0], ["read, cached", "0 %", "0 %", "", "0 %"]);
    assert_eq!(tables[0].rows[3], ["write, buffered", "100 % *", "0 %", "", "25 %"]);
    let note = not_measured(&record).unwrap();
    assert!(note.starts_with("Not measured: btrfs ('mkfs.btrfs'"), "{note}");
    let headline = Handovers.headline(&record).answer;
    let here = &record.machine.place.filesystem;
    let answer = "The kernel hands 100 % of the buffered writes on ext4 to a worker, 0 % on XFS, 25 % in the work folder";
    assert_eq!(headline, format!("{answer} ({here})"));
    let verdicts = Handovers.verdicts(&record);
    let find = |part: &str| verdicts.iter().find(|verdict| verdict.finding.contains(part)).unwrap();
    assert_eq!(find("Buffered writes to ext4").outcome, Outcome::Held);
    assert_eq!(find("Direct writes to ext4").outcome, Outcome::DidNotHold);
    assert_eq!(find("Buffered writes to XFS need no").outcome, Outcome::Held);
    assert_eq!(find("Buffered writes to btrfs").outcome, Outcome::NotMeasured);
    assert_eq!(find("Buffered writes to ext4").words, "100 % of the requests were handed over");
    assert_eq!(Handovers.plots(&record).len(), 1);
}

#[test]
fn every_finding_can_hold_or_not_or_be_unclear() {
    every_verdict_goes_every_way(&Handovers, all_cells(), &record().parameters);
}

#[test]
fn root_and_room_are_needed() {
    let settings = Settings::new(Handovers.spec().parameters, &[], Scale::Quick).unwrap();
    let needs = Handovers.needs(&settings).unwrap();
    assert!(needs.contains(&Need::Root) && needs.contains(&Need::Ring), "{needs:?}");
    assert!(needs.iter().any(|need| matches!(need, Need::Space { bytes, .. } if *bytes > 64 << 20)));
}

#[test]
fn each_kind_of_request_is_counted() {
    let place = tempfile::tempdir().unwrap();
    let stop = Stop::on_signals().unwrap();
    if let Some(why) = needs::ring().err().or_else(|| Counts::begin().err().map(|errno| errno.to_string())) {
        return eprintln!("SKIP: {}: {why}", Event::KernelWorkerHandover.name());
    }
    crate::load::lay_out(&place.path().join("old"), 4 * STRIDE, 1, &stop).unwrap();
    for (trial, operation, how) in TRIALS {
        if how.starts_with("direct") && !needs::has_direct_io(place.path()) {
            eprintln!("SKIP: there is no direct I/O");
            continue;
        }
        let figures = trial.take(place.path(), 4, &stop).unwrap();
        assert!(figures["request_s"] > 0.0, "{operation} {how}: {figures:?}");
        assert!((0.0..=1.0).contains(&figures[HANDED]), "{operation} {how}: {figures:?}");
        assert!(figures[SERIAL] <= figures[HANDED], "{operation} {how}: {figures:?}");
    }
    let left: Vec<_> =
        std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["old"]);
}
