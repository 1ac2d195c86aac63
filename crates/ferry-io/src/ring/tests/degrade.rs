//! Fallbacks for missing features, and the reasons reported for them.

use std::io::Error as IoError;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use super::setup::{describe, explain, leave_one_out, wanted};
use super::*;
use crate::{Operation, RingFlag};

#[test]
fn flags_are_left_out_one_by_one() {
    let (mut flags, mut left_out) = (wanted(RingMode::Defer), Vec::new());
    while leave_one_out(&mut flags, &mut left_out) {
        let tells = flags.contains(&RingFlag::Taskrun);
        assert_eq!(
            tells,
            flags.contains(&RingFlag::DeferTaskrun) || flags.contains(&RingFlag::CoopTaskrun),
            "{flags:?}"
        );
        assert!(
            !flags.contains(&RingFlag::DeferTaskrun) || flags.contains(&RingFlag::SingleIssuer),
            "{flags:?}"
        );
    }
    assert_eq!(flags, []);
    let said = describe("defer", &left_out).join("; ");
    let names = "NO_SQARRAY, DEFER_TASKRUN, SINGLE_ISSUER, COOP_TASKRUN, SUBMIT_ALL";
    assert_eq!(said, format!("io_uring (defer); without {names}"));
}

#[test]
fn a_polling_thread_is_never_left_out() {
    let (mut flags, mut left_out) = (wanted(RingMode::SqPoll), Vec::new());
    assert!(
        !flags
            .iter()
            .any(|flag| [RingFlag::DeferTaskrun, RingFlag::CoopTaskrun, RingFlag::Taskrun].contains(flag))
    );
    while leave_one_out(&mut flags, &mut left_out) {}
    assert_eq!(flags, [RingFlag::SqPoll]);
}

#[test]
fn a_refusal_names_its_usual_reason() {
    let said = |errno, disabled| explain(&IoError::from_raw_os_error(errno), disabled);
    assert_eq!(said(libc::EPERM, Some(2)), "io_uring is switched off (kernel.io_uring_disabled=2)");
    assert!(said(libc::EPERM, Some(1)).contains("kernel.io_uring_group"));
    assert!(said(libc::EPERM, Some(0)).contains("seccomp"));
    assert!(said(libc::EPERM, None).contains("seccomp"));
    assert!(said(libc::ENOSYS, None).contains("no io_uring"));
    assert!(said(libc::ENOMEM, None).contains("ulimit -l"));
    assert!(said(libc::EMFILE, None).contains("descriptor"));
}

#[test]
fn polled_completions_are_refused_without_poll_queues() {
    let options = Options { backend: Backend::Auto, ring_mode: RingMode::IoPoll, ..ring_options() };
    match run(&options, async |_| ()) {
        Err(SetupError::NoRingMode { mode: "iopoll", reason }) => assert!(reason.contains("poll queues")),
        Err(SetupError::NoUring { reason }) => eprintln!("SKIP: {reason}"),
        answer => eprintln!("SKIP: a device here has poll queues: {answer:?}"),
    }
}

/// Runs one test of this binary again in a child changed by `prepare`; returns its output.
fn in_child(test: &str, prepare: impl Fn(&mut Command)) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("ring::tests::degrade::{test}"), "--nocapture"]);
    command.env("FERRY_TEST_CHILD", "1").stdin(Stdio::null());
    prepare(&mut command);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn is_child() -> bool {
    std::env::var_os("FERRY_TEST_CHILD").is_some()
}

