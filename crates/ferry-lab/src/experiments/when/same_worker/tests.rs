use std::path::Path;
use std::time::{Duration, Instant};

use ferry_io::RouteChoice;

use super::{LONG_BYTES, Long, Observed, SMALL_BYTES, Scene, Spans, Tick, figures};
use crate::load::lay_out;
use crate::machine::Filesystem;
use crate::needs;
use crate::stop::Stop;

#[test]
fn ticks_count_only_if_they_are_due_during_a_long_operation() {
    let start = Instant::now();
    let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
    let tick =
        |due: u64, ran: u64, had_read: u64| Tick { due: at(due), ran: at(ran), had_read: at(had_read) };
    let ticks = vec![tick(1, 101, 102), tick(10, 11, 13), tick(20, 24, 29), tick(31, 131, 132)];
    let spans = Spans { all: vec![(at(5), at(15)), (at(20), at(30))], took: Duration::from_millis(20) };
    let early = Observed { ticks: vec![tick(1, 101, 102)], spans: Spans { all: spans.all.clone(), ..spans } };
    assert_eq!(figures(&early), None);
    let figures = figures(&Observed { ticks, spans }).unwrap();
    let expected = [
        ("long_s", 0.010),
        ("small_p99_s", 0.003 + 0.006 * 0.99),
        ("tick_p50_s", 0.0025),
        ("tick_p99_s", 0.001 + 0.003 * 0.99),
        ("ticks", 2.0),
    ];
    assert_eq!(figures.len(), expected.len());
    for (name, value) in expected {
        assert!((figures[name] - value).abs() < 1e-9, "{name}: {figures:?}");
    }
}

#[test]
fn a_fiber_ticks_beside_each_long_operation_on_each_route() {
    let place = tempfile::tempdir().unwrap();
    let stop = Stop::on_signals().unwrap();
    lay_out(&place.path().join("long"), LONG_BYTES, 1, &stop).unwrap();
    lay_out(&place.path().join("small"), SMALL_BYTES, 2, &stop).unwrap();
    let has_ring = needs::ring().is_ok();
    for long in [Long::None, Long::Read, Long::Sync] {
        for route in [RouteChoice::Inline, RouteChoice::Ring, RouteChoice::Pool, RouteChoice::Auto] {
            if route == RouteChoice::Ring && !has_ring {
                eprintln!("SKIP: there is no io_uring");
                continue;
            }
            let scene = Scene { folder: place.path(), route, long, least: Duration::from_millis(10) };
            if long == Long::Sync && is_in_memory(place.path()) {
                eprintln!("SKIP: fsync(2) of a file in memory takes no time");
                continue;
            }
            let figures = scene.measure(&stop).unwrap();
            assert!(figures["long_s"] > 0.0, "{long:?} {route:?}: {figures:?}");
            assert_eq!(figures.contains_key("cached_share"), long == Long::Read && has_cachestat(&place));
        }
    }
}

fn is_in_memory(folder: &Path) -> bool {
    Filesystem::look(folder).filesystem == "tmpfs"
}

#[test]
fn a_run_ends_where_a_sync_takes_no_time() {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    if !is_in_memory(place.path()) {
        eprintln!("SKIP: /dev/shm is not in memory");
        return;
    }
    let stop = Stop::on_signals().unwrap();
    lay_out(&place.path().join("long"), SMALL_BYTES, 1, &stop).unwrap();
    lay_out(&place.path().join("small"), SMALL_BYTES, 2, &stop).unwrap();
    let (folder, route, least) = (place.path(), RouteChoice::Inline, Duration::from_secs(1));
    let failed = Scene { folder, route, long: Long::Sync, least }.measure(&stop).unwrap_err();
    assert_eq!(failed.to_string(), "fsync(2) is too short here to delay anything");
}

fn has_cachestat(place: &tempfile::TempDir) -> bool {
    let file = std::fs::File::open(place.path().join("long")).unwrap();
    ferry_io::probe::data(&file, 0, 0).is_ok()
}

#[test]
fn a_file_that_cannot_be_prepared_ends_the_run() {
    let place = tempfile::tempdir().unwrap();
    let stop = Stop::on_signals().unwrap();
    lay_out(&place.path().join("small"), SMALL_BYTES, 2, &stop).unwrap();
    std::fs::create_dir(place.path().join("long")).unwrap();
    let (folder, route, least) = (place.path(), RouteChoice::Inline, Duration::from_millis(10));
    let scene = Scene { folder, route, long: Long::Sync, least };
    let why = scene.measure(&stop).unwrap_err().to_string();
    assert!(why.starts_with("cannot prepare '") && why.ends_with("Is a directory"), "{why}");
}
