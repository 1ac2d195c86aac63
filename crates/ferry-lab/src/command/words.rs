//! Splitting a command line as a shell does: spaces, quotes and backslashes, and nothing more.

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
