use super::*;
use crate::descriptor::Descriptor;
use crate::op::FileOrEntry;

fn router(forced: RouteChoice, has_ring: bool) -> Router {
    Router::new(forced, has_ring, Arc::default())
}

fn stat() -> Op {
    let file = std::fs::File::open("/dev/null").unwrap();
    Op::Stat {
        place: FileOrEntry::Open(Arc::new(Descriptor::Real(file.into()))),
        follow: false,
        birth: false,
    }
}

fn read() -> Op {
    let file = std::fs::File::open("/dev/null").unwrap();
    Op::Read { file: Arc::new(Descriptor::Real(file.into())), block: None, skip: 0, at: 0, size: 1 }
}

#[test]
fn what_can_be_asked_is_asked_first() {
    let router = router(RouteChoice::Auto, true);
    let choice = router.choose(&read(), false);
    assert_eq!((choice.route, choice.patience), (Route::Inline, Patience::Ask));
    assert_eq!(router.missed(&read()).route, Route::Ring);
}

#[test]
fn a_kind_that_waits_goes_to_the_pool() {
    let router = router(RouteChoice::Auto, true);
    assert_eq!(router.choose(&stat(), false).route, Route::Inline);
    router.observe(&stat(), true);
    assert_eq!(router.choose(&stat(), false).route, Route::Inline, "one is chance");
    router.observe(&stat(), true);
    let choice = router.choose(&stat(), false);
    assert_eq!((choice.route, choice.reason), (Route::Pool, Reason::RecentlySlow));
}

#[test]
fn entries_that_are_waited_for_are_examined_a_few_at_a_time() {
    let router = router(RouteChoice::Auto, true);
    let folder = std::fs::File::open("/").unwrap();
    let examine =
        Op::Examine { dir: Arc::new(Descriptor::Real(folder.into())), names: Vec::new(), details: true };
    let device = examine.device();
    router.observe(&examine, true);
    assert!(!router.waits_for_entries(device), "one is chance");
    router.observe(&examine, true);
    assert!(router.waits_for_entries(device));
    router.observe(&examine, false);
    assert!(!router.waits_for_entries(device));
}

#[test]
fn a_kind_that_stopped_waiting_comes_back() {
    let router = router(RouteChoice::Auto, false);
    router.observe(&stat(), true);
    router.observe(&stat(), true);
    let probes = (0..PROBE_EVERY).filter(|_| router.choose(&stat(), false).route == Route::Inline).count();
    assert_eq!(probes, 1);
    router.observe(&stat(), false);
    assert_eq!(router.choose(&stat(), false).route, Route::Inline);
}

#[test]
fn asking_stops_where_it_is_fruitless() {
    let fruitless = Arc::new(Fruitless::default());
    let router = Router::new(RouteChoice::Auto, false, Arc::clone(&fruitless));
    for _ in 0..FRUITLESS {
        fruitless.observe(Duration::from_micros(3));
    }
    let choice = router.choose(&read(), false);
    assert_eq!((choice.route, choice.patience), (Route::Inline, Patience::Wait));
}

/// The answer of a daemon or a server takes long, so the worker must not wait for it.
#[test]
fn asking_goes_on_where_the_call_that_follows_waits() {
    let fruitless = Arc::new(Fruitless::default());
    let router = Router::new(RouteChoice::Auto, false, Arc::clone(&fruitless));
    for _ in 0..10 * FRUITLESS {
        let choice = router.choose(&read(), false);
        assert_eq!((choice.route, choice.patience), (Route::Inline, Patience::Ask));
        assert_eq!(router.missed(&read()).route, Route::Pool);
        fruitless.observe(SLOW);
    }
    // A quick one by chance, then one that waits again.
    for _ in 0..10 * FRUITLESS {
        fruitless.observe(Duration::from_micros(3));
        fruitless.observe(SLOW);
    }
    assert_eq!(router.choose(&read(), false).patience, Patience::Ask);
}

#[test]
fn a_forced_route_is_taken() {
    assert_eq!(router(RouteChoice::Pool, true).choose(&stat(), false).route, Route::Pool);
    assert_eq!(router(RouteChoice::Inline, true).choose(&read(), true).route, Route::Inline);
    assert_eq!(router(RouteChoice::Ring, true).choose(&stat(), false).route, Route::Ring);
    assert_eq!(router(RouteChoice::Ring, false).choose(&stat(), false).reason, Reason::NoRing);
}

#[test]
fn what_overlaps_leaves_the_worker_for_the_pool() {
    assert_eq!(router(RouteChoice::Auto, true).choose(&read(), true).route, Route::Pool);
    assert_eq!(router(RouteChoice::Auto, false).choose(&read(), true).route, Route::Pool);
}

#[test]
fn what_changes_the_filesystem_stays_on_the_worker() {
    let router = router(RouteChoice::Auto, true);
    let file = std::fs::File::open("/dev/null").unwrap();
    let op = Op::Truncate { file: Arc::new(Descriptor::Real(file.into())), size: 0 };
    for _ in 0..16 {
        router.observe(&op, true);
    }
    let choice = router.choose(&op, false);
    assert_eq!((choice.route, choice.reason), (Route::Inline, Reason::Changes));
}

