//! Counting in traces.

use crate::Trace;
use crate::model::Role;

pub(super) fn size(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

pub(super) fn count<T>(all: &[T], is_meant: impl Fn(&T) -> bool) -> u64 {
    size(all.iter().filter(|one| is_meant(one)).count())
}

pub(super) fn of_role(trace: &Trace, role: Role) -> impl Iterator<Item = u32> {
    let threads = (0_u32..).zip(&trace.threads);
    threads.filter(move |(_, thread)| thread.role == role).map(|(index, _)| index)
}
