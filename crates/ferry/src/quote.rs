//! Quotes names in messages for pasting into a shell, as GNU's tools do.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

#[cfg(test)]
mod tests;

/// Characters that prevent double quotes around a name with an apostrophe.
const NOT_IN_DOUBLE_QUOTES: &[char] = &[
    '!', '"', '#', '$', '&', '(', ')', '*', ';', '<', '=', '>', '?', '[', '\\', '^', '`', '{', '|', '}', '~',
];

/// Quotes a name: `'a b'`, `"it's"`, `'new'$'\n''line'`.
///
/// Bytes that are not UTF-8 become octal escapes, so the result is text.
pub(crate) fn quote(name: impl AsRef<OsStr>) -> String {
    let bytes = name.as_ref().as_bytes();
    if let Ok(text) = std::str::from_utf8(bytes) {
        if !text.contains(|c: char| c == '\'' || is_invisible(c)) {
            return format!("'{text}'");
        }
        if !text.contains('\'') {
            return shell_escaped(bytes);
        }
        if fits_double_quotes(text) {
            return format!("\"{text}\"");
        }
    }
    shell_escaped(bytes)
}

/// Quotes a word that is not a file name, with the locale's quotation marks.
pub(crate) fn speech(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let escaped: String = word
        .chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect();
    if is_utf8_locale() { format!("‘{escaped}’") } else { format!("'{escaped}'") }
}

/// Returns true if the user's locale uses UTF-8.
pub(crate) fn is_utf8_locale() -> bool {
    writes_utf8(|name| std::env::var_os(name))
}

/// Returns true if the locale (locale(7)) uses UTF-8.
fn writes_utf8(environment: impl Fn(&str) -> Option<std::ffi::OsString>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(environment).find(|set| !set.is_empty());
    let set = set.unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    set.ends_with("utf-8") || set.ends_with("utf8")
}

fn fits_double_quotes(text: &str) -> bool {
    let after_first = text.strip_prefix(['#', '~']).unwrap_or(text);
    !after_first.contains(|c: char| is_invisible(c) || NOT_IN_DOUBLE_QUOTES.contains(&c))
}

/// Returns true for control characters and Unicode line ends.
fn is_invisible(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Quotes with apostrophes, and puts unprintable bytes into `$'…'`.
fn shell_escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 8);
    let mut escaping = false;
    out.push('\'');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_invisible(c) {
                let mut buffer = [0; 4];
                escape(&mut out, &mut escaping, c.encode_utf8(&mut buffer).as_bytes());
            } else if c == '\'' {
                out.push_str("'\\''");
                escaping = false;
            } else {
                if escaping {
                    out.push_str("''");
                    escaping = false;
                }
                out.push(c);
            }
        }
        escape(&mut out, &mut escaping, chunk.invalid());
    }
    out.push('\'');
    out
}

fn escape(out: &mut String, escaping: &mut bool, bytes: &[u8]) {
    for &byte in bytes {
        if !*escaping {
            out.push_str("'$'");
            *escaping = true;
        }
        match named_escape(byte) {
            Some(letter) => out.extend(['\\', letter]),
            None => write!(out, "\\{byte:03o}").unwrap_or_default(),
        }
    }
}

fn named_escape(byte: u8) -> Option<char> {
    match byte {
        0x07 => Some('a'),
        0x08 => Some('b'),
        b'\t' => Some('t'),
        b'\n' => Some('n'),
        0x0b => Some('v'),
        0x0c => Some('f'),
        b'\r' => Some('r'),
        _ => None,
    }
}
