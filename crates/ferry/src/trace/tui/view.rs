//! State of the timeline (time window, cursor, row) and the effect of keys on it.
//!
//! This module knows the terminal only by its number of cells, which `draw` sets.

use std::ops::Range;

use ferry_trace::model::{Nanos, Trace};
use ferry_trace::timeline::{Item, Timeline, extent};
use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::keys::{Action, action};

pub(super) const SEARCHED: usize = 200;
/// A jump makes an item fill one part in this many of the window.
const ROOM: Nanos = 4;

pub(super) struct View<'t> {
    pub(super) trace: &'t Trace,
    pub(super) timeline: Timeline,
    pub(super) window: Range<Nanos>,
    pub(super) cursor: Nanos,
    pub(super) row: usize,
    pub(super) top: usize,
    /// Item that was jumped to, until the cursor leaves it.
    pub(super) chosen: Option<Item>,
    /// Rank of the last jump among the longest items.
    rank: Option<usize>,
    pub(super) search: String,
    pub(super) is_typing: bool,
    /// Page of the help that is shown, and the number of its pages on this terminal.
    pub(super) help: Option<usize>,
    pub(super) help_pages: usize,
    pub(super) message: String,
    pub(super) is_over: bool,
    /// Number of cells per row and of rows on the screen.
    pub(super) cells: u16,
    pub(super) height: u16,
}

impl<'t> View<'t> {
    pub(super) fn new(trace: &'t Trace) -> Self {
        let timeline = Timeline::of(trace);
        Self {
            window: 0..timeline.took.max(1),
            timeline,
            trace,
            cursor: 0,
            row: 0,
            top: 0,
            chosen: None,
            rank: None,
            search: String::new(),
            is_typing: false,
            help: None,
            help_pages: 1,
            message: String::new(),
            is_over: false,
            cells: 1,
            height: 1,
        }
    }

    pub(super) fn cell(&self, index: u16) -> Range<Nanos> {
        let border = |index: u16| {
            let part = u128::from(self.length()) * u128::from(index) / u128::from(self.cells.max(1));
            self.window.start + Nanos::try_from(part).unwrap_or(Nanos::MAX)
        };
        let start = border(index);
        start..border(index.saturating_add(1)).max(start + 1)
    }

    /// Last cell that starts at or before `at`.
    pub(super) fn cell_of(&self, at: Nanos) -> u16 {
        let cells = u128::from(self.cells.max(1));
        let offset = u128::from(at.saturating_sub(self.window.start));
        // The next cell's index, minus one.
        let index = ((offset + 1) * cells).div_ceil(u128::from(self.length().max(1))).saturating_sub(1);
        u16::try_from(index).unwrap_or(u16::MAX).min(self.cells.saturating_sub(1))
    }

    fn length(&self) -> Nanos {
        self.window.end - self.window.start
    }

    /// Sets the size of the screen, and scrolls to the cursor.
    pub(super) fn resize(&mut self, cells: u16, height: u16) {
        (self.cells, self.height) = (cells.max(1), height.max(1));
        let height = usize::from(self.height);
        self.top = self.top.clamp((self.row + 1).saturating_sub(height), self.row);
        let most = self.timeline.rows.len().saturating_sub(height);
        self.top = self.top.min(most.max(self.row.saturating_sub(height - 1)));
    }

    pub(super) fn key(&mut self, key: KeyEvent) {
        self.message.clear();
        if self.is_typing {
            return self.typed(key.code);
        }
        if let Some(page) = self.help.take() {
            let is_last = page + 1 >= self.help_pages || action(key.code) == Some(Action::Quit);
            self.help = (!is_last).then_some(page + 1);
            return;
        }
        if let Some(action) = action(key.code) {
            self.act(action);
        }
    }

    fn typed(&mut self, code: KeyCode) {
        if let KeyCode::Char(c) = code {
            if self.search.chars().count() < SEARCHED {
                self.search.push(c);
            }
        } else if code == KeyCode::Backspace {
            self.search.pop();
        } else if code == KeyCode::Enter {
            self.is_typing = false;
            self.find(true, true);
        } else if code == KeyCode::Esc {
            self.is_typing = false;
        }
    }

