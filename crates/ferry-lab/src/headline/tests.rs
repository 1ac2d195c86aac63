use super::{Headline, Speed, others};
use crate::record::Scale;
use crate::statistics::Interval;
use crate::verdict::{Outcome, Verdict};

fn of(low: f64, high: f64, count: usize) -> Interval {
    Interval { middle: f64::midpoint(low, high), low, high, count }
}

fn sentence(ratio: Interval, published: Option<&str>, scale: Scale) -> String {
    Speed { subject: "ferry", base: "cp", place: "on large files, cold", ratio, published, scale }.sentence()
}

#[test]
fn a_speed_is_stated_only_as_far_as_it_is_known() {
    for (ratio, published, scale, expected) in [
        (
            of(1.3, 1.5, 5),
            None,
            Scale::Default,
            "ferry is 1.40x as fast as cp on large files, cold (95 %: 1.30-1.50)",
        ),
        (
            of(0.7, 0.9, 5),
            Some("1.15-1.20"),
            Scale::AsPublished,
            "ferry is slower than cp on large files, cold: 0.80x as fast (95 %: 0.70-0.90; published 1.15-1.20)",
        ),
        (
            of(0.95, 1.09, 5),
            None,
            Scale::Default,
            "ferry and cp can't be told apart on large files, cold: 1.02 (95 %: 0.95-1.09)",
        ),
        (
            of(0.7, 0.9, 4),
            None,
            Scale::Default,
            "ferry is 0.80x as fast as cp on large files, cold (4 runs: decides nothing)",
        ),
        (of(1.3, 1.5, 1), None, Scale::Quick, "ferry is 1.40x as fast as cp on large files, cold (1 run)"),
    ] {
        assert_eq!(sentence(ratio, published, scale), expected);
    }
}

#[test]
fn others_are_counted_if_all_have_enough_runs() {
    let speeds = [of(1.1, 1.2, 5), of(0.9, 1.1, 5), of(0.5, 0.6, 5), of(1.5, 1.6, 5)];
    let what = ["copy", "copies"];
    assert_eq!(others(&speeds, what).unwrap(), "In 4 other copies: faster in 2, slower in 1");
    assert_eq!(others(&speeds[2..3], what).unwrap(), "In 1 other copy: faster in 0, slower in 1");
    assert_eq!(others(&[of(1.1, 1.2, 4)], what), None);
    assert_eq!(others(&[], what), None);
}

#[test]
fn without_an_answer_of_its_own_an_experiment_states_its_first_decided_finding() {
    let open = Verdict::above("", "open", None, 1.0, |_| String::new());
    let held = Verdict::stated("", "counters agree", Outcome::Held, String::new());
    let answer = Headline::of_verdicts(&[open.clone(), held]).answer;
    assert_eq!(answer, "counters agree: holds");
    assert_eq!(Headline::of_verdicts(&[open]).lines(), ["No claim is decided"]);
}
