//! Buffered standard output, or a file in its place, and standard error, kept apart from the progress bar.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use indicatif::ProgressBar;

use crate::layout::Screen;

pub(crate) struct Output {
    lines: Mutex<Lines>,
    bar: Mutex<Option<ProgressBar>>,
    /// The terminal of standard error, as it was when something was first printed on it.
    screen: OnceLock<Option<Screen>>,
    /// Rows that were printed on that terminal.
    rows: AtomicUsize,
}

struct Lines {
    writer: BufWriter<Box<dyn Write + Send>>,
    /// Set if standard output is a terminal.
    terminal: bool,
    /// Set if a file takes the place of standard output.
    is_file: bool,
    failed: Option<std::io::Error>,
}

impl Output {
    pub(crate) fn new() -> Self {
        let terminal = std::io::stdout().is_terminal();
        Self::of(Box::new(std::io::stdout()), terminal, false)
    }

    /// Takes a file in the place of standard output.
    pub(crate) fn of_file(file: File) -> Self {
        Self::of(Box::new(file), false, true)
    }

    fn of(writer: Box<dyn Write + Send>, terminal: bool, is_file: bool) -> Self {
        let writer = BufWriter::with_capacity(64 * 1024, writer);
        let lines = Mutex::new(Lines { writer, terminal, is_file, failed: None });
        Self { lines, bar: Mutex::new(None), screen: OnceLock::new(), rows: AtomicUsize::new(0) }
    }

    /// Returns the number of columns of the lines.
    pub(crate) fn columns(&self) -> usize {
        if lock(&self.lines).is_file { Screen::USUAL.columns } else { columns() }
    }

    /// Prints a line to standard output, or the file; [`Output::finish`] returns the first error.
    pub(crate) fn line(&self, text: &(impl AsRef<[u8]> + ?Sized)) {
        let mut lines = lock(&self.lines);
        let write = |lines: &mut Lines| {
            let written = lines.writer.write_all(text.as_ref()).and_then(|()| lines.writer.write_all(b"\n"));
            if lines.terminal { written.and_then(|()| lines.writer.flush()) } else { written }
        };
        let written = if lines.terminal {
            self.count_rows(text.as_ref());
            self.without_bar(|| write(&mut lines))
        } else {
            write(&mut lines)
        };
        if let Err(error) = written {
            lines.failed.get_or_insert(error);
        }
    }

    pub(crate) fn error(&self, text: &str) {
        self.count_rows(text.as_bytes());
        self.without_bar(|| writeln!(std::io::stderr(), "{text}")).ok();
    }

    /// Asks on standard error after flushing standard output; hides the bar until `answer` returns.
    pub(crate) fn ask(&self, question: &str, answer: impl FnOnce() -> bool) -> bool {
        let mut lines = lock(&self.lines);
        if let Err(error) = lines.writer.flush() {
            lines.failed.get_or_insert(error);
        }
        drop(lines);
        self.count_rows(question.as_bytes());
        self.without_bar(|| {
            // If standard error is closed, the answer still counts.
            std::io::stderr().write_all(question.as_bytes()).ok();
            answer()
        })
    }

    pub(crate) fn show(&self, bar: Option<ProgressBar>) {
        *lock(&self.bar) = bar;
    }

    /// Flushes and returns the first error of standard output, or the file.
    pub(crate) fn finish(&self) -> std::io::Result<()> {
        let mut lines = lock(&self.lines);
        let flushed = lines.writer.flush();
        lines.failed.take().map_or(flushed, Err)
    }

    /// Returns the number of columns of lines on standard error.
    pub(crate) fn error_columns(&self) -> usize {
        self.screen().unwrap_or(Screen::USUAL).columns
    }

    /// Returns the terminal of standard error, if it leads to one.
    pub(crate) fn screen(&self) -> Option<Screen> {
        *self.screen.get_or_init(|| Screen::of(std::io::stderr()))
    }

    /// Returns the number of rows that were printed on the terminal of standard error, by both streams. A terminal of
    /// standard output counts as the same one.
    pub(crate) fn rows(&self) -> usize {
        self.rows.load(Ordering::Relaxed)
    }

    fn count_rows(&self, text: &[u8]) {
        if let Some(screen) = self.screen() {
            self.rows.fetch_add(screen.rows_of(&String::from_utf8_lossy(text)), Ordering::Relaxed);
        }
    }

    fn without_bar<T>(&self, print: impl FnOnce() -> T) -> T {
        match &*lock(&self.bar) {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

/// Returns the number of columns of lines on standard output.
pub(crate) fn columns() -> usize {
    Screen::of(std::io::stdout()).unwrap_or(Screen::USUAL).columns
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
