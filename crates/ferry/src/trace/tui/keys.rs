//! Keys of the timeline, and their help.

use ratatui::crossterm::event::KeyCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    Help,
    Back,
    Forth,
    ScrollBack,
    ScrollForth,
    Up,
    Down,
    ZoomIn,
    ZoomOut,
    Whole,
    Start,
    End,
    Next,
    Previous,
    Shorter,
    Longer,
    Search,
    NextFound,
    PreviousFound,
}

/// Keys of an action, their names and their help.
pub(super) struct Binding {
    pub(super) codes: &'static [KeyCode],
    pub(super) action: Action,
    pub(super) names: &'static str,
    pub(super) what: &'static str,
}

const fn binding(
    codes: &'static [KeyCode],
    action: Action,
    names: &'static str,
    what: &'static str,
) -> Binding {
    Binding { codes, action, names, what }
}

/// All keys in the order of the help.
pub(super) const BINDINGS: [Binding; 20] = [
    binding(&[KeyCode::Left, KeyCode::Char('h')], Action::Back, "← h", "one cell left"),
    binding(&[KeyCode::Right, KeyCode::Char('l')], Action::Forth, "→ l", "one cell right"),
    binding(&[KeyCode::PageUp, KeyCode::Char('[')], Action::ScrollBack, "PgUp [", "half a screen left"),
    binding(&[KeyCode::PageDown, KeyCode::Char(']')], Action::ScrollForth, "PgDn ]", "half a screen right"),
    binding(&[KeyCode::Up, KeyCode::Char('k')], Action::Up, "↑ k", "row above"),
    binding(&[KeyCode::Down, KeyCode::Char('j')], Action::Down, "↓ j", "row below"),
    binding(&[KeyCode::Char('+'), KeyCode::Char('=')], Action::ZoomIn, "+", "zoom in"),
    binding(&[KeyCode::Char('-')], Action::ZoomOut, "-", "zoom out"),
    binding(&[KeyCode::Char('0')], Action::Whole, "0", "whole recording"),
    binding(&[KeyCode::Home], Action::Start, "Home", "start of the recording"),
    binding(&[KeyCode::End], Action::End, "End", "end of the recording"),
    binding(&[KeyCode::Tab], Action::Next, "Tab", "next item of the row"),
    binding(&[KeyCode::BackTab], Action::Previous, "Shift-Tab", "previous item of the row"),
    binding(&[KeyCode::Char('>'), KeyCode::Char('.')], Action::Shorter, ">", "next shorter item"),
    binding(&[KeyCode::Char('<'), KeyCode::Char(',')], Action::Longer, "<", "next longer item"),
    binding(&[KeyCode::Char('/')], Action::Search, "/", "search by name"),
    binding(&[KeyCode::Char('n')], Action::NextFound, "n", "next match"),
    binding(&[KeyCode::Char('N')], Action::PreviousFound, "N", "previous match"),
    binding(&[KeyCode::Char('?'), KeyCode::F(1)], Action::Help, "?", "keys and symbols"),
    binding(&[KeyCode::Char('q'), KeyCode::Esc], Action::Quit, "q", "quit"),
];

pub(super) fn action(code: KeyCode) -> Option<Action> {
    BINDINGS.iter().find(|binding| binding.codes.contains(&code)).map(|binding| binding.action)
}
