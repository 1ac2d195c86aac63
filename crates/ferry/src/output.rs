//! Where lines go: standard output, buffered; standard error; and the bar that must not be mixed with them.

use std::io::{BufWriter, IsTerminal, Stdout, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::ProgressBar;

/// The process's standard output and error, shared by all that print.
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
    /// Nothing printed, no bar.
    pub(crate) fn new() -> Self {
        let writer = BufWriter::with_capacity(64 * 1024, std::io::stdout());
        let terminal = writer.get_ref().is_terminal();
        Self { lines: Mutex::new(Lines { writer, terminal, failed: None }), bar: Mutex::new(None) }
    }

    /// A line for standard output. A failure to write is kept for [`Output::finish`].
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

    /// A line for standard error. If that is closed, there is nobody left to tell.
    pub(crate) fn error(&self, text: &str) {
        self.without_bar(|| writeln!(std::io::stderr(), "{text}")).ok();
    }

    /// Asks on standard error, after the lines that come before, without a bar until `answer` is there.
    pub(crate) fn ask(&self, question: &str, answer: impl FnOnce() -> bool) -> bool {
        let mut lines = lock(&self.lines);
        if let Err(error) = lines.writer.flush() {
            lines.failed.get_or_insert(error);
        }
        drop(lines);
        self.without_bar(|| {
            // If standard error is closed, the answer counts all the same.
            std::io::stderr().write_all(question.as_bytes()).ok();
            answer()
        })
    }

    /// The bar to take away while something else is printed.
    pub(crate) fn show(&self, bar: Option<ProgressBar>) {
        *lock(&self.bar) = bar;
    }

    /// Writes what is buffered and tells the first failure to write standard output.
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

/// A lock whose holder panicked protects nothing but lines and bars: it is taken all the same.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
