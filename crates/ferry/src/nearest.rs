//! Finds the known word that a misspelt one probably stands for.

use std::ffi::OsStr;

use strsim::osa_distance;

#[cfg(test)]
mod tests;

/// Fewest letters of a beginning that a misspelt abbreviation can stand for.
const LEAST_BEGINNING: usize = 4;

/// Returns the known word that differs from `word` in the fewest letters, or else the first one that `word` abbreviates,
/// or else the first one whose beginning up to a hyphen differs in few letters.
///
/// A letter may be wrong, missing, additional, or exchanged with the next one; one of three letters may differ. The
/// first of several equally near words is returned.
pub(crate) fn nearest<'a>(word: &OsStr, known: &[&'a str]) -> Option<&'a str> {
    let word = word.to_str()?;
    let whole = known.iter().map(|name| (*name, *name)).filter(|(name, _)| !name.is_empty());
    let is_abbreviation = word.len() >= 2;
    let beginnings =
        known.iter().flat_map(|&name| name.match_indices('-').map(move |(at, _)| (&name[..at], name)));
    near(word, whole)
        .or_else(|| known.iter().copied().find(|name| is_abbreviation && name.starts_with(word)))
        .or_else(|| near(word, beginnings.filter(|(beginning, _)| beginning.len() >= LEAST_BEGINNING)))
}

/// Returns the word of the text that differs from `word` in the fewest letters, if these are few.
fn near<'a>(word: &str, texts: impl Iterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    // Their lengths differ by at most as many letters; a distance takes the product of both.
    let candidates = texts.filter(|(text, _)| text.len().abs_diff(word.len()) <= limit);
    let distances = candidates.map(|(text, name)| (osa_distance(word, text), name));
    let near = distances.filter(|(distance, _)| *distance <= limit).min_by_key(|(distance, _)| *distance);
    near.map(|(_, name)| name)
}