    fn act(&mut self, action: Action) {
        let half = (self.length() / 2).max(1);
        match action {
            Action::Quit => self.is_over = true,
            Action::Help => self.help = Some(0),
            Action::Back => self.step(false),
            Action::Forth => self.step(true),
            Action::ScrollBack => self.go_to(self.cursor.saturating_sub(half)),
            Action::ScrollForth => self.go_to(self.cursor.saturating_add(half)),
            Action::Up => self.row = self.row.saturating_sub(1),
            Action::Down => self.row = (self.row + 1).min(self.timeline.rows.len().saturating_sub(1)),
            Action::ZoomIn => self.zoom(half),
            Action::ZoomOut => self.zoom(self.length().saturating_mul(2)),
            Action::Whole => self.window = 0..self.timeline.took.max(1),
            Action::Start => self.go_to(0),
            Action::End => self.go_to(Nanos::MAX),
            Action::Next => self.neighbour(true),
            Action::Previous => self.neighbour(false),
            Action::Shorter => self.longest(true),
            Action::Longer => self.longest(false),
            Action::Search => {
                self.search.clear();
                self.is_typing = true;
            }
            Action::NextFound => self.find(true, false),
            Action::PreviousFound => self.find(false, false),
        }
        if matches!(action, Action::Up | Action::Down) {
            self.chosen = None;
        }
    }

    /// Moves by one cell; scrolls at the borders.
    fn step(&mut self, is_forth: bool) {
        let here = self.cell(self.cell_of(self.cursor));
        let length = here.end - here.start;
        self.go_to(if is_forth { here.end } else { here.start.saturating_sub(length) });
    }

    /// Moves the cursor, and scrolls if it leaves the window.
    fn go_to(&mut self, at: Nanos) {
        self.chosen = None;
        self.cursor = at.min(self.timeline.took.saturating_sub(1));
        let length = self.length();
        if self.cursor < self.window.start {
            self.look_from(self.cursor.saturating_sub(length / 4), length);
        } else if self.cursor >= self.window.end {
            self.look_from((self.cursor + 1).saturating_sub(length - length / 4), length);
        }
    }

    /// Sets the window's length; the cursor keeps its place on the screen.
    fn zoom(&mut self, length: Nanos) {
        let whole = self.timeline.took.max(1);
        // A cell shows at least a nanosecond.
        let length = length.clamp(Nanos::from(self.cells).min(whole), whole);
        let before = u128::from(self.cursor - self.window.start) * u128::from(length);
        let before = before.checked_div(u128::from(self.length())).unwrap_or(0);
        self.look_from(self.cursor.saturating_sub(Nanos::try_from(before).unwrap_or(0)), length);
    }

    fn look_from(&mut self, start: Nanos, length: Nanos) {
        let start = start.min(self.timeline.took.max(1).saturating_sub(length));
        self.window = start..start + length;
    }

    /// Moves to the next or previous item of the row.
    fn neighbour(&mut self, is_next: bool) {
        let Some(row) = self.timeline.rows.get(self.row) else { return };
        let Some(at) = row.neighbour(self.cursor, is_next) else {
            self.message = format!("the row has no {} item", if is_next { "later" } else { "earlier" });
            return;
        };
        let there = row.items(&(at..at + 1), usize::from(u8::MAX));
        let begins = |item: &Item| extent(self.trace, *item).is_some_and(|(began, _)| began == at);
        let chosen = there.into_iter().find(begins);
        self.go_to(at);
        self.chosen = chosen;
    }

    /// Jumps to the next item by length.
    fn longest(&mut self, is_shorter: bool) {
        let last = self.timeline.longest.len().checked_sub(1);
        let rank = match (self.rank, is_shorter) {
            (None, _) => Some(0),
            (Some(rank), true) => Some(rank + 1),
            (Some(rank), false) => rank.checked_sub(1),
        };
        let rank = rank.filter(|rank| last.is_some_and(|last| *rank <= last));
        let Some((rank, item)) = rank.and_then(|rank| Some((rank, *self.timeline.longest.get(rank)?))) else {
            self.message = "no such item".to_owned();
            return;
        };
        self.rank = Some(rank);
        self.jump(item);
        self.message = format!("{} of {} by length", rank + 1, self.timeline.longest.len());
    }

    /// Jumps to an item, and zooms so that it is visible.
    pub(super) fn jump(&mut self, item: Item) {
        let Some((began, ended)) = extent(self.trace, item) else { return };
        if let Some(row) = self.timeline.row_of(self.trace, item) {
            self.row = row;
        }
        let whole = self.timeline.took.max(1);
        let length = (ended - began).saturating_mul(ROOM).clamp(Nanos::from(self.cells).min(whole), whole);
        self.look_from(began.saturating_sub((length - (ended - began).min(length)) / 2), length);
        self.go_to(began);
        self.chosen = Some(item);
    }
}
