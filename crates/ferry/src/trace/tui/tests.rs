use std::time::{Duration, Instant};

use ferry_trace::timeline::{Class, RowKind, extent};
use ferry_trace::{Trace, sample};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::style::Color;

use super::draw::draw;
use super::palette::Palette;
use super::view::{SEARCHED, View};

struct Screen<'t> {
    view: View<'t>,
    terminal: Terminal<TestBackend>,
    palette: Palette,
}

impl<'t> Screen<'t> {
    fn new(trace: &'t Trace, width: u16, height: u16) -> Self {
        let terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let mut screen = Self { view: View::new(trace), terminal, palette: Palette { has_colours: true } };
        screen.draw();
        screen
    }

    fn draw(&mut self) {
        let (view, palette) = (&mut self.view, self.palette);
        self.terminal.draw(|frame| draw(view, palette, frame)).unwrap();
    }

    fn press(&mut self, code: KeyCode) {
        self.view.key(KeyEvent::from(code));
        self.draw();
    }

    fn type_in(&mut self, text: &str) {
        text.chars().for_each(|c| self.press(KeyCode::Char(c)));
    }

    fn resize(&mut self, width: u16, height: u16) {
        self.terminal.backend_mut().resize(width, height);
        self.draw();
    }

    fn lines(&self) -> Vec<String> {
        let buffer = self.terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        let symbols: Vec<&str> = buffer.content.iter().map(|cell| cell.symbol()).collect();
        symbols.chunks(width).map(|line| line.concat().trim_end().to_owned()).collect()
    }

    #[track_caller]
    fn assert_shows(&self, text: &str) {
        let lines = self.lines();
        assert!(lines.iter().any(|line| line.contains(text)), "{text:?} is not in\n{}", lines.join("\n"));
    }

    fn colours(&self, line: u16) -> Vec<Color> {
        let buffer = self.terminal.backend().buffer();
        (0..buffer.area.width).map(|x| buffer[(x, line)].fg).collect()
    }
}

#[test]
fn rows_are_labelled_and_drawn() {
    let trace = sample::copy_of(200);
    let screen = Screen::new(&trace, 100, 24);
    for text in
        ["1.06 ms of 1.06 ms: ferry cp -r source target", "worker 0", "  ring ≤ ", "  batches", "pool 0", "▼"]
    {
        screen.assert_shows(text);
    }
}

#[test]
fn routes_are_told_apart_by_colour_unless_there_are_to_be_none() {
    let trace = sample::copy_of(200);
    let mut screen = Screen::new(&trace, 100, 24);
    assert!(screen.colours(2).contains(&Color::Green), "inline");
    assert!(screen.colours(3).contains(&Color::Cyan), "ring");
    assert!(screen.colours(10).contains(&Color::Yellow), "pool");
    screen.palette = Palette { has_colours: false };
    screen.terminal.clear().unwrap();
    screen.draw();
    assert!((0..24).all(|line| screen.colours(line).iter().all(|colour| *colour == Color::Reset)));
    screen.press(KeyCode::Char('?'));
    assert!((0..24).all(|line| screen.colours(line).iter().all(|colour| *colour == Color::Reset)));
}

#[test]
fn the_longest_are_jumped_to_one_after_another() {
    let trace = sample::copy_of(200);
    let mut screen = Screen::new(&trace, 100, 24);
    let longest = screen.view.timeline.longest.clone();
    for item in &longest[..3] {
        screen.press(KeyCode::Char('>'));
        assert_eq!(screen.view.under_cursor(), Some(*item));
        let (began, ended) = extent(&trace, *item).unwrap();
        let window = &screen.view.window;
        assert!(window.start <= began && ended <= window.end, "{window:?} has not all of {began}..{ended}");
        let operation = &trace.operations[item.1];
        screen.assert_shows(&format!("{} '{}'", operation.kind.name(), operation.name));
    }
    screen.assert_shows("3 of 800 by length");
    screen.press(KeyCode::Char('<'));
    assert_eq!(screen.view.chosen, Some(longest[1]));
}

