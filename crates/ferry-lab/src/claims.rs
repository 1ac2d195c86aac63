//! The table of claims: direction and size of each finding here, beside the document's figure.

use crate::table::Table;
use crate::verdict::{Outcome, Size, Verdict, interval};
use crate::warnings::counted;

#[cfg(test)]
mod tests;

/// Returns the table of the decided claims, with one line about the others. `None` without claims.
#[must_use]
pub fn decided(verdicts: &[Verdict]) -> Option<Table> {
    let (decided, open): (Vec<&Verdict>, Vec<&Verdict>) =
        verdicts.iter().partition(|verdict| verdict.outcome.is_decided());
    let mut table = of(&decided);
    table.notes.extend(folded(&open));
    (!table.is_empty()).then_some(table)
}

/// Returns the table of all claims. `None` without claims.
#[must_use]
pub fn all(verdicts: &[Verdict]) -> Option<Table> {
    let table = of(&verdicts.iter().collect::<Vec<_>>());
    (!table.is_empty()).then_some(table)
}

fn of(verdicts: &[&Verdict]) -> Table {
    let has_published = verdicts.iter().any(|verdict| verdict.published.is_some());
    let has_intervals = verdicts.iter().any(|verdict| verdict.found.is_some_and(|found| found.is_enough()));
    let here = if has_intervals { "here (95 %)" } else { "here" };
    let mut table = Table::new("Claims", &["claim", "verdict", here]);
    table.columns.extend(has_published.then(|| "published".to_owned()));
    for verdict in verdicts {
        let claim = format!("{} {}", verdict.document, verdict.finding).trim_start().to_owned();
        let here = verdict.found.as_ref().map(interval).unwrap_or_default();
        let mut row = vec![claim, verdict.answer(), here];
        row.extend(has_published.then(|| verdict.published.unwrap_or_default().to_owned()));
        table.row(row);
    }
    let stated = verdicts.iter().filter(|verdict| verdict.found.is_none() && verdict.outcome.is_decided());
    table.notes.extend(stated.map(|verdict| format!("{}: {}.", verdict.finding, verdict.words)));
    let is_compared = |verdict: &&Verdict| matches!(verdict.size(), Some(Size::Smaller | Size::Larger));
    if verdicts.iter().any(is_compared) {
        table.notes.push("Smaller, larger: the effect here, compared with the published one.".to_owned());
    }
    table
}

/// `Not decided: 3 claims; not measured: 1 claim. --markdown lists them.`
fn folded(open: &[&Verdict]) -> Option<String> {
    let count = |outcome: Outcome| {
        let count = open.iter().filter(|verdict| verdict.outcome == outcome).count();
        (count > 0).then(|| format!("{}: {}", outcome.name(), counted(count, "claim")))
    };
    let parts: Vec<String> = [Outcome::Unclear, Outcome::NotMeasured].into_iter().filter_map(count).collect();
    let text = parts.join("; ");
    let mut letters = text.chars();
    let first = letters.next()?;
    Some(format!("{}{}. --markdown lists them.", first.to_uppercase(), letters.as_str()))
}
