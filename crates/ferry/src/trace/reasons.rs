//! Words for the reasons for submitting a batch.

use ferry_trace::model::SubmitReason;

/// Returns the name of a reason, and the reason in words.
pub(super) fn because(why: SubmitReason) -> (&'static str, &'static str) {
    match why {
        SubmitReason::Full => ("full", "no room for more"),
        SubmitReason::Idle => ("idle", "no fiber could run"),
        SubmitReason::Forced => ("forced", "submitted early"),
    }
}
