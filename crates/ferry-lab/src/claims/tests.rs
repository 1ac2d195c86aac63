use super::{all, decided};
use crate::statistics::Interval;
use crate::verdict::{Outcome, Verdict};

fn of(low: f64, high: f64) -> Option<Interval> {
    Some(Interval { middle: f64::midpoint(low, high), low, high, count: 7 })
}

fn words(_: &Interval) -> String {
    "words".to_owned()
}

fn verdicts() -> Vec<Verdict> {
    let finding = "COOP does more reads a second than the plain ring";
    vec![
        Verdict::above("002", finding, of(1.02, 1.06), 1.0, words).published("1.15-1.20"),
        Verdict::above("002", "A queue is faster", of(0.7, 0.8), 1.0, words).published("16.5"),
        Verdict::below("", "ferry is faster than cp", of(0.9, 1.1), 1.0, words),
        Verdict::below("", "ferry is faster than xcp", None, 1.0, words),
        Verdict::stated("", "The counters agree", Outcome::Held, "in all 9 comparisons".to_owned()),
    ]
}

#[test]
fn open_claims_are_one_line_below_the_decided_ones() {
    let expected = "\
Claims
claim                                verdict              here (95 %)  published
002 COOP does more reads a second    holds, smaller  1.04 (1.02-1.06)  1.15-1.20
than the plain ring
002 A queue is faster                does not hold   0.75 (0.70-0.80)       16.5
The counters agree                   holds
The counters agree: in all 9 comparisons.
Smaller, larger: the effect here, compared with the published one.
Not decided: 1 claim; not measured: 1 claim. --markdown lists them.
";
    assert_eq!(decided(&verdicts()).unwrap().text_in(80), expected);
}

#[test]
fn all_claims_are_rows() {
    let table = all(&verdicts()).unwrap();
    assert_eq!(table.rows.len(), 5);
    assert_eq!(table.rows[2], ["ferry is faster than cp", "not decided", "1.00 (0.90-1.10)", ""]);
    assert_eq!(table.rows[3][1..], ["not measured", "", ""]);
}

#[test]
fn without_claims_there_is_no_table() {
    assert!(decided(&[]).is_none() && all(&[]).is_none());
    // Published figures have no column if there are none.
    let table = all(&verdicts()[2..3]).unwrap();
    assert_eq!(table.columns, ["claim", "verdict", "here (95 %)"]);
    let open = decided(&verdicts()[2..3]).unwrap();
    assert_eq!(open.text_in(80), "Claims\nNot decided: 1 claim. --markdown lists them.\n");
}
