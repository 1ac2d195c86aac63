//! Finds the known word that a misspelt one probably stands for.

use std::ffi::OsStr;

use strsim::osa_distance;

#[cfg(test)]
mod tests;

/// Returns the known word that differs from `word` in the fewest letters, or else the first one that `word` abbreviates.
///
/// A letter may be wrong, missing, additional, or exchanged with the next one; one of three letters may differ. The
/// first of several equally near words is returned.
pub(crate) fn nearest<'a>(word: &OsStr, known: &[&'a str]) -> Option<&'a str> {
    let word = word.to_str()?;
    let limit = (word.chars().count() / 3).max(1);
    // Their lengths differ by at most as many letters; a distance takes the product of both.
    let candidates = known.iter().copied().filter(|name| name.len().abs_diff(word.len()) <= limit);
    let distances = candidates.filter(|name| !name.is_empty()).map(|name| (osa_distance(word, name), name));
    let near = distances.filter(|(distance, _)| *distance <= limit).min_by_key(|(distance, _)| *distance);
    let is_abbreviation = word.len() >= 2;
    near.map(|(_, name)| name)
        .or_else(|| known.iter().copied().find(|name| is_abbreviation && name.starts_with(word)))
}
