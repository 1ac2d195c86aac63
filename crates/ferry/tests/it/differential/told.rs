//! Parses a program's message into words and names, independent of quoting.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// Words, with `%` for each name.
    pub(crate) says: String,
    /// Names without `.` and repeated slashes.
    pub(crate) names: Vec<String>,
    pub(crate) line: String,
}

/// An apostrophe within quotes.
const ESCAPED: &str = r"'\''";
const BARE: &str = ": can make relative symbolic links only in current directory";

impl Told {
    pub(crate) fn of(line: &str) -> Self {
        let (mut says, mut names) = (String::new(), Vec::new());
        let mut rest = line.strip_prefix("cp: ").unwrap_or(line);
        // The only message that omits quotes if a shell does not need them.
        if let Some(name) = rest.strip_suffix(BARE).filter(|name| !name.starts_with('"')) {
            (says, rest) = ("%".to_owned(), &rest[name.len()..]);
            names.push(normal(name));
        }
        while let Some(start) = opening(rest) {
            let (before, quoted) = rest.split_at(start);
            let mut characters = quoted.char_indices();
            let opens = characters.next().map_or('\'', |(_, quote)| quote);
            let closes = if opens == '‘' { '’' } else { opens };
            let inner = &quoted[opens.len_utf8()..];
            let Some(end) = closing(inner, closes) else { break };
            says.push_str(before);
            says.push('%');
            names.push(normal(&inner[..end].replace(ESCAPED, "'")));
            rest = &inner[end + closes.len_utf8()..];
        }
        says.push_str(rest);
        Self { says, names, line: line.to_owned() }
    }

    pub(crate) fn errno(&self) -> &str {
        self.says.rsplit(": ").next().unwrap_or_default()
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.says, &self.names) == (&other.says, &other.names)
    }
}

/// Finds an opening quote, but not the apostrophe of `it's`.
fn opening(text: &str) -> Option<usize> {
    let mut before = ' ';
    for (index, character) in text.char_indices() {
        if matches!(character, '"' | '\'' | '‘') && !before.is_alphanumeric() {
            return Some(index);
        }
        before = character;
    }
    None
}

fn closing(text: &str, quote: char) -> Option<usize> {
    let is_last = |index: &usize| {
        let after = text[index + quote.len_utf8()..].chars().next();
        !after.is_some_and(char::is_alphanumeric) && !is_escaped(text, *index)
    };
    text.match_indices(quote).map(|(index, _)| index).find(is_last)
}

/// Returns true if the quote is part of an escaped one.
fn is_escaped(text: &str, index: usize) -> bool {
    (0..ESCAPED.len()).any(|back| {
        index
            .checked_sub(back)
            .is_some_and(|start| text.is_char_boundary(start) && text[start..].starts_with(ESCAPED))
    })
}

/// Normalizes a path. `a/../b` becomes `b`, because no name before `..` is a link in these scenes.
pub(crate) fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Rest of a path below another; empty for the path itself.
pub(crate) fn beneath<'a>(path: &'a str, above: &str) -> Option<&'a str> {
    match path.strip_prefix(above) {
        Some(rest) if above.is_empty() || rest.is_empty() => Some(rest),
        Some(rest) => rest.strip_prefix('/'),
        None => None,
    }
}

pub(crate) fn joined(above: &str, rest: &str) -> String {
    if above.is_empty() || rest.is_empty() { format!("{above}{rest}") } else { format!("{above}/{rest}") }
}
