use super::Effect;
use crate::tune::sample::{deep, profile};

#[test]
fn an_effect_is_what_a_copy_does_otherwise() {
    let effect = Effect::of(&deep(), 8);
    assert!(!effect.is_none());
    assert_eq!(effect.words(), "have up to 64 cold reads in flight, not 32");
}

#[test]
fn a_profile_without_effect_says_why() {
    let mut none = profile();
    none.direct = None;
    for (profile, workers, reason) in [
        (profile(), 8, "up to 32 cold reads are in flight, and a depth of 16 is enough"),
        (deep(), 2, "up to 32 cold reads are in flight, the most for 2 processors"),
        (deep(), 1, "up to 32 cold reads are in flight, the most for 1 processor"),
        (none, 8, "the profile has no figures for direct reads"),
    ] {
        let effect = Effect::of(&profile, workers);
        assert!(effect.is_none(), "{effect:?}");
        assert_eq!(effect.words(), format!("run as without a profile: {reason}"));
    }
}
