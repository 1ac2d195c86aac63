//! `ferry trace show --tui`: a recording as a timeline to move about in.
//!
//! The terminal is given back as it was however it ends: by a key, an error, a panic, SIGINT or SIGTERM. What is looked
//! at is `view`'s, what it looks like `draw`'s; here keys and signals are waited for.

mod detail;
mod draw;
mod find;
mod keys;
mod palette;
#[cfg(test)]
mod tests;
mod view;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use ferry_trace::Trace;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use self::palette::Palette;
use self::view::View;

/// So long a signal may have to wait.
const PATIENCE: Duration = Duration::from_millis(100);

/// Whether there is a terminal to draw on and to read keys from; if not, the line to say.
pub(super) fn check() -> Result<(), &'static str> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err("--tui needs a terminal: standard input or output is none");
    }
    if std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb") {
        return Err("--tui needs a terminal that can move its cursor: TERM is dumb");
    }
    Ok(())
}

/// Shows it until it is left.
///
/// # Errors
/// Those of the terminal.
pub(super) fn run(trace: &Trace) -> io::Result<ExitCode> {
    let heeded = [SIGINT, SIGTERM].into_iter().filter(|&signal| !ferry_io::is_ignored(signal));
    let mut signals = Signals::new(heeded)?;
    let mut view = View::new(trace);
    match on_terminal(|terminal| show(&mut view, terminal, &mut signals))? {
        Some(signal) => {
            // Ends the process, so that a shell's loop around it ends too.
            signal_hook::low_level::emulate_default_handler(signal)?;
            Ok(u8::try_from(128 + signal).map_or(ExitCode::FAILURE, ExitCode::from))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Shows something on the terminal, and gives that back as it was.
fn on_terminal<T>(show: impl FnOnce(&mut DefaultTerminal) -> io::Result<T>) -> io::Result<T> {
    // Its hook gives the terminal back before a panic is told.
    let terminal = ratatui::try_init();
    let ended = terminal.and_then(|mut terminal| show(&mut terminal));
    let restored = ratatui::try_restore();
    let shown = ended?;
    restored.map(|()| shown)
}

/// Draws and waits in turn; the signal that ended it, if one did.
fn show(view: &mut View, terminal: &mut DefaultTerminal, signals: &mut Signals) -> io::Result<Option<i32>> {
    let palette = Palette::of_environment();
    let mut has_changed = true;
    loop {
        if let Some(signal) = signals.pending().next() {
            return Ok(Some(signal));
        }
        if has_changed {
            terminal.draw(|frame| draw::draw(view, palette, frame))?;
            has_changed = false;
        }
        // Keys that came meanwhile are taken before it is drawn again.
        let mut patience = PATIENCE;
        while is_ready(patience)? {
            patience = Duration::ZERO;
            has_changed = true;
            if let Event::Key(key) = event::read()? {
                if is_interrupt(key) {
                    return Ok(Some(SIGINT));
                }
                if key.kind != KeyEventKind::Release {
                    view.key(key);
                }
            }
            if view.is_over {
                return Ok(None);
            }
        }
    }
}

/// Whether there is an event to read. A signal ends the wait.
fn is_ready(patience: Duration) -> io::Result<bool> {
    match event::poll(patience) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        other => other,
    }
}

/// Ctrl-C, which a terminal in raw mode makes no signal of.
fn is_interrupt(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}
