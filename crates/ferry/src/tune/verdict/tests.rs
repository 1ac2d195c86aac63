use std::path::Path;

use ferry_lab::statistics::Interval;

use super::verdict;
use crate::tune::effect::Effect;
use crate::tune::sample::{deep, profile};

fn of(low: f64, middle: f64, high: f64, effect: &Effect) -> (String, u8) {
    verdict(&Interval { middle, low, high, count: 7 }, effect, Path::new("/p/one.toml"))
}

#[test]
fn each_exit_code_has_its_verdict() {
    let effect = Effect::of(&deep(), 8);
    for (low, middle, high, code, words) in [
        (1.02, 1.08, 1.14, 0, "The profile helps: copies are 1.08x as fast (95 %: 1.02-1.14)."),
        (
            0.97,
            1.01,
            1.05,
            0,
            "The profile does no harm: copies with it and without can't be told apart, 1.01 (95 %: 0.97-1.05).",
        ),
        (
            0.96,
            0.97,
            0.98,
            0,
            "The profile does no harm: copies have 0.97 of the speed (95 %: 0.96-0.98); harm begins below 0.95.",
        ),
        (
            0.8,
            0.94,
            1.1,
            0,
            "Not decided: copies have 0.94 of the speed (95 %: 0.80-1.10), and harm begins below 0.95.",
        ),
        (
            0.8,
            0.9,
            0.94,
            3,
            "The profile harms: copies have 0.90 of the speed (95 %: 0.80-0.94). Measure again, or remove \
             '/p/one.toml'.",
        ),
    ] {
        assert_eq!(of(low, middle, high, &effect), (words.to_owned(), code));
    }
}

#[test]
fn a_profile_that_changes_nothing_neither_helps_nor_harms() {
    let effect = Effect::of(&profile(), 8);
    for middle in [0.5, 1.5] {
        let (words, code) = of(middle - 0.1, middle, middle + 0.1, &effect);
        let begin =
            "The profile changes nothing: copies run as without a profile: up to 32 cold reads are in flight";
        assert!(words.starts_with(begin) && words.ends_with(") has another cause."), "{words}");
        assert_eq!(code, 0, "{words}");
    }
}