/// Makes io_uring_setup(2) fail with EPERM in this process from now on, as container runtimes do.
fn forbid_io_uring() -> std::io::Result<()> {
    let setup = u32::try_from(libc::SYS_io_uring_setup).unwrap_or(u32::MAX);
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
    let filter = |code: u32, jt, jf, k| {
        let code = u16::try_from(code).unwrap_or(0);
        libc::sock_filter { code, jt, jf, k }
    };
    let mut program = [
        filter(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        filter(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, setup),
        filter(libc::BPF_RET | libc::BPF_K, 0, 0, refuse),
        filter(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: program.as_mut_ptr() };
    // SAFETY: takes only integers.
    let no_new_privileges = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program has four instructions and is only read.
    let installed =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    if no_new_privileges == 0 && installed == 0 { Ok(()) } else { Err(IoError::last_os_error()) }
}

#[test]
fn a_seccomp_filter_means_the_posix_backend() {
    if !is_child() {
        let said = in_child("a_seccomp_filter_means_the_posix_backend", |command| {
            // SAFETY: between fork and exec only prctl(2) is called, and no memory is allocated.
            unsafe { command.pre_exec(forbid_io_uring) };
        });
        assert!(said.contains("posix: io_uring is forbidden (EPERM)"), "{said}");
        assert!(said.contains("observed: posix: io_uring is forbidden (EPERM)"), "{said}");
        assert!(said.contains("required: io_uring is forbidden (EPERM)"), "{said}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("source"), pattern(100_000)).unwrap();
    let options = Options { backend: Backend::Auto, block_size: 4096, ..ring_options() };
    let ((), stats) = in_folder(&options, folder.path(), async |io, dir| copy(io, &dir, "target", 8).await);
    assert_eq!(fs::read(folder.path().join("target")).unwrap(), pattern(100_000));
    println!("{}: {}", stats.backend, stats.backend_reason);
    let options = Options { observe: true, route: RouteChoice::Auto, ..options };
    let ((), stats) = run(&options, async |_| ()).unwrap();
    println!("observed: {}: {}", stats.backend, stats.backend_reason);
    let refused = run(&ring_options(), async |_| ()).unwrap_err();
    println!("required: {refused}");
}

#[test]
fn refused_registered_buffers_are_said() {
    if !has_ring() {
        return;
    }
    if !is_child() {
        if !crate::is_superuser() {
            eprintln!("SKIP: only root can become another user");
            return;
        }
        let said = in_child("refused_registered_buffers_are_said", |command| lock_at_most(1 << 20, command));
        assert!(
            said.contains("without registered buffers (ENOMEM; locked memory is limited to 1024 KiB"),
            "{said}"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("source"), pattern(1_000_000)).unwrap();
    let options = Options { registered_buffers: true, ..ring_options() };
    let ((), stats) = in_folder(&options, folder.path(), async |io, dir| copy(io, &dir, "target", 4).await);
    assert_eq!(fs::read(folder.path().join("target")).unwrap(), pattern(1_000_000));
    println!("{}: {}", stats.backend, stats.backend_reason);
}

#[test]
fn a_ring_that_memory_is_short_for_is_made_smaller() {
    if !has_ring() {
        return;
    }
    if !is_child() {
        if !crate::is_superuser() {
            eprintln!("SKIP: only root can become another user");
            return;
        }
        let said = in_child("a_ring_that_memory_is_short_for_is_made_smaller", |command| {
            lock_at_most(256 << 10, command);
        });
        assert!(said.contains("uring: io_uring (defer); queue depth "), "{said}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("source"), pattern(1_000_000)).unwrap();
    let options = Options { queue_depth: 4096, block_size: 4096, ..ring_options() };
    let ((), stats) = in_folder(&options, folder.path(), async |io, dir| copy(io, &dir, "target", 64).await);
    assert_eq!(fs::read(folder.path().join("target")).unwrap(), pattern(1_000_000));
    println!("{}: {}", stats.backend, stats.backend_reason);
}

/// Makes the child another user whose limit of locked memory is `bytes`.
fn lock_at_most(bytes: u64, command: &mut Command) {
    command.uid(61_234).gid(61_234).env("TMPDIR", "/dev/shm");
    // SAFETY: between fork and exec only setrlimit(2) is called, and no memory is allocated.
    unsafe {
        command.pre_exec(move || {
            let limit = rustix::process::Rlimit { current: Some(bytes), maximum: Some(bytes) };
            rustix::process::setrlimit(rustix::process::Resource::Memlock, limit).map_err(IoError::from)
        })
    };
}

#[test]
fn hand_overs_to_kernel_workers_are_counted() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let options = Options { observe: true, ..ring_options() };
    let ((), stats) = in_folder(&options, folder.path(), async |_, dir| {
        for index in 0..50_u32 {
            dir.make_dir(&name(&index.to_string()), 0o700).await.unwrap();
        }
    });
    match stats.kernel_worker_handovers {
        Some(count) => assert_eq!(count, 50, "io_uring makes folders only in its workers"),
        None => eprintln!("SKIP: this user may not count tracepoints"),
    }
    let quiet = Options { observe: false, ..options };
    let ((), stats) = run(&quiet, async |_| ()).unwrap();
    assert_eq!(stats.kernel_worker_handovers, None);
}

#[test]
fn what_was_not_needed_is_probed_if_asked() {
    if !has_ring() {
        return;
    }
    let auto = Options { backend: Backend::Auto, route: RouteChoice::Auto, observe: true, ..ring_options() };
    let ((), stats) = run(&auto, async |_| ()).unwrap();
    let said = (stats.backend, stats.backend_reason.as_str());
    assert_eq!(said, ("uring", "available, but no operation blocked"));
}

#[test]
fn an_operation_that_the_kernel_lacks_goes_to_the_pool() {
    if !has_ring() {
        return;
    }
    let shared = Shared::open(&ring_options()).unwrap();
    let inbox = Arc::new(Inbox::of_this_thread());
    let mut ring = Ring::open(&shared, &inbox).unwrap();
    assert!(ring.can(Operation::Read) && !ring.can(Operation::ReadLink));
}
