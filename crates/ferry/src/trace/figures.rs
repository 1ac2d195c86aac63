//! Formats times, shares, bars and names for the summary and the timeline.

use ferry_io::Operation as Kind;
use ferry_lab::units::{figure, real};
use ferry_trace::model::{Nanos, Operation};

use crate::quote::{is_utf8_locale, quote};
use crate::units::count;

/// Characters that text is drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Glyphs {
    Blocks,
    Ascii,
}

impl Glyphs {
    /// Returns blocks if the locale can write them.
    pub(super) fn of_environment() -> Self {
        if is_utf8_locale() { Self::Blocks } else { Self::Ascii }
    }

    /// Mark in the place of characters that are left out.
    pub(super) fn ellipsis(self) -> &'static str {
        match self {
            Self::Blocks => "…",
            Self::Ascii => "...",
        }
    }
}

pub(super) fn time(nanos: Nanos) -> String {
    figure(real(nanos), "ns")
}

/// Formats `43 %`; `< 1 %` for a positive share below half a percent.
pub(super) fn share(part: u64, whole: u64) -> String {
    match (u128::from(part) * 200 + u128::from(whole)).checked_div(u128::from(whole) * 2) {
        None => String::new(),
        Some(0) if part > 0 => "< 1 %".to_owned(),
        Some(percent) => format!("{percent} %"),
    }
}

/// Draws a bar for `part` of `whole`; `whole` is `width` characters wide.
pub(super) fn bar(part: u64, whole: u64, width: usize, glyphs: Glyphs) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let wide = u128::try_from(width * EIGHTHS.len()).unwrap_or(u128::MAX);
    let eighths = (u128::from(part) * wide).checked_div(u128::from(whole)).unwrap_or(0);
    let eighths = usize::try_from(eighths).unwrap_or(usize::MAX).max(usize::from(part > 0 && width > 0));
    match glyphs {
        Glyphs::Blocks => "█".repeat(eighths / EIGHTHS.len()) + EIGHTHS[eighths % EIGHTHS.len()],
        Glyphs::Ascii => "#".repeat(eighths.div_ceil(EIGHTHS.len())),
    }
}

/// Draws one character per value, scaled to the largest; a space for 0.
pub(super) fn sparkline(values: &[u64], glyphs: Glyphs) -> String {
    let heights = match glyphs {
        Glyphs::Blocks => ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        Glyphs::Ascii => ['.', ':', '-', '=', '+', '*', '#', '@'],
    };
    let most = values.iter().copied().max().unwrap_or(0);
    let height = |value: u64| {
        let eighths = (u128::from(value) * 8).div_ceil(u128::from(most.max(1)));
        usize::try_from(eighths).ok()?.checked_sub(1).and_then(|index| heights.get(index))
    };
    values.iter().map(|value| height(*value).copied().unwrap_or(' ')).collect()
}

/// Quotes a name without control characters, and shortens its middle to `width` characters.
pub(super) fn name(name: &str, width: usize, glyphs: Glyphs) -> String {
    let quoted = quote(name);
    let length = quoted.chars().count();
    if length <= width {
        return quoted;
    }
    let gap = glyphs.ellipsis();
    let kept = width.saturating_sub(gap.chars().count());
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let begins: String = quoted.chars().take(head).collect();
    let ends: String = quoted.chars().skip(length - tail).collect();
    format!("{begins}{gap}{ends}")
}

/// Formats the bytes that an operation acts on, as far as they are known: `4,096 bytes`, and `at offset 8,192`. A load
/// requests a whole file, so its size is known from its result.
pub(super) fn extent(operation: &Operation) -> Vec<String> {
    let size = match operation.result {
        Some(Ok(loaded)) if operation.kind == Kind::Load => loaded,
        _ => operation.size,
    };
    let size = (size > 0).then(|| format!("{} bytes", count(size)));
    let offset = operation.offset.map(|offset| format!("at offset {}", count(offset)));
    size.into_iter().chain(offset).collect()
}

/// Replaces control characters, which a terminal would obey.
pub(super) fn printable(line: &str) -> String {
    line.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Formats a command line for pasting into a shell.
pub(super) fn command_line(arguments: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-+=.,:/@%".contains(c);
    let word = |argument: &String| {
        let plain = !argument.is_empty() && argument.chars().all(is_plain);
        if plain { argument.clone() } else { quote(argument) }
    };
    arguments.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use ferry_io::Operation as Kind;

    use super::Glyphs::{Ascii, Blocks};
    use super::{bar, command_line, extent, name, share, sparkline};

    #[test]
    fn shares_are_rounded_and_little_is_not_nothing() {
        let told =
            [(0, 9), (1, 1_000), (1, 200), (1, 3), (2, 3), (3, 3)].map(|(part, whole)| share(part, whole));
        assert_eq!(told, ["0 %", "< 1 %", "1 %", "33 %", "67 %", "100 %"]);
        assert_eq!(share(0, 0), "");
    }

    #[test]
    fn bars_and_sparklines_are_as_long_and_as_high_as_their_values() {
        let bars = |glyphs| [(0, 8), (1, 1_000), (4, 8), (8, 8)].map(|(part, all)| bar(part, all, 4, glyphs));
        assert_eq!(bars(Blocks), ["", "▏", "██", "████"]);
        assert_eq!(bars(Ascii), ["", "#", "##", "####"]);
        assert_eq!(sparkline(&[0, 1, 8, 16], Blocks), " ▁▄█");
        assert_eq!(sparkline(&[0, 1, 8, 16], Ascii), " .=@");
        assert_eq!(sparkline(&[0, 0], Blocks), "  ");
    }

    #[test]
    fn the_bytes_of_an_operation_are_told_as_far_as_they_are_known() {
        let mut operation = ferry_trace::sample::copy_of(1).operations.swap_remove(0);
        let mut shown = |kind, size, offset, result| {
            operation.kind = kind;
            (operation.size, operation.offset, operation.result) = (size, offset, Some(result));
            extent(&operation).join(" ")
        };
        assert_eq!(shown(Kind::Read, 4_096, Some(1 << 20), Ok(100)), "4,096 bytes at offset 1,048,576");
        assert_eq!(shown(Kind::Read, 4_096, None, Ok(100)), "4,096 bytes");
        assert_eq!(shown(Kind::Seek, 0, Some(7), Ok(8)), "at offset 7");
        assert_eq!(shown(Kind::Load, 0, Some(0), Ok(3_000)), "3,000 bytes at offset 0");
        assert_eq!(shown(Kind::Load, 0, Some(0), Err(2)), "at offset 0");
        assert_eq!(shown(Kind::Stat, 0, None, Ok(0)), "");
    }

    #[test]
    fn nothing_in_a_name_is_obeyed_by_a_terminal() {
        let shown = name("a\x1b[2J\u{9b}b\n", 40, Blocks);
        assert_eq!(shown, "'a'$'\\033''[2J'$'\\302\\233''b'$'\\n'");
        assert_eq!(name("abcdefghij", 7, Blocks), "'ab…ij'");
        assert_eq!(name("abcdefghij", 9, Ascii), "'ab...ij'");
        assert_eq!(
            command_line(&["cp".to_owned(), "a b".to_owned(), "\x07".to_owned()]),
            "cp 'a b' ''$'\\a'"
        );
    }
}
