//! One line of a program with the names in it apart, however they are quoted.

/// What a line says, and of which files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// The words, with `%` for each name.
    pub(crate) says: String,
    /// The names, as they are without `.` and doubled slashes.
    pub(crate) names: Vec<String>,
    /// The line as it was.
    pub(crate) line: String,
}

/// A quote within quotes, as a shell needs it.
const ESCAPED: &str = r"'\''";
const BARE: &str = ": can make relative symbolic links only in current directory";

impl Told {
    pub(crate) fn of(line: &str) -> Self {
        let (mut says, mut names) = (String::new(), Vec::new());
        let mut rest = line.strip_prefix("cp: ").unwrap_or(line);
        // The only one whose name is quoted only where a shell needs it.
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

    /// What the kernel answered.
    pub(crate) fn errno(&self) -> &str {
        self.says.rsplit(": ").next().unwrap_or_default()
    }

    /// Whether both say the same, though they may quote differently.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.says, &self.names) == (&other.says, &other.names)
    }
}

/// Where a quoted name begins: not with the quote of `it's`.
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

/// Whether a quote belongs to one that is escaped, and not at the end.
fn is_escaped(text: &str, index: usize) -> bool {
    (0..ESCAPED.len()).any(|back| {
        index
            .checked_sub(back)
            .is_some_and(|start| text.is_char_boundary(start) && text[start..].starts_with(ESCAPED))
    })
}

/// A path without what says nothing; `a/../b` is `b`, as no name of a scene before `..` is a link elsewhere.
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

/// The folder that a path is in.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// What of a path is beneath another; empty for that itself.
pub(crate) fn beneath<'a>(path: &'a str, above: &str) -> Option<&'a str> {
    match path.strip_prefix(above) {
        Some(rest) if above.is_empty() || rest.is_empty() => Some(rest),
        Some(rest) => rest.strip_prefix('/'),
        None => None,
    }
}

/// Two paths as one.
pub(crate) fn joined(above: &str, rest: &str) -> String {
    if above.is_empty() || rest.is_empty() { format!("{above}{rest}") } else { format!("{above}/{rest}") }
}