#[test]
fn what_is_looked_for_is_found_by_name_on_and_around() {
    let trace = sample::copy_of(200);
    let mut screen = Screen::new(&trace, 100, 24);
    screen.type_in("/file 150");
    screen.assert_shows("/file 150_");
    screen.press(KeyCode::Enter);
    let name = |screen: &Screen| trace.operations[screen.view.chosen.unwrap().1].name.clone();
    let mut kinds = Vec::new();
    for _ in 0..4 {
        assert_eq!(name(&screen), "file 150");
        kinds.push(screen.view.chosen.unwrap());
        screen.press(KeyCode::Char('n'));
    }
    // The search wraps around at both ends.
    assert_eq!(screen.view.chosen, Some(kinds[0]));
    screen.press(KeyCode::Char('N'));
    assert_eq!(screen.view.chosen, Some(kinds[3]));
    screen.type_in("/not there");
    screen.press(KeyCode::Enter);
    screen.assert_shows("not found");
    screen.press(KeyCode::Char('/'));
    screen.type_in(&"x".repeat(SEARCHED + 10));
    assert_eq!(screen.view.search.len(), SEARCHED);
}

#[test]
fn zooming_keeps_the_cursor_and_ends_at_a_nanosecond_a_cell() {
    let trace = sample::copy_of(200);
    let mut screen = Screen::new(&trace, 100, 24);
    screen.press(KeyCode::Char('>'));
    let cursor = screen.view.cursor;
    for _ in 0..60 {
        screen.press(KeyCode::Char('+'));
        assert_eq!(screen.view.cursor, cursor);
        assert!(screen.view.window.contains(&cursor));
        assert!(screen.view.cell(screen.view.cell_of(cursor)).contains(&cursor));
    }
    let cells = u64::from(screen.view.cells);
    assert_eq!(screen.view.window.end - screen.view.window.start, cells);
    for _ in 0..60 {
        screen.press(KeyCode::Char('-'));
        assert_eq!(screen.view.cursor, cursor);
    }
    assert_eq!(screen.view.window, 0..trace.about.took);
}

#[test]
fn the_window_goes_along_with_the_cursor() {
    let trace = sample::copy_of(200);
    let mut screen = Screen::new(&trace, 100, 24);
    screen.press(KeyCode::Char('+'));
    for code in
        [KeyCode::End, KeyCode::PageUp, KeyCode::Right, KeyCode::Home, KeyCode::PageDown, KeyCode::Left]
    {
        screen.press(code);
        assert!(screen.view.window.contains(&screen.view.cursor), "{code:?}");
        assert!(screen.view.window.end <= trace.about.took);
    }
    screen.press(KeyCode::End);
    assert_eq!(screen.view.cursor, trace.about.took - 1);
    // Each step is one cell.
    screen.press(KeyCode::Home);
    for cell in 0..20 {
        assert_eq!(screen.view.cell_of(screen.view.cursor), cell);
        screen.press(KeyCode::Right);
    }
}

#[test]
fn the_row_s_next_is_told_of_one_by_one() {
    let trace = sample::copy_of(50);
    let mut screen = Screen::new(&trace, 100, 24);
    screen.press(KeyCode::Down);
    assert_eq!(screen.view.timeline.rows[screen.view.row].kind, RowKind::Ring);
    let mut seen = Vec::new();
    loop {
        screen.press(KeyCode::Tab);
        if screen.lines().last().unwrap().contains("no later item") {
            break;
        }
        let chosen = screen.view.chosen.unwrap();
        assert_eq!(chosen.0, Class::Route(ferry_io::Route::Ring));
        seen.push(chosen.1);
    }
    let of_worker = |index: &usize| {
        trace.operations[*index].thread == 0 && trace.operations[*index].route == ferry_io::Route::Ring
    };
    assert_eq!(seen, (0..trace.operations.len()).filter(of_worker).collect::<Vec<_>>());
}

#[test]
fn a_small_terminal_scrolls_its_rows_and_a_tiny_one_says_so() {
    let trace = sample::copy_of(50);
    let mut screen = Screen::new(&trace, 60, 13);
    let rows = screen.view.timeline.rows.len();
    for row in 1..rows + 3 {
        screen.press(KeyCode::Down);
        let shown = screen.view.top..screen.view.top + usize::from(screen.view.height);
        assert_eq!(screen.view.row, row.min(rows - 1));
        assert!(shown.contains(&screen.view.row), "{shown:?}");
    }
    screen.assert_shows("pool 0");
    screen.resize(30, 5);
    screen.assert_shows("the timeline needs 32 x 10");
    screen.resize(100, 40);
    assert_eq!(screen.view.top, 0, "there is room for all rows");
    screen.assert_shows("worker 0");
}

/// Sizes of a narrow, of the usual and of a large terminal.
const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (200, 50)];

