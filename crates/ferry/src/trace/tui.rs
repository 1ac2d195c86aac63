//! `ferry trace show --tui`: an interactive timeline of a recording.
//!
//! This module reads keys and signals; `view` holds the state and `draw` draws it. The terminal is restored
//! after a key, an error, a panic, SIGINT or SIGTERM.

mod detail;
mod draw;
mod find;
mod help;
mod keys;
mod palette;
mod put;
mod scale;
#[cfg(test)]
mod tests;
mod view;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use ferry_trace::Trace;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;

use self::palette::Palette;
use self::view::View;
use crate::signals;

/// Longest delay of a signal.
const PATIENCE: Duration = Duration::from_millis(100);

/// Returns the error message if there is no suitable terminal.
pub(super) fn check() -> Result<(), &'static str> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err("--tui needs a terminal as standard input and output");
    }
    if std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb") {
        return Err("--tui needs a terminal that can move its cursor, but TERM is 'dumb'");
    }
    Ok(())
}

/// Runs until the user quits.
///
/// # Errors
/// An error of the terminal.
pub(super) fn run(trace: &Trace) -> io::Result<ExitCode> {
    let mut signals = signals::catch()?;
    let mut view = View::new(trace);
    let ended_by = on_terminal(|terminal| show(&mut view, terminal, &mut signals))?;
    Ok(ended_by.map_or(ExitCode::SUCCESS, signals::end_by))
}

/// Sets up the terminal for `show`, and restores it.
fn on_terminal<T>(show: impl FnOnce(&mut DefaultTerminal) -> io::Result<T>) -> io::Result<T> {
    // try_init's panic hook restores the terminal before the message is printed.
    let terminal = ratatui::try_init();
    let ended = terminal.and_then(|mut terminal| show(&mut terminal));
    let restored = ratatui::try_restore();
    let shown = ended?;
    restored.map(|()| shown)
}

/// Draws and waits in turn; returns the signal that ended it, if any.
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
        // Handle all pending keys before drawing again.
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

/// Waits for an event. A signal ends the wait.
fn is_ready(patience: Duration) -> io::Result<bool> {
    match event::poll(patience) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        other => other,
    }
}

/// Returns true for Ctrl-C, which sends no signal in raw mode.
fn is_interrupt(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}
