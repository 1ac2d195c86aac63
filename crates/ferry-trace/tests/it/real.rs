//! Recordings of real runs, on each backend and route.

use std::fs;

use ferry_io::{Backend, Options, RingMode, Route, RouteChoice, SetupError, Tracing, run};
use ferry_trace::model::CompletionMet;

use crate::program::{FILES, content, traced};

#[test]
fn a_real_run_is_recorded_whole_on_every_backend_and_route() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    fs::create_dir(&source).expect("a folder");
    for index in 0..FILES {
        fs::write(source.join(index.to_string()), content(index)).expect("a file");
    }
    let routes = [RouteChoice::Auto, RouteChoice::Inline, RouteChoice::Ring, RouteChoice::Pool];
    for (backend, route) in [Backend::Uring, Backend::Posix].into_iter().flat_map(|b| routes.map(|r| (b, r)))
    {
        let told = format!("{backend:?} {route:?}");
        let base = Options { backend, route, queue_depth: 4, ..Options::default() };
        if let Err(SetupError::NoUring { reason }) = run(&base, async |_| ()) {
            println!("SKIP: {reason}");
            continue;
        }
        fs::create_dir(&target).expect("a folder");
        let trace = Some(Tracing::to(folder.path().join(&told)));
        let (trace, recorded, stats) = traced(&Options { trace, ..base }, &source, &target, &told);
        fs::remove_dir_all(&target).expect("it is there");
        assert_eq!(recorded.lost, 0, "{told}");
        assert_eq!(trace.about.backend, stats.backend, "{told}");
        let on_ring = trace.operations.iter().filter(|operation| operation.route == Route::Ring);
        for operation in on_ring {
            assert!(operation.submission.is_some() && operation.met.is_some(), "{told}: {operation:?}");
        }
        let on_pool = trace.operations.iter().filter(|operation| operation.route == Route::Pool);
        for operation in on_pool.filter(|operation| matches!(operation.result, Some(Ok(_)))) {
            assert!(operation.ran_on.is_some() && operation.completed.is_some(), "{told}: {operation:?}");
        }
        let forced = match (backend, route) {
            (Backend::Uring, RouteChoice::Ring) => Some(Route::Ring),
            (_, RouteChoice::Pool) => Some(Route::Pool),
            _other => None,
        };
        if let Some(route) = forced {
            assert!(trace.operations.iter().any(|operation| operation.route == route), "{told}");
        }
        assert!(trace.fibers.iter().any(|fiber| fiber.name == "7"), "{told}");
        assert!(trace.operations.iter().any(|operation| operation.name == "7"), "{told}");
    }
}

#[test]
fn each_ring_mode_tells_how_its_completions_were_met() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    fs::create_dir(&source).expect("a folder");
    for index in 0..FILES {
        fs::write(source.join(index.to_string()), content(index)).expect("a file");
    }
    for ring_mode in [RingMode::Defer, RingMode::Coop, RingMode::Plain, RingMode::SqPoll] {
        let told = format!("{ring_mode:?}");
        let base =
            Options { backend: Backend::Uring, route: RouteChoice::Ring, ring_mode, ..Options::default() };
        if let Err(error) = run(&base, async |_| ()) {
            println!("SKIP: {error}");
            continue;
        }
        fs::create_dir(&target).expect("a folder");
        let trace = Some(Tracing::to(folder.path().join(&told)));
        let (trace, ..) = traced(&Options { trace, ..base }, &source, &target, &told);
        fs::remove_dir_all(&target).expect("it is there");
        assert!(!trace.submissions.is_empty() && !trace.enters.is_empty(), "{told}");
        let slept =
            trace.operations.iter().filter(|operation| operation.met == Some(CompletionMet::Slept)).count();
        if trace.enters.iter().all(|enter| !enter.slept) {
            assert_eq!(slept, 0, "{told}");
        }
        let refused = |line: &&String| line.starts_with("nothing of the kernel's side");
        if let Some(why) = trace.about.missing.iter().find(refused) {
            println!("SKIP: {why}");
            continue;
        }
        for operation in
            trace.operations.iter().filter(|operation| operation.met == Some(CompletionMet::Slept))
        {
            let at = operation.completed.expect("the kernel has recorded it");
            let mut enters = trace.enters.iter().filter(|enter| enter.thread == operation.thread);
            let within = enters.find(|enter| (enter.began..=enter.ended).contains(&at));
            assert!(within.is_none_or(|enter| enter.slept), "{told}: {operation:?} in {within:?}");
        }
    }
}