#[test]
fn every_size_has_an_axis_rows_details_and_keys() {
    let trace = sample::copy_of(200);
    for (width, height) in SIZES {
        let mut screen = Screen::new(&trace, width, height);
        screen.press(KeyCode::Char('>'));
        screen.press(KeyCode::Right);
        let lines = screen.lines();
        let shown = lines.join("\n");
        assert!(lines[1].contains("│") && lines[1].contains(" µs"), "{shown}");
        assert!(lines.iter().any(|line| line.starts_with("pool 0")), "{shown}");
        assert!(lines.last().unwrap().ends_with("? help  q quit"), "{shown}");
        let rule = lines.iter().position(|line| line.starts_with("───")).unwrap();
        let details = super::detail::lines(&screen.view, usize::from(width));
        assert!(details.iter().all(|line| line.chars().count() <= usize::from(width)), "{details:?}");
        let room = (lines.len() - rule - 2).min(details.len());
        assert_eq!(lines[rule + 1..][..room], details[..room], "{shown}");
        assert!(details.iter().take(room).any(|line| line.starts_with("stat 'file ")), "{shown}");
    }
}

#[test]
fn the_axis_has_the_unit_of_the_times_that_are_shown() {
    let mut trace = sample::copy_of(50);
    trace.about.took = 90_000_000_000;
    let mut screen = Screen::new(&trace, 80, 24);
    assert!(screen.lines()[1].contains("│50 s"), "{}", screen.lines()[1]);
    screen.assert_shows("worker 0, calls: 1.45 s from 0 ms");
    for _ in 0..12 {
        screen.press(KeyCode::Char('+'));
    }
    // The window ends 22 ms after the beginning.
    assert!(screen.lines()[1].contains("│10 ms"), "{}", screen.lines()[1]);
}

#[test]
fn the_help_has_as_many_pages_as_it_needs() {
    let trace = sample::copy_of(20);
    for ((width, height), pages) in SIZES.into_iter().zip([4, 1, 1]) {
        let mut screen = Screen::new(&trace, width, height);
        screen.press(KeyCode::Char('?'));
        let mut shown = String::new();
        for page in 0..pages {
            assert_eq!(screen.view.help, Some(page), "{width} columns");
            shown += &(screen.lines().join("\n") + "\n");
            screen.press(KeyCode::Char('x'));
        }
        assert_eq!(screen.view.help, None, "{width} columns");
        for binding in &super::keys::BINDINGS {
            assert!(shown.contains(binding.what), "{} is not in\n{shown}", binding.what);
        }
        assert!(shown.contains("? unknown"), "{shown}");
    }
    let mut screen = Screen::new(&trace, 40, 12);
    screen.press(KeyCode::Char('?'));
    screen.press(KeyCode::Char('q'));
    assert_eq!((screen.view.help, screen.view.is_over), (None, false));
}

#[test]
fn a_label_that_is_too_long_loses_its_number() {
    let trace = sample::copy_of(200);
    for (width, expected) in [(40, "worker 0 ri "), (80, "worker 0 ring ≤ 2 ")] {
        let mut screen = Screen::new(&trace, width, 12);
        screen.assert_shows("  ring ≤ 2");
        // The first visible row of a thread has its name, too.
        while screen.view.top == 0 {
            screen.press(KeyCode::Down);
        }
        let first = &screen.lines()[2];
        assert!(first.starts_with(expected), "{first}");
    }
}

#[test]
fn every_key_of_the_help_does_something() {
    let trace = sample::copy_of(50);
    for binding in &super::keys::BINDINGS {
        for code in binding.codes {
            let mut screen = Screen::new(&trace, 100, 24);
            for code in ['+', '+', '>', '>'] {
                screen.press(KeyCode::Char(code));
            }
            screen.type_in("/file 3");
            screen.press(KeyCode::Enter);
            let before = (screen.lines(), screen.view.is_over);
            screen.press(*code);
            assert_ne!((screen.lines(), screen.view.is_over), before, "{code:?} {}", binding.what);
        }
    }
}

#[test]
fn nothing_that_was_recorded_is_obeyed_by_the_terminal() {
    let mut trace = sample::copy_of(20);
    trace.about.command.push("\x1b[2J\u{9b}".to_owned());
    trace.threads.iter_mut().for_each(|thread| thread.name += "\x1b]0;x\x07");
    trace.fibers.iter_mut().for_each(|fiber| fiber.name = "\r\u{85}\x1b".to_owned());
    trace.operations.iter_mut().for_each(|operation| operation.name = "\x1b[31m\n".to_owned());
    trace.chains.iter_mut().flatten().for_each(|function| function.push('\x1b'));
    let mut screen = Screen::new(&trace, 120, 30);
    for _ in 0..screen.view.timeline.rows.len() {
        for code in [KeyCode::Tab, KeyCode::Down] {
            screen.press(code);
            let buffer = screen.terminal.backend().buffer();
            assert!(buffer.content.iter().all(|cell| !cell.symbol().chars().any(char::is_control)));
        }
    }
    screen.assert_shows("'$'\\033''[31m'$'\\n'");
}

