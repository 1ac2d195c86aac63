use std::time::Duration;

use super::{left, order};

#[test]
fn each_round_takes_every_subject_once_in_an_order_of_its_own() {
    let rounds: Vec<Vec<usize>> = (0..20).map(|round| order(7, round, 6)).collect();
    for round in &rounds {
        let mut sorted = round.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
    }
    assert!(rounds.iter().any(|round| *round != rounds[0]));
    assert_eq!(order(7, 3, 6), rounds[3]);
    assert_ne!((0..20).map(|round| order(8, round, 6)).collect::<Vec<_>>(), rounds);
    assert!(order(7, 0, 0).is_empty());
}

#[test]
fn time_left_follows_what_was_taken() {
    assert_eq!(left(Duration::from_secs(10), 4, 6), Some(Duration::from_secs(15)));
    assert_eq!(left(Duration::from_secs(10), 0, 6), None);
}
