//! Recordings of simulated runs with many seeds, faults, cancellations and full buffers.

use ferry_io::sim::{Fault, Settings, World};
use ferry_io::{Errno, Operation, Options, Tracing};
use ferry_trace::model::{Role, ScopeKind};

use crate::program::{FILES, content, traced};

const SEEDS: u64 = 60;

fn world(seed: u64) -> World {
    let mut settings = Settings::default();
    if seed % 3 == 1 {
        settings.faults.push(Fault::by_chance(Operation::Read, 200_000, Errno::IO));
        settings.faults.push(Fault::by_chance(Operation::Open, 100_000, Errno::MFILE));
        settings.faults.push(Fault::by_chance(Operation::Stat, 100_000, Errno::ACCESS));
    }
    let world = World::new(settings);
    world.folder("source").folder("target");
    for index in 0..FILES {
        world.file(format!("source/{index}"), &content(index));
    }
    if seed % 5 == 2 {
        world.meanwhile(40 + seed, World::stop);
    }
    world
}

fn options(world: &World, seed: u64, tracing: Tracing) -> Options {
    Options { trace: Some(tracing), ..world.options(seed) }
}

#[test]
fn every_operation_of_a_simulated_run_has_one_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut abandoned, mut cancelled, mut failed) = (0, 0, 0);
    for seed in 0..SEEDS {
        let file = folder.path().join(format!("{seed}"));
        let options = options(&world(seed), seed, Tracing::to(&file));
        let (trace, recorded, stats) =
            traced(&options, "/source".as_ref(), "/target".as_ref(), &format!("seed {seed}"));
        assert_eq!(recorded.lost, 0, "seed {seed}");
        abandoned += trace.operations.iter().filter(|operation| operation.abandoned).count();
        cancelled += trace.scopes.iter().filter(|scope| scope.cancelled.is_some()).count();
        failed +=
            trace.operations.iter().filter(|operation| matches!(operation.result, Some(Err(_)))).count();
        let of_kind = |kind| trace.scopes.iter().filter(|scope| scope.kind == kind).count();
        let workers = usize::try_from(stats.workers).expect("few");
        assert_eq!(of_kind(ScopeKind::Run), workers, "seed {seed}");
        if seed % 5 != 2 {
            assert_eq!(of_kind(ScopeKind::Scope), 1, "seed {seed}");
            // One for the files, and one for each worker's jobs.
            assert_eq!(of_kind(ScopeKind::ForEach), 1 + workers, "seed {seed}");
            assert!(trace.fibers.iter().any(|fiber| fiber.name == "job 11"), "seed {seed}");
        }
        assert!(trace.threads.iter().all(|thread| thread.tid == 0 && thread.role == Role::Worker));
    }
    assert!(abandoned > 0 && cancelled > 0 && failed > 0, "{abandoned} {cancelled} {failed}");
}

#[test]
fn the_same_seed_gives_the_same_events() {
    let folder = tempfile::tempdir().expect("a folder");
    let events = |seed, file: &str| {
        let options = options(&world(seed), seed, Tracing::to(folder.path().join(file)));
        let (trace, ..) = traced(&options, "/source".as_ref(), "/target".as_ref(), file);
        (trace.operations, trace.fibers, trace.scopes, trace.samples)
    };
    for seed in 0..5 {
        assert_eq!(events(seed, &format!("{seed}a")), events(seed, &format!("{seed}b")), "seed {seed}");
    }
}

#[test]
fn events_without_room_are_lost_and_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut lost = 0;
    for seed in 0..SEEDS {
        let workers = std::num::NonZeroUsize::MIN;
        let file = folder.path().join(format!("{seed}"));
        let tracing = Tracing { spare_buffers: 0, buffer_bytes: 1024, ..Tracing::to(&file) };
        let world = world(seed);
        let options = Options { workers, pool_threads: 1, ..options(&world, seed, tracing) };
        let (trace, recorded, stats) =
            traced(&options, "/source".as_ref(), "/target".as_ref(), &format!("seed {seed}"));
        lost += recorded.lost;
        let total: u64 = ferry_io::Route::ALL.iter().map(|route| stats.by_route(*route)).sum();
        assert!(trace.operations.len() as u64 <= total, "seed {seed}");
    }
    assert!(lost > 0, "with two buffers of a kibibyte the bound was not met");
}
