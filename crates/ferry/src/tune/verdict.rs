//! The verdict of `ferry tune --check`: the profile helps, does no harm, changes nothing, or harms; or it is not decided.

use std::path::Path;

use ferry_lab::statistics::Interval;

use super::effect::Effect;
use crate::quote::quote;

#[cfg(test)]
mod tests;

/// Least speed relative to a copy without the profile.
const LEAST: f64 = 0.95;
/// Exit code if copies are slower than that.
const HARMS: u8 = 3;

/// Returns the verdict as a sentence, and the exit code. `speed` is that of copies with the profile in `file`, relative
/// to copies without it.
pub(super) fn verdict(speed: &Interval, effect: &Effect, file: &Path) -> (String, u8) {
    let ratio = format!("{:.2}", speed.middle);
    let interval = format!("95 %: {:.2}-{:.2}", speed.low, speed.high);
    if effect.is_none() {
        let words = effect.words();
        return (
            format!(
                "The profile changes nothing: copies {words}. The ratio {ratio} ({interval}) has another cause."
            ),
            0,
        );
    }
    if speed.is_below(LEAST) {
        let advice = format!("Measure again, or remove {}", quote(file));
        return (
            format!("The profile harms: copies have {ratio} of the speed ({interval}). {advice}."),
            HARMS,
        );
    }
    let words = if speed.low < LEAST {
        format!("Not decided: copies have {ratio} of the speed ({interval}), and harm begins below {LEAST}.")
    } else if speed.is_above(1.0) {
        format!("The profile helps: copies are {ratio}x as fast ({interval}).")
    } else if speed.is_below(1.0) {
        format!(
            "The profile does no harm: copies have {ratio} of the speed ({interval}); harm begins below {LEAST}."
        )
    } else {
        format!(
            "The profile does no harm: copies with it and without can't be told apart, {ratio} ({interval})."
        )
    };
    (words, 0)
}
