use super::{Outcome, Verdict, interval};
use crate::statistics::Interval;

fn of(low: f64, high: f64, count: usize) -> Interval {
    Interval { middle: f64::midpoint(low, high), low, high, count }
}

#[test]
fn an_interval_decides_by_the_side_that_it_lies_on() {
    use Outcome::{DidNotHold, Held, NotMeasured, Unclear};
    for (found, above, below, within) in [
        (Some(of(1.1, 1.3, 5)), Held, DidNotHold, Held),
        (Some(of(0.7, 0.9, 5)), DidNotHold, Held, DidNotHold),
        (Some(of(1.6, 1.8, 5)), Held, DidNotHold, DidNotHold),
        (Some(of(0.9, 1.1, 5)), Unclear, Unclear, Unclear),
        (Some(of(1.4, 1.6, 5)), Held, DidNotHold, Unclear),
        // All of few may be on one side by chance.
        (Some(of(1.1, 1.3, 4)), Unclear, Unclear, Unclear),
        (None, NotMeasured, NotMeasured, NotMeasured),
    ] {
        let words = |_: &Interval| "words".to_owned();
        let verdicts = [
            Verdict::above("000", "it is", found, 1.0, words),
            Verdict::below("000", "it is", found, 1.0, words),
            Verdict::within("000", "it is", found, (1.0, 1.5), words),
        ];
        for (verdict, outcome) in verdicts.into_iter().zip([above, below, within]) {
            let few = found.is_some_and(|found| found.count < 5);
            let words = match found {
                None => "there are no figures",
                Some(_) if few => "words; too few runs to tell",
                Some(_) => "words",
            };
            assert_eq!((verdict.outcome, verdict.words.as_str()), (outcome, words), "{found:?}");
        }
    }
}

#[test]
fn small_ratios_have_more_digits() {
    assert_eq!(interval(&of(1.4, 1.6, 5)), "1.50 (1.40 to 1.60)");
    assert_eq!(interval(&of(0.0221, 0.0239, 5)), "0.023 (0.022 to 0.024)");
    assert_eq!(interval(&of(0.0021, 0.0025, 5)), "0.0023 (0.0021 to 0.0025)");
    assert_eq!(interval(&of(0.0, 0.0, 5)), "0.00 (0.00 to 0.00)");
}
