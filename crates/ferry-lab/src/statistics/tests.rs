use super::{Interval, Summary, median, percentile, ratio};

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

#[test]
fn percentiles_are_those_of_numpy() {
    let sorted = [1.0, 2.0, 4.0, 8.0];
    assert!(close(percentile(&sorted, 0), 1.0));
    assert!(close(percentile(&sorted, 500), 3.0));
    assert!(close(percentile(&sorted, 900), 6.8));
    assert!(close(percentile(&sorted, 1000), 8.0));
    assert!(close(percentile(&[], 500), 0.0));
    assert!(close(median(&[5.0, 1.0, 3.0]), 3.0));
}

#[test]
fn summary_of_known_figures() {
    let summary = Summary::of(&[10.0, 12.0, 11.0, 10.5, 11.5, 40.0], 7).unwrap();
    assert_eq!(summary.count, 6);
    assert!(close(summary.median.middle, 11.25) && close(summary.min, 10.0) && close(summary.max, 40.0));
    assert!(close(summary.mad, 0.75));
    assert_eq!(summary.outliers, [5]);
    assert!(Summary::of(&[], 7).is_none());
}

#[test]
fn an_interval_holds_the_median_and_is_the_same_for_a_seed() {
    let figures: Vec<f64> = (0..25).map(|n| f64::from(n * 7 % 25)).collect();
    let one = Summary::of(&figures, 1).unwrap().median;
    let Interval { middle, low, high } = one;
    assert!(low < middle && middle < high, "{one:?}");
    // The binomial interval of the median of 0..25: ranks 8 to 18.
    assert!((7.0..=9.0).contains(&low) && (15.0..=17.0).contains(&high), "{one:?}");
    assert_eq!(Summary::of(&figures, 1).unwrap().median, one);
}

#[test]
fn ratios_are_taken_pair_by_pair() {
    // The machine became ten times slower in the middle: each pair still says 2.
    let pairs = [(1.0, 2.0), (1.1, 2.2), (10.0, 20.0), (11.0, 22.0)];
    let found = ratio(&pairs, 3).unwrap();
    assert!(close(found.middle, 2.0) && close(found.low, 2.0) && close(found.high, 2.0));
    assert!(found.is_above(1.9) && found.is_below(2.1) && close(found.relative_width(), 0.0));
    assert!(ratio(&[(0.0, 1.0)], 3).is_none());
}
