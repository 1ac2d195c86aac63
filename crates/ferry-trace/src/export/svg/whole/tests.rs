use super::{COLUMNS, Columns};
use crate::export::svg::axis::Axis;

#[test]
fn averages_are_of_time() {
    // Ten nanoseconds a column.
    let mut columns = Columns::of(Axis::of(1_000, 1_000 + 10 * COLUMNS as u64));
    for (began, ended) in [(1_000, 1_005), (1_015, 1_042), (1_030, 1_032), (0, 1_001), (4_315, 9_999)] {
        columns.add(began, ended);
    }
    let found = columns.averages();
    let expected = [0.6, 0.5, 1.0, 1.2, 0.2, 0.0];
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
    assert!(
        (found[COLUMNS - 1] - 0.5).abs() < 1e-9
            && found[6..COLUMNS - 1].iter().all(|share| share.abs() < 1e-9)
    );
}