#[test]
fn further_runs_record_to_names_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace");
    let options = Options { trace: Some(Tracing::to(&file)), ..Options::default() };
    let recorded: Vec<_> = (0..3)
        .map(|_| run(&options, async |_| ()).expect("it runs").1.trace.expect("it is recorded").file)
        .collect();
    assert_eq!(recorded, [file.clone(), folder.path().join("trace.2"), folder.path().join("trace.3")]);
    for file in recorded {
        ferry_trace::read::open(&file).expect("a recording");
    }
}

#[test]
fn a_number_that_is_asked_for_is_the_first_that_is_free() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("t.2"), "somebody's").expect("a file");
    let options = Options { trace: Some(Tracing::to(folder.path().join("t.%n"))), ..Options::default() };
    let run = || run(&options, async |_| ()).expect("it runs").1.trace.expect("it is recorded").file;
    assert_eq!([run(), run()], ["t.1", "t.3"].map(|name| folder.path().join(name)));
    assert_eq!(fs::read_to_string(folder.path().join("t.2")).expect("it is there"), "somebody's");
}

#[test]
fn only_a_recording_is_replaced_and_links_are_not_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("text");
    fs::write(&text, "not a recording").expect("a file");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("beyond", &link).expect("a link");
    let refused = |file: &std::path::Path| {
        let options = Options { trace: Some(Tracing::to(file)), ..Options::default() };
        run(&options, async |_| ()).expect_err("it is refused").to_string()
    };
    assert!(refused(&text).ends_with("text': it exists and is no recording"), "{}", refused(&text));
    assert_eq!(fs::read_to_string(&text).expect("it is there"), "not a recording");
    assert!(refused(&link).contains("symbolic links"), "{}", refused(&link));
    assert!(!folder.path().join("beyond").exists());
    assert!(refused(folder.path()).contains("Is a directory"));
    let fifo = folder.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a FIFO");
    assert!(refused(&fifo).ends_with("it exists and is no recording"), "{}", refused(&fifo));
}

#[test]
fn a_disk_without_room_costs_events_and_not_the_run() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIP: mounting needs root");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let data = c"size=160k";
    let flags = rustix::mount::MountFlags::empty();
    if let Err(errno) = rustix::mount::mount("tmpfs", folder.path(), "tmpfs", flags, Some(data)) {
        println!("SKIP: mounting a tmpfs: {errno}");
        return;
    }
    let file = folder.path().join("trace");
    let options = Options { trace: Some(Tracing::to(&file)), ..Options::default() };
    let ran = run(&options, async |io| {
        let proc = io.open_dir("/proc/self".as_ref()).expect("it is there");
        for _ in 0..40_000 {
            proc.stat_entry(&crate::program::name("stat"), false).await.expect("it is there");
        }
    });
    let read = ferry_trace::read::open(&file);
    rustix::mount::unmount(folder.path(), rustix::mount::UnmountFlags::empty()).expect("nobody uses it");
    let recorded = ran.expect("the run goes on").1.trace.expect("it is recorded");
    assert_eq!(recorded.failure, Some(ferry_io::Errno::NOSPC));
    assert!(recorded.is_whole && recorded.lost > 0 && recorded.events > 0, "{recorded:?}");
    let trace = read.expect("a recording");
    assert_eq!((trace.lost.program, trace.operations.len() as u64 > 0), (recorded.lost, true));
}
