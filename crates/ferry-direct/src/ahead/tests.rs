use super::*;

const KIB: u64 = 1024;

#[test]
fn the_window_grows_to_its_bound() {
    let mut streams = Streams::new(64 * KIB, 1024 * KIB);
    let mut ahead = 0;
    let mut most = 0;
    for read in 0..4096 {
        let end = (read + 1) * 4 * KIB;
        for range in streams.note(read * 4 * KIB, 4 * KIB).ahead {
            assert!(ahead == 0 || range.start == ahead, "nothing is left out or asked for twice");
            ahead = range.end;
        }
        most = most.max(ahead.saturating_sub(end));
        assert!(ahead <= end + 1024 * KIB, "at {end} it is ahead to {ahead}");
    }
    assert_eq!(most, 1024 * KIB, "and it gets there");
}

#[test]
fn the_first_read_is_no_reader_yet() {
    let mut streams = Streams::new(64 * KIB, 1024 * KIB);
    assert_eq!(streams.note(0, 4096), Noted::default());
    let noted = streams.note(4096, 4096);
    assert!(noted.goes_on);
    assert_eq!(noted.ahead.as_slice(), std::slice::from_ref(&(8192..8192 + 64 * KIB)));
}

#[test]
fn equal_distances_are_recognised_in_both_directions() {
    for stride in [100 * KIB, (100 * KIB).wrapping_neg()] {
        let mut streams = Streams::new(64 * KIB, 1024 * KIB);
        let at = |n: u64| (10_000 * KIB).wrapping_add(stride.wrapping_mul(n));
        let mut asked = Vec::new();
        for read in 0..40 {
            asked.extend(streams.note(at(read), 4096).ahead);
        }
        let expected: Vec<_> = (3..3 + asked.len() as u64).map(|n| at(n)..at(n) + 4096).collect();
        assert_eq!(asked, expected, "each place once, in order");
        assert_eq!(asked.len() as u64, 40 - 3 + MOST_STRIDES, "as far ahead as allowed");
    }
}

#[test]
fn strides_do_not_go_below_the_beginning() {
    let mut streams = Streams::new(64 * KIB, 1024 * KIB);
    let asked: Vec<_> = (0..5).rev().flat_map(|n| streams.note(n * 100 * KIB, 4096).ahead).collect();
    assert_eq!(asked, [100 * KIB..100 * KIB + 4096, 0..4096]);
}

#[test]
fn random_reads_are_not_run_ahead_of() {
    let mut streams = Streams::new(64 * KIB, 1024 * KIB);
    for read in 0..1000_u64 {
        let at = read.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        assert_eq!(streams.note(at, 4096), Noted::default());
    }
    assert_eq!(streams.streams.len(), STREAMS);
}

#[test]
fn readers_side_by_side_are_told_apart() {
    let mut streams = Streams::new(64 * KIB, 256 * KIB);
    let begin = |reader: u64| reader * reader * 1000 * KIB;
    let mut ahead = [0; 5];
    for read in 0..100 {
        for reader in 0..5 {
            let at = begin(reader) + read * 4096;
            for range in streams.note(at, 4096).ahead {
                ahead[usize::try_from(reader).unwrap()] += range.end - range.start;
            }
        }
    }
    assert!(ahead.iter().all(|&ahead| ahead >= 100 * 4096), "{ahead:?}");
}
