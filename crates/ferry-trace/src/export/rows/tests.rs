use super::Rows;

#[test]
fn what_overlaps_stands_in_different_rows() {
    let mut rows = Rows::default();
    let spans = [(0, 10), (1, 3), (2, 8), (3, 4), (5, 6), (10, 11), (10, 10), (12, 13)];
    let found: Vec<usize> = spans.iter().map(|(began, ended)| rows.take(*began, *ended)).collect();
    assert_eq!(found, [0, 1, 2, 1, 1, 0, 1, 0]);
}
