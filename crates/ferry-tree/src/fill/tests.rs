use super::{SplitMix64, derive, fill};

#[test]
fn any_part_equals_the_same_part_of_the_whole() {
    let mut whole = vec![0; 100];
    fill(7, 0, &mut whole);
    for start in 0..20 {
        for size in 0..30 {
            let mut part = vec![0; size];
            fill(7, u64::try_from(start).unwrap(), &mut part);
            assert_eq!(part, whole[start..start + size], "start {start}, size {size}");
        }
    }
}

#[test]
fn neighbouring_seeds_share_no_words() {
    let (mut one, mut two) = (vec![0; 4096], vec![0; 4096]);
    fill(1, 0, &mut one);
    fill(2, 0, &mut two);
    assert!(one.chunks(8).zip(two.chunks(8)).all(|(a, b)| a != b));
    assert_ne!(derive(1, 0), derive(0, 1));
}

#[test]
fn numbers_are_the_published_ones() {
    let mut numbers = SplitMix64::new(1_234_567);
    assert_eq!(numbers.next_u64(), 6_457_827_717_110_365_317);
    assert_eq!(numbers.next_u64(), 3_203_168_211_198_807_973);
}

#[test]
fn below_zero_is_zero() {
    assert_eq!(SplitMix64::new(1).below(0), 0);
}
