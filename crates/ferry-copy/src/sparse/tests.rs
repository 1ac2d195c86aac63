use super::*;

#[test]
fn neighbouring_data_is_one_run() {
    let mut bytes = vec![0; 5 * UNIT + 10];
    bytes[UNIT] = 1;
    bytes[3 * UNIT - 1] = 1;
    bytes[5 * UNIT + 9] = 1;
    assert_eq!(data_runs(&bytes), [(UNIT, 3 * UNIT), (5 * UNIT, 5 * UNIT + 10)]);
}

#[test]
fn zeros_have_no_runs() {
    assert!(data_runs(&[0; 3 * UNIT]).is_empty());
}