#[test]
fn asking_is_tried_again_after_a_while() {
    let fruitless = Arc::new(Fruitless::default());
    let router = Router::new(RouteChoice::Auto, false, Arc::clone(&fruitless));
    for _ in 0..FRUITLESS {
        fruitless.observe(Duration::from_micros(3));
    }
    let asks = |router: &Router| router.choose(&read(), false).patience == Patience::Ask;
    assert_eq!((0..2 * ASK_AGAIN).filter(|_| asks(&router)).count(), 2);
    router.note_answer();
    assert!(asks(&router));
}

#[test]
fn what_was_asked_and_waits_all_the_same_leaves_the_worker() {
    let router = router(RouteChoice::Auto, false);
    router.observe(&read(), true);
    router.observe(&read(), true);
    assert_eq!(router.choose(&read(), false).reason, Reason::RecentlySlow);
    let probes = (1..PROBE_EVERY).map(|_| router.choose(&read(), false)).filter(|c| c.route == Route::Inline);
    assert_eq!(probes.map(|choice| choice.patience).collect::<Vec<_>>(), [Patience::Ask]);
}

#[test]
fn what_may_wait_without_end_never_waits_on_the_worker() {
    let file = Arc::new(Descriptor::Real(std::fs::File::open("/dev/null").unwrap().into()));
    let op = Op::Read { file, block: None, skip: 0, at: crate::op::AT_POSITION, size: 1 };
    for forced in [RouteChoice::Auto, RouteChoice::Inline, RouteChoice::Ring, RouteChoice::Pool] {
        for has_ring in [false, true] {
            assert_ne!(router(forced, has_ring).choose(&op, false).route, Route::Inline);
        }
    }
}

#[test]
fn copying_a_range_leaves_the_worker_if_the_caller_says_so() {
    let file = || Arc::new(Descriptor::Real(std::fs::File::open("/dev/null").unwrap().into()));
    let router = router(RouteChoice::Auto, true);
    for (leaves, route) in [(false, Route::Inline), (true, Route::Pool)] {
        let (source, target) = (file(), file());
        let op = Op::CopyRange { source, source_at: 0, target, target_at: 0, size: 1 << 20 };
        assert_eq!(router.choose(&op, leaves).route, route);
    }
}

/// A stat(2) on a filesystem with this device number.
fn stat_on(device: u64) -> Op {
    let file = std::fs::File::open("/dev/null").unwrap();
    let file = Descriptor::Real(file.into()).on(device);
    Op::Stat { place: FileOrEntry::Open(Arc::new(file)), follow: false, birth: false }
}

#[test]
fn what_waits_on_one_filesystem_need_not_on_another() {
    let router = router(RouteChoice::Auto, false);
    for _ in 0..2 {
        router.observe(&stat_on(7), true);
    }
    assert_eq!(router.choose(&stat_on(7), false).route, Route::Pool);
    assert_eq!(router.choose(&stat_on(8), false).route, Route::Inline);
}

#[test]
fn filesystems_beyond_those_told_apart_share_a_history() {
    let router = router(RouteChoice::Auto, false);
    let route = |device| router.choose(&stat_on(device), false).route;
    for device in 1..=64 {
        assert_eq!(route(device), Route::Inline);
    }
    for _ in 0..2 {
        router.observe(&stat_on(64), true);
    }
    assert_eq!(
        [1, 3, 4, 5, 63].map(route),
        [Route::Inline, Route::Inline, Route::Pool, Route::Pool, Route::Pool]
    );
}

#[test]
fn without_its_ring_an_operation_goes_to_the_pool() {
    let choice = |reason| Choice { route: Route::Ring, patience: Patience::Wait, reason };
    for (reason, lack, expected) in [
        (Reason::Forced, RingLack::Ring, Reason::NoRing),
        (Reason::Missed, RingLack::Ring, Reason::Missed),
        (Reason::Forced, RingLack::Operation, Reason::NotInRing),
    ] {
        assert_eq!(choice(reason).without_ring(lack), Choice { route: Route::Pool, ..choice(expected) });
    }
}

fn make_directory() -> Op {
    let folder = std::fs::File::open("/").unwrap();
    let name = crate::name::Name::new(b"new").unwrap();
    let mode = rustix::fs::Mode::RWXU;
    Op::MakeDirectory { dir: Arc::new(Descriptor::Real(folder.into())), name, mode }
}

#[test]
fn changes_of_a_local_filesystem_stay_inline_however_slow() {
    let router = router(RouteChoice::Auto, true);
    for _ in 0..20 {
        let choice = router.choose(&make_directory(), false);
        assert_eq!((choice.route, choice.reason), (Route::Inline, Reason::Changes));
        router.observe(&make_directory(), true);
    }
}

#[test]
fn changes_that_wait_for_a_server_go_to_the_pool() {
    let router = router(RouteChoice::Auto, true);
    let op = make_directory();
    router.filesystem(op.device()).is_remote.set(Some(true));
    for _ in 0..2 {
        let choice = router.choose(&op, false);
        assert_eq!((choice.route, choice.reason), (Route::Inline, Reason::RecentlyFast));
        router.observe(&op, true);
    }
    assert_eq!(router.choose(&op, false).route, Route::Pool);
    router.observe(&op, false);
    assert_eq!(router.choose(&op, false).route, Route::Inline, "it does not wait any more");
}
