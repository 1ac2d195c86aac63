//! Colours and symbols of the timeline.

use ferry_io::Route;
use ferry_trace::model::{Cause, SubmitReason};
use ferry_trace::timeline::Class;
use ratatui::style::{Color, Style};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Palette {
    pub(super) has_colours: bool,
}

impl Palette {
    /// Reads NO_COLOR (no-color.org).
    pub(super) fn of_environment() -> Self {
        Self { has_colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
    }

    pub(super) fn style(self, class: Class) -> Style {
        if !self.has_colours {
            return Style::new();
        }
        Style::new().fg(match class {
            Class::Route(Route::Inline) | Class::Cause(Cause::GetEvents) => Color::Green,
            Class::Route(Route::Ring) | Class::Requests | Class::Cause(Cause::SystemCall) => Color::Cyan,
            Class::Route(Route::Pool)
            | Class::SubmitReason(SubmitReason::Forced)
            | Class::Cause(Cause::Tick) => Color::Yellow,
            Class::Route(Route::Offload) | Class::Cause(Cause::PageFault) => Color::Magenta,
            Class::Idle | Class::Cause(Cause::Unknown) => Color::DarkGray,
            Class::Awake | Class::Cause(Cause::GetEventsSlept) => Color::LightBlue,
            Class::SubmitReason(SubmitReason::Full) | Class::Cause(Cause::Ipi) => Color::Red,
            Class::SubmitReason(SubmitReason::Idle) => Color::Gray,
            Class::Cause(Cause::DeviceInterrupt) | Class::Device => Color::LightRed,
        })
    }

    /// Style of the background elements.
    pub(super) fn faint(self) -> Style {
        if self.has_colours { Style::new().fg(Color::DarkGray) } else { Style::new() }
    }
}

pub(super) fn sign(class: Class) -> char {
    match class {
        Class::SubmitReason(SubmitReason::Full) => 'F',
        Class::SubmitReason(SubmitReason::Idle) => 'i',
        Class::SubmitReason(SubmitReason::Forced) => 'f',
        Class::Cause(Cause::GetEvents) => 'g',
        Class::Cause(Cause::GetEventsSlept) => 's',
        Class::Cause(Cause::SystemCall) => 'c',
        Class::Cause(Cause::Ipi) => 'I',
        Class::Cause(Cause::PageFault) => 'p',
        Class::Cause(Cause::Tick) => 't',
        Class::Cause(Cause::DeviceInterrupt) => 'd',
        Class::Cause(Cause::Unknown) => '?',
        Class::Idle => '·',
        Class::Route(_) | Class::Requests | Class::Awake | Class::Device => '█',
    }
}
