//! Events of the kernel in real runs.

use std::fs;
use std::path::Path;

use ferry_io::sampling::DeviceKind;
use ferry_io::{Backend, OpenHow, Operation, Options, RingMode, Route, RouteChoice, Tracing, run};
use ferry_trace::model::{Did, Role, Trace};

use crate::program::{FILES, content, traced};

#[test]
fn every_operation_on_a_ring_is_found_among_the_kernels_requests() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    fs::create_dir(&source).expect("a folder");
    for index in 0..FILES {
        fs::write(source.join(index.to_string()), content(index)).expect("a file");
    }
    for ring_mode in [RingMode::Defer, RingMode::Plain] {
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
        let refused = |line: &&String| line.starts_with("nothing of the kernel's side");
        if let Some(why) = trace.about.missing.iter().find(refused) {
            assert!(trace.requests.is_empty() && trace.kernel.is_empty(), "{told}: {why}");
            println!("SKIP: {why}");
            continue;
        }
        assert_eq!(trace.lost.kernel, 0, "{told}");
        let on_ring = trace.operations.iter().filter(|operation| operation.route == Route::Ring);
        let mut found = 0;
        for operation in on_ring {
            let place = operation.request.unwrap_or_else(|| panic!("{told}: {operation:?} has no request"));
            let request = &trace.requests[place as usize];
            assert_eq!(request.thread, operation.thread, "{told}");
            if operation.kind != Operation::Chain {
                assert_eq!(operation.completed, request.completed, "{told}");
            }
            if operation.kind == Operation::Read && !operation.abandoned {
                assert_eq!(request.opcode, "READ", "{told}");
                let result = operation.result.and_then(|result| result.ok());
                assert_eq!(result, request.result.and_then(|result| u64::try_from(result).ok()), "{told}");
            }
            found += 1;
        }
        assert!(found > FILES, "{told}: {found}");
        let submitted: u32 = trace.submissions.iter().map(|submission| submission.requests).sum();
        // Closing a ring takes requests of its own.
        assert!(trace.requests.len() >= submitted as usize, "{told}: all that was submitted was taken");
        let hand_overs =
            trace.kernel.iter().filter(|event| matches!(event.did, Did::HandOver(Some(_)))).count();
        assert!(hand_overs > 0, "{told}: files are made by kernel workers");
        let named = |event: &&ferry_trace::model::KernelEvent| event.chain.is_some();
        let chains = trace.kernel.iter().filter(named).count();
        assert!(chains > 0 && trace.chains.iter().all(|chain| !chain.is_empty()), "{told}");
    }
}

/// Records a run that writes a new file and makes it durable.
fn synced(path: &Path, name: &str) -> Trace {
    let recording = path.join(format!("recording-{name}"));
    let options = Options { trace: Some(Tracing::to(&recording)), ..Options::default() };
    let ran = run(&options, async |io| {
        let folder = io.open_dir(path)?;
        let file = folder.open(&crate::program::name(name), OpenHow::create(0o600)).await?;
        let mut block = io.block().await?;
        block.as_mut_capacity()[..4_096].fill(7);
        block.set_filled(4_096);
        file.write_all_at(block, 1 << 20).await.1?;
        file.sync().await
    });
    ran.expect("it runs").0.expect("the file is written");
    ferry_trace::read::open(&recording).expect("a recording")
}

#[test]
fn requests_of_the_device_beneath_a_run_are_recorded() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    // EXT_SUPER_MAGIC, XFS_SUPER_MAGIC: other filesystems may have no device, or several.
    if ![0xEF53, 0x5846_5342].contains(&rustix::fs::statfs(folder.path()).expect("it is there").f_type) {
        return println!("SKIP: the target folder is on neither ext4 nor XFS");
    }
    let trace = synced(folder.path(), "new");
    let written = trace.operations.iter().find(|operation| operation.kind == Operation::Write);
    let written = written.expect("one is recorded");
    assert_eq!((written.size, written.offset), (4_096, Some(1 << 20)));
    let refused =
        |line: &&String| line.contains("nothing of the kernel's side") || line.contains("block:block_rq");
    if let Some(why) = trace.about.missing.iter().find(refused) {
        return println!("SKIP: {why}");
    }
    let summary = ferry_trace::Summary::of(&trace, 10);
    let devices = summary.devices.expect("syncing writes to the device");
    let bytes: u64 =
        devices.rows.iter().filter(|row| row.kind == DeviceKind::Write).map(|row| row.bytes).sum();
    assert!(bytes >= 4_096 && devices.both <= devices.time, "{devices:?}");
    // Some kernels give no samples of completions on idle processors. Then the recording says so.
    let says_so = trace.about.missing.iter().any(|line| line.contains("completions of block devices"));
    assert!(says_so || devices.both > 0, "{devices:?}\n{:?}", trace.about.missing);
    for request in &trace.device_requests {
        assert_eq!(trace.threads[request.device as usize].role, Role::Device);
        assert!(request.completed.is_none_or(|completed| completed >= request.issued));
    }
}