#[test]
fn a_million_operations_are_drawn_as_fast_as_keys_come() {
    let trace = sample::copy_of(250_000);
    assert_eq!(trace.operations.len(), 1_000_000);
    let mut screen = Screen::new(&trace, 200, 50);
    let keys = ['+', '-', ']', '[', '>', '<', '+', '+', '+', '0'].map(KeyCode::Char);
    let begun = Instant::now();
    for code in keys {
        screen.press(code);
    }
    let each = begun.elapsed() / u32::try_from(keys.len()).unwrap();
    assert!(each < Duration::from_millis(250), "{each:?} a frame, and that of a build without optimisation");
}

#[test]
fn a_recording_of_nothing_is_shown_as_such() {
    let trace = Trace::default();
    let mut screen = Screen::new(&trace, 80, 24);
    screen.assert_shows("the recording has no rows");
    for binding in &super::keys::BINDINGS {
        binding.codes.iter().for_each(|code| screen.press(*code));
    }
}

#[test]
fn a_worker_that_waits_is_idle_and_not_asleep() {
    let trace = sample::copy_of(50);
    let mut screen = Screen::new(&trace, 100, 40);
    screen.press(KeyCode::Char('?'));
    screen.assert_shows("· idle");
    assert!(screen.lines().iter().all(|line| !line.contains("asleep")), "{}", screen.lines().join("\n"));
    screen.press(KeyCode::Esc);
    screen.view.jump((Class::Idle, 0));
    screen.draw();
    screen.assert_shows("idle for ");
}

#[test]
fn a_device_has_a_row_and_its_requests_have_details() {
    let mut trace = sample::with_device(sample::copy_of(50));
    trace.device_requests[1].completed = None;
    trace.device_requests[2].is_failed = true;
    trace.device_requests[3].thread = None;
    for (width, height) in [(40, 30), (80, 30)] {
        let mut screen = Screen::new(&trace, width, height);
        screen.assert_shows("vda device");
        for (index, words) in
            [(0, "read of 4,096 bytes at"), (1, "completion"), (2, "failed"), (3, "another")]
        {
            screen.view.jump((Class::Device, index));
            screen.draw();
            assert_eq!(screen.view.timeline.rows[screen.view.row].kind, RowKind::Device);
            screen.assert_shows(words);
        }
    }
    let mut screen = Screen::new(&trace, 100, 30);
    let read = trace.operations.iter().position(|one| one.offset == Some(8_192)).unwrap();
    screen.view.jump((Class::Route(trace.operations[read].route), read));
    screen.draw();
    screen.assert_shows(", 4,096 bytes at offset 8,192: result 4,096");
}

#[test]
fn a_panic_is_told_on_a_terminal_as_it_was() {
    const WITHIN: &str = "FERRY_TEST_PANICS";
    if std::env::var_os(WITHIN).is_some() {
        // This process has its own terminal.
        let shown = super::on_terminal(|terminal| -> std::io::Result<()> {
            terminal.draw(|frame| frame.render_widget("drawn", frame.area()))?;
            panic!("as it was told to");
        });
        return shown.unwrap();
    }
    if std::process::Command::new("script").arg("--version").output().is_err() {
        return eprintln!("SKIP: there is no script(1) to have a terminal of");
    }
    let own = std::env::current_exe().unwrap();
    let panics =
        "--exact trace::tui::tests::a_panic_is_told_on_a_terminal_as_it_was --nocapture --test-threads=1";
    let within =
        format!("stty rows 24 cols 80; stty -g; {} {panics}; echo ended by $?; stty -g", own.display());
    let mut script = std::process::Command::new("script");
    script.env("TERM", "xterm-256color").env("RUST_BACKTRACE", "0").env(WITHIN, "");
    let output = script.args(["-qec", &within, "/dev/null"]).output().unwrap();
    let screen = String::from_utf8_lossy(&output.stdout);
    let at = |text: &str| screen.find(text).unwrap_or_else(|| panic!("no {text:?} in {screen:?}"));
    let ways =
        [at("\u{1b}[?1049h"), at("drawn"), at("\u{1b}[?1049l"), at("as it was told to"), at("ended by 101")];
    assert!(ways.is_sorted(), "{screen:?}");
    let modes: Vec<&str> =
        screen.lines().map(str::trim).filter(|line| line.matches(':').count() > 10).collect();
    assert!(modes.len() == 2 && modes[0] == modes[1], "{modes:?}");
}
