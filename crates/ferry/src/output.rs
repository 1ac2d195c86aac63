//! Buffered standard output and standard error, kept apart from the progress bar.

use std::io::{BufWriter, IsTerminal, Stdout, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::ProgressBar;

pub(crate) struct Output {
    lines: Mutex<Lines>,
    bar: Mutex<Option<ProgressBar>>,
}

struct Lines {
    writer: BufWriter<Stdout>,
    terminal: bool,
    failed: Option<std::io::Error>,
}

impl Output {
    pub(crate) fn new() -> Self {
        let writer = BufWriter::with_capacity(64 * 1024, std::io::stdout());
        let terminal = writer.get_ref().is_terminal();
        Self { lines: Mutex::new(Lines { writer, terminal, failed: None }), bar: Mutex::new(None) }
    }

    /// Prints a line to standard output; [`Output::finish`] returns the first error.
    pub(crate) fn line(&self, text: &(impl AsRef<[u8]> + ?Sized)) {
        let mut lines = lock(&self.lines);
        let write = |lines: &mut Lines| {
            let written = lines.writer.write_all(text.as_ref()).and_then(|()| lines.writer.write_all(b"\n"));
            if lines.terminal { written.and_then(|()| lines.writer.flush()) } else { written }
        };
        let written = if lines.terminal { self.without_bar(|| write(&mut lines)) } else { write(&mut lines) };
        if let Err(error) = written {
            lines.failed.get_or_insert(error);
        }
    }

    pub(crate) fn error(&self, text: &str) {
        self.without_bar(|| writeln!(std::io::stderr(), "{text}")).ok();
    }

    /// Asks on standard error after flushing standard output; hides the bar until `answer` returns.
    pub(crate) fn ask(&self, question: &str, answer: impl FnOnce() -> bool) -> bool {
        let mut lines = lock(&self.lines);
        if let Err(error) = lines.writer.flush() {
            lines.failed.get_or_insert(error);
        }
        drop(lines);
        self.without_bar(|| {
            // If standard error is closed, the answer still counts.
            std::io::stderr().write_all(question.as_bytes()).ok();
            answer()
        })
    }

    pub(crate) fn show(&self, bar: Option<ProgressBar>) {
        *lock(&self.bar) = bar;
    }

    /// Flushes and returns the first error of standard output.
    pub(crate) fn finish(&self) -> std::io::Result<()> {
        let mut lines = lock(&self.lines);
        let flushed = lines.writer.flush();
        lines.failed.take().map_or(flushed, Err)
    }

    fn without_bar<T>(&self, print: impl FnOnce() -> T) -> T {
        match &*lock(&self.bar) {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

/// Message of an error, without the number that std adds.
pub(crate) fn describe(error: &std::io::Error) -> String {
    match rustix::io::Errno::from_io_error(error) {
        Some(errno) => ferry_io::Cause::Errno(errno).to_string(),
        None => error.to_string(),
    }
}

/// Locks a mutex even if it is poisoned: it protects only lines and bars.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
