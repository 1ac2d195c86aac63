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

#[test]
fn data_that_was_punched_out_does_not_end_the_file() {
    const UNIT_BYTES: u64 = UNIT as u64;
    let size = 10 * UNIT_BYTES;
    assert_eq!(end_of_data(0, Some(3 * UNIT_BYTES), size), 3 * UNIT_BYTES);
    assert_eq!(end_of_data(UNIT_BYTES, None, size), size);
    assert_eq!(end_of_data(UNIT_BYTES, Some(2 * size), size), size);
    // The hole begins where the data was.
    assert_eq!(end_of_data(2 * UNIT_BYTES, Some(2 * UNIT_BYTES), size), 3 * UNIT_BYTES);
    assert_eq!(end_of_data(size - 1, Some(size - 1), size), size);
}
