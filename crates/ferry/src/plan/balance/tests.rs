use super::*;

fn spread(costs: &[u64]) -> u64 {
    costs.iter().max().unwrap() - costs.iter().min().unwrap()
}

#[test]
fn parts_differ_by_one_run_or_one_file_at_most() {
    for parts in [1_usize, 2, 7, 64] {
        let mut balance = Balance::new(parts);
        let mut largest = 0;
        // Sizes without order: a few large files among small ones.
        for number in 0..20_000_u64 {
            let bytes = match number.wrapping_mul(2_654_435_761) % 101 {
                0 => 64 << 20,
                rest => rest * 1_000,
            };
            largest = largest.max(bytes);
            assert!(balance.next(bytes) < parts);
        }
        let mean = balance.total / parts as u64;
        let run = (mean / SHARE).clamp(RUNS[0], RUNS[1]) + largest + ENTRY;
        assert!(spread(&balance.costs) <= run, "{parts} parts: {:?}", balance.costs);
    }
}

#[test]
fn entries_that_follow_each_other_stay_together() {
    let mut balance = Balance::new(4);
    let parts: Vec<usize> = (0..32).map(|_| balance.next(0)).collect();
    let changes = parts.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(changes, 3, "{parts:?}");
    assert_eq!(spread(&balance.costs), 0);
}

#[test]
fn ranges_go_to_different_parts() {
    let mut balance = Balance::new(3);
    let mut parts: Vec<usize> = (0..3).map(|_| balance.range(1 << 20)).collect();
    parts.sort_unstable();
    assert_eq!(parts, [0, 1, 2]);
}

#[test]
fn names_of_one_file_get_one_part_and_are_forgotten_after_the_last() {
    let mut balance = Balance::new(2);
    let shared = Shared { file: (1, 2), names: 3 };
    assert_eq!(balance.earlier(shared), None);
    balance.note(shared, Some(1));
    assert_eq!(balance.earlier(shared), Some(Some(1)));
    assert_eq!(balance.earlier(shared), Some(Some(1)));
    assert!(balance.shared.is_empty());
    balance.note(Shared { file: (1, 3), names: 1 }, Some(0));
    assert!(balance.shared.is_empty(), "it has no other name");
}
