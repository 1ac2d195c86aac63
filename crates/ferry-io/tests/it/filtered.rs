//! A thread whose system calls a seccomp(2) filter answers, for itself and the threads it starts.

use ferry_io::Errno;

/// The answer to a call; `None` is success with value 0.
pub(crate) type Answer = Option<Errno>;

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const ANSWER: u32 = 0x0005_0000;

/// Runs `test` with the answers to `calls`; `None` where filters are unavailable.
pub(crate) fn answering<T: Send>(
    calls: &[(libc::c_long, Answer)],
    test: impl FnOnce() -> T + Send,
) -> Option<T> {
    let mut filter = vec![instruction(LOAD, 0, 0, 0)];
    for &(call, answer) in calls {
        let call = u32::try_from(call).expect("a system call's number");
        let errno = answer.map_or(0, |errno| errno.raw_os_error().cast_unsigned());
        filter.push(instruction(JUMP_IF_EQUAL, 0, 1, call));
        filter.push(instruction(RETURN, 0, 0, ANSWER | errno));
    }
    filter.push(instruction(RETURN, 0, 0, ALLOW));
    let ran = std::thread::scope(|threads| threads.spawn(|| set(&mut filter).then(test)).join());
    let ran = ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    if ran.is_none() {
        println!("SKIP no seccomp filter can be set");
    }
    ran
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// Sets the calling thread's filter.
fn set(filter: &mut [libc::sock_filter]) -> bool {
    let size = u16::try_from(filter.len()).expect("a short filter");
    let program = libc::sock_fprog { len: size, filter: filter.as_mut_ptr() };
    // SAFETY: takes only integers.
    let denied = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program and its instructions outlive the call, which copies them.
    let refused = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    denied == 0 && refused == 0
}
