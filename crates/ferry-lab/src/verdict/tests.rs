use super::size::range;
use super::{Outcome, Size, Verdict, interval};
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

/// The size of an effect that holds, beside a published figure.
fn sizes(found: Interval, published: &'static str) -> [Option<Size>; 3] {
    let words = |_: &Interval| String::new();
    let limits = if found.middle > 1.0 { (1.0, 99.0) } else { (0.0, 1.0) };
    [
        Verdict::above("", "", Some(found), 1.0, words),
        Verdict::below("", "", Some(found), 1.0, words),
        Verdict::within("", "", Some(found), limits, words),
    ]
    .map(|verdict| verdict.published(published).size())
}

#[test]
fn a_finding_that_holds_has_a_size_beside_the_published_one() {
    let (same, smaller, larger) = (Some(Size::AsPublished), Some(Size::Smaller), Some(Size::Larger));
    assert_eq!(sizes(of(1.02, 1.11, 7), "1.15-1.20"), [smaller, None, smaller]);
    assert_eq!(sizes(of(1.10, 1.16, 7), "1.15-1.20"), [same, None, same]);
    assert_eq!(sizes(of(1.25, 1.30, 7), "1.15-1.20"), [larger, None, larger]);
    // Of a ratio that should be below 1, a larger one is a smaller effect.
    assert_eq!(sizes(of(0.75, 0.79, 7), "0.62"), [None, smaller, smaller]);
    assert_eq!(sizes(of(0.19, 0.21, 7), "0.62"), [None, larger, larger]);
    assert_eq!(sizes(of(0.60, 0.63, 7), "0.62"), [None, same, same]);
    // Neither without enough runs nor without a number.
    assert_eq!(sizes(of(1.02, 1.11, 4), "1.15-1.20"), [None; 3]);
    assert_eq!(sizes(of(1.02, 1.11, 7), "not said"), [None; 3]);
    // A finding of no effect has no size.
    let equal = Verdict::within("", "", Some(of(0.96, 0.98, 7)), (0.95, 1.05), |_| String::new());
    assert_eq!(equal.published("1.00").answer(), "holds");
}

#[test]
fn direction_and_size_are_said_apart() {
    let above = |found, published| {
        Verdict::above("002", "it is", found, 1.0, |found| format!("it was {}", interval(found)))
            .published(published)
    };
    for (found, expected) in [
        (Some(of(1.02, 1.06, 7)), "holds, smaller (1.04; published 1.15-1.20)"),
        (Some(of(1.14, 1.20, 7)), "holds (1.17; published 1.15-1.20)"),
        (Some(of(1.30, 1.40, 7)), "holds, larger (1.35; published 1.15-1.20)"),
        (Some(of(0.70, 0.80, 7)), "does not hold (0.75; published 1.15-1.20)"),
        (Some(of(0.90, 1.10, 7)), "not decided"),
        (None, "not measured"),
    ] {
        assert_eq!(above(found, "1.15-1.20").summary(), expected);
    }
    let words = "002: it is - holds, smaller (1.04; published 1.15-1.20): it was 1.04 (1.02-1.06)";
    assert_eq!(above(Some(of(1.02, 1.06, 7)), "1.15-1.20").to_string(), words);
    let alone = Verdict::below("", "it is", Some(of(0.4, 0.6, 5)), 1.0, interval);
    assert_eq!(alone.to_string(), "it is - holds (0.50): 0.50 (0.40-0.60)");
}

#[test]
fn a_published_figure_stands_for_all_that_round_to_it() {
    let close = |text: &str, low: f64, high: f64| {
        let found = range(text).unwrap();
        assert!((found.0 - low).abs() < 1e-9 && (found.1 - high).abs() < 1e-9, "{text}: {found:?}");
    };
    close("1.81", 1.805, 1.815);
    close("about 0.5", 0.45, 0.55);
    close("1.15-1.20", 1.145, 1.205);
    close("about 80,000", 75_000.0, 85_000.0);
    close("16.5", 16.45, 16.55);
    assert_eq!(range("not said"), None);
}

#[test]
fn a_ratio_has_as_many_digits_as_it_needs() {
    assert_eq!(interval(&of(1.4, 1.6, 5)), "1.50 (1.40-1.60)");
    assert_eq!(interval(&of(0.0221, 0.0239, 5)), "0.023 (0.022-0.024)");
    assert_eq!(interval(&of(0.0021, 0.0025, 5)), "0.0023 (0.0021-0.0025)");
    assert_eq!(interval(&of(0.0, 0.0, 5)), "0.00 (0.00-0.00)");
    assert_eq!(interval(&of(79_000.0, 81_000.4, 5)), "80,000 (79,000-81,000)");
    assert_eq!(interval(&of(1.4, 1.6, 4)), "1.50", "too few for an interval");
}
