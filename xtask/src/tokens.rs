//! Splits Rust source into words and punctuation, without comments, strings and characters.
//!
//! This is no parser. It only keeps words in comments and strings apart from code.

#[cfg(test)]
mod tests;

/// A word, `::`, or one other character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// Counted from one.
    pub(crate) line: usize,
}

/// Splits a source file. A literal that is not closed runs to the end of the text.
pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = source;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let (length, is_token) = next_piece(rest, first);
        let (piece, after) = rest.split_at(length);
        if is_token {
            found.push(Token { text: piece, line });
        }
        line += piece.matches('\n').count();
        rest = after;
    }
    found
}

/// Returns the length in bytes of the piece that `text` begins with, and true if the piece is a token.
fn next_piece(text: &str, first: char) -> (usize, bool) {
    if text.starts_with("//") {
        (text.find('\n').unwrap_or(text.len()), false)
    } else if text.starts_with("/*") {
        (block_comment_length(text), false)
    } else if first == '"' {
        (string_length(text), false)
    } else if first == '\'' {
        (quote_length(text), false)
    } else if is_word(first) {
        word_piece(text)
    } else if text.starts_with("::") {
        (2, true)
    } else {
        (first.len_utf8(), !first.is_whitespace())
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn word_length(text: &str) -> usize {
    text.find(|character| !is_word(character)).unwrap_or(text.len())
}

/// Returns the length of a word, a raw identifier or a string literal with a prefix, and false for the string.
fn word_piece(text: &str) -> (usize, bool) {
    let length = word_length(text);
    let (word, rest) = text.split_at(length);
    match word {
        "b" | "c" if rest.starts_with('"') => (length + string_length(rest), false),
        "r" | "br" | "cr" if rest.trim_start_matches('#').starts_with('"') => {
            (length + raw_string_length(rest), false)
        }
        "r" if rest.starts_with('#') => (length + 1 + word_length(&rest[1..]), true),
        _ => (length, true),
    }
}

/// Returns the length of a block comment; such comments nest.
fn block_comment_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut index = 0;
    while index < text.len() {
        let pair = text.as_bytes().get(index..index + 2).unwrap_or_default();
        match pair {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                index += 1;
                continue;
            }
        }
        index += 2;
        if depth == 0 {
            return index;
        }
    }
    text.len()
}

/// Returns the length of a string. `text` begins with the opening quote; a backslash hides the byte behind it.
fn string_length(text: &str) -> usize {
    closing_length(text, b'"')
}

fn closing_length(text: &str, closing: u8) -> usize {
    let mut is_escaped = false;
    for (index, &byte) in text.as_bytes().iter().enumerate().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if byte == b'\\' {
            is_escaped = true;
        } else if byte == closing {
            return index + 1;
        }
    }
    text.len()
}

/// Returns the length of a raw string. `text` begins with the hashes, if any, and the opening quote.
fn raw_string_length(text: &str) -> usize {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let closing = format!("\"{}", &text[..hashes]);
    let opening_length = hashes + 1;
    match text[opening_length..].find(&closing) {
        Some(index) => opening_length + index + closing.len(),
        None => text.len(),
    }
}

/// Returns the length of a character literal, or of a lifetime's quote alone.
fn quote_length(text: &str) -> usize {
    let mut characters = text.chars().skip(1);
    match (characters.next(), characters.next()) {
        (Some('\\'), _) => closing_length(text, b'\''),
        (Some(character), Some('\'')) => character.len_utf8() + 2,
        _ => 1,
    }
}
