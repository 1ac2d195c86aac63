//! Computes the hit ratio of a least-recently-used cache, for comparison.

use std::collections::{BTreeMap, HashMap};

use super::access::Step;
use crate::units::real;

/// Share of reads found in an LRU cache of `places` blocks. Writes enter the cache, too.
pub(super) fn hit_ratio(places: usize, steps: impl Iterator<Item = Step>) -> f64 {
    let (mut used, mut order) = (HashMap::new(), BTreeMap::new());
    let (mut hits, mut reads) = (0, 0);
    for (now, step) in (0_u64..).zip(steps) {
        let before = used.insert(step.at, now);
        if let Some(before) = before {
            order.remove(&before);
        } else if used.len() > places
            && let Some((_, oldest)) = order.pop_first()
        {
            used.remove(&oldest);
        }
        order.insert(now, step.at);
        if !step.writes {
            reads += 1;
            hits += u64::from(before.is_some());
        }
    }
    if reads == 0 { 0.0 } else { real(hits) / real(reads) }
}
