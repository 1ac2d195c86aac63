//! SIGINT, SIGTERM and SIGHUP: the first one cancels the run, a second one ends the process.
//!
//! A signal that was ignored when the run began (nohup, a shell's background job) stays ignored. After the run, each
//! signal has its former effect again: it kills the process, unless another handler is installed. The handler itself
//! stays installed, because other crates may share it, so killing is an action of its own.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use signal_hook::{SigId, flag, low_level};

/// The signals that end a run, with the exit code after a second one.
const SIGNALS: [(libc::c_int, i32); 3] = [(libc::SIGINT, 130), (libc::SIGTERM, 143), (libc::SIGHUP, 129)];

#[derive(Default)]
pub(crate) struct Signals {
    /// Set by the first signal; `stop` may have other causes, after which the first signal must not count as the
    /// second.
    came: Arc<AtomicBool>,
    which: Arc<AtomicUsize>,
    registered: Mutex<Vec<SigId>>,
}

impl Signals {
    /// Makes the signals set `stop`.
    pub(crate) fn catch(&self, stop: &Arc<AtomicBool>) -> io::Result<()> {
        let mut registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        if !registered.is_empty() {
            return Ok(());
        }
        catching().change(|runs| runs + 1);
        let caught = self.register(stop, &mut registered);
        if caught.is_err() || registered.is_empty() {
            for id in registered.drain(..) {
                low_level::unregister(id);
            }
            catching().change(|runs| runs - 1);
        }
        caught
    }

    fn register(&self, stop: &Arc<AtomicBool>, registered: &mut Vec<SigId>) -> io::Result<()> {
        for (signal, code) in SIGNALS {
            if is_ignored(signal) {
                continue;
            }
            restore_when_over(signal)?;
            let which = usize::try_from(signal).unwrap_or_default();
            registered.push(flag::register_conditional_shutdown(signal, code, Arc::clone(&self.came))?);
            registered.push(flag::register(signal, Arc::clone(&self.came))?);
            registered.push(flag::register_usize(signal, Arc::clone(&self.which), which)?);
            registered.push(flag::register(signal, Arc::clone(stop))?);
        }
        Ok(())
    }

    pub(crate) fn which(&self) -> Option<i32> {
        i32::try_from(self.which.load(Ordering::SeqCst)).ok().filter(|&signal| signal > 0)
    }

    /// Gives the signals their former effect again.
    pub(crate) fn let_go(&self) {
        let registered = std::mem::take(&mut *self.registered.lock().unwrap_or_else(PoisonError::into_inner));
        if registered.is_empty() {
            return;
        }
        for id in registered {
            low_level::unregister(id);
        }
        catching().change(|runs| runs - 1);
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.let_go();
    }
}

#[derive(Default)]
struct Catching {
    runs: Mutex<usize>,
    is_over: Arc<AtomicBool>,
    restored: Mutex<Vec<libc::c_int>>,
}

fn catching() -> &'static Catching {
    static CATCHING: OnceLock<Catching> = OnceLock::new();
    CATCHING.get_or_init(Catching::default)
}

impl Catching {
    fn change(&self, change: impl FnOnce(usize) -> usize) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        *runs = change(*runs);
        self.is_over.store(*runs == 0, Ordering::SeqCst);
    }
}

/// Restores a signal's default action for the time when no run catches it. Done once, and only if no other handler is
/// installed.
fn restore_when_over(signal: libc::c_int) -> io::Result<()> {
    let catching = catching();
    let mut restored = catching.restored.lock().unwrap_or_else(PoisonError::into_inner);
    if !restored.contains(&signal) && action(signal) == Some(libc::SIG_DFL) {
        flag::register_conditional_default(signal, Arc::clone(&catching.is_over))?;
        restored.push(signal);
    }
    Ok(())
}

/// Returns true if the process ignores a signal, as under nohup or in a shell's background.
///
/// ```
/// // As under nohup(1).
/// println!("SIGHUP is ignored: {}", ferry_io::is_ignored(1));
/// ```
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    action(signal) == Some(libc::SIG_IGN)
}

fn action(signal: libc::c_int) -> Option<libc::sighandler_t> {
    let mut found = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the new action is none, and the old one is written to a structure of its size.
    let answer = unsafe { libc::sigaction(signal, std::ptr::null(), found.as_mut_ptr()) };
    // SAFETY: zero is a valid value of each field, and the kernel has filled them if it could.
    let found = unsafe { found.assume_init() };
    (answer == 0).then_some(found.sa_sigaction)
}
