//! Splitting a command line as a shell does: spaces, quotes and backslashes, and nothing more; and the reverse.

/// Splits a line into words.
///
/// # Errors
/// Names the part of the line that is not closed.
pub fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => quoted(&mut characters, word.get_or_insert_default())?,
            '"' => double_quoted(&mut characters, word.get_or_insert_default())?,
            '\\' => {
                let next = characters.next().ok_or("a backslash has nothing after it")?;
                word.get_or_insert_default().push(next);
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Joins words to a line that [`words`] splits into the same words.
#[must_use]
pub fn line(words: &[String]) -> String {
    let is_plain = |letter: char| !letter.is_whitespace() && !"'\"\\$`*?[]{}()<>|&;~#!".contains(letter);
    let quoted = |word: &String| {
        let is_plain = !word.is_empty() && word.chars().all(is_plain);
        if is_plain { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(characters: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), &'static str> {
    for character in characters {
        if character == '\'' {
            return Ok(());
        }
        word.push(character);
    }
    Err("a quote is not closed")
}

fn double_quoted(characters: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), &'static str> {
    while let Some(character) = characters.next() {
        match character {
            '"' => return Ok(()),
            '\\' => match characters.next() {
                Some(next @ ('"' | '\\' | '$' | '`')) => word.push(next),
                Some(next) => word.extend(['\\', next]),
                None => break,
            },
            other => word.push(other),
        }
    }
    Err("a quote is not closed")
}
