//! Fenced blocks of the document, and breaches in them.

/// Line, counted from one, and text of a breach.
pub(super) type Breach = (usize, String);

/// Returns the lines, each with its number, of the first fenced block at or after the line `is_start` accepts.
pub(super) fn block(document: &str, is_start: impl Fn(&str) -> bool) -> Option<Vec<(usize, &str)>> {
    let numbered = document.lines().enumerate().map(|(index, line)| (index + 1, line));
    let mut rest =
        numbered.skip_while(|(_, line)| !is_start(line)).skip_while(|(_, line)| !line.starts_with("```"));
    rest.next()?;
    Some(rest.take_while(|(_, line)| !line.starts_with("```")).collect())
}
