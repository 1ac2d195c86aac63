//! What each key does, for the timeline and for its help.

use ratatui::crossterm::event::KeyCode;

/// What a key does.
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

/// The keys of an action, how they are called, and what it does.
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

/// All of them, in the help's order.
pub(super) const BINDINGS: [Binding; 20] = [
    binding(&[KeyCode::Left, KeyCode::Char('h')], Action::Back, "← h", "a cell back"),
    binding(&[KeyCode::Right, KeyCode::Char('l')], Action::Forth, "→ l", "a cell forth"),
    binding(&[KeyCode::PageUp, KeyCode::Char('[')], Action::ScrollBack, "PgUp [", "half a screen back"),
    binding(&[KeyCode::PageDown, KeyCode::Char(']')], Action::ScrollForth, "PgDn ]", "half a screen forth"),
    binding(&[KeyCode::Up, KeyCode::Char('k')], Action::Up, "↑ k", "the row above"),
    binding(&[KeyCode::Down, KeyCode::Char('j')], Action::Down, "↓ j", "the row below"),
    binding(&[KeyCode::Char('+'), KeyCode::Char('=')], Action::ZoomIn, "+", "closer"),
    binding(&[KeyCode::Char('-')], Action::ZoomOut, "-", "farther"),
    binding(&[KeyCode::Char('0')], Action::Whole, "0", "the whole recording"),
    binding(&[KeyCode::Home], Action::Start, "Home", "its beginning"),
    binding(&[KeyCode::End], Action::End, "End", "its end"),
    binding(&[KeyCode::Tab], Action::Next, "Tab", "the row's next"),
    binding(&[KeyCode::BackTab], Action::Previous, "Shift-Tab", "the row's previous"),
    binding(&[KeyCode::Char('>'), KeyCode::Char('.')], Action::Shorter, ">", "the next in length"),
    binding(&[KeyCode::Char('<'), KeyCode::Char(',')], Action::Longer, "<", "the next longer"),
    binding(&[KeyCode::Char('/')], Action::Search, "/", "search by name"),
    binding(&[KeyCode::Char('n')], Action::NextFound, "n", "the next found"),
    binding(&[KeyCode::Char('N')], Action::PreviousFound, "N", "the one found before"),
    binding(&[KeyCode::Char('?'), KeyCode::F(1)], Action::Help, "?", "keys and signs"),
    binding(&[KeyCode::Char('q'), KeyCode::Esc], Action::Quit, "q", "quit"),
];

/// What a key does, if it does anything.
pub(super) fn action(code: KeyCode) -> Option<Action> {
    BINDINGS.iter().find(|binding| binding.codes.contains(&code)).map(|binding| binding.action)
}
