use super::*;

#[test]
fn every_block_comes_back() {
    let pool = Blocks::map(3, 4096).unwrap();
    let blocks: Vec<_> = std::iter::from_fn(|| pool.try_take()).collect();
    assert_eq!(blocks.len(), 3, "the pool is bounded");
    assert!(pool.try_take().is_none());
    drop(blocks);
    let again: Vec<_> = std::iter::from_fn(|| pool.try_take()).collect();
    assert_eq!(again.len(), 3);
}

#[test]
fn a_block_outlives_its_pool() {
    let pool = Blocks::map(1, 4096).unwrap();
    let mut block = pool.try_take().unwrap();
    drop(pool);
    block.as_mut_capacity().fill(7);
    block.set_filled(4096);
    assert_eq!(block.as_slice(), [7; 4096]);
}

#[test]
fn blocks_do_not_overlap() {
    let pool = Blocks::map(2, 4096).unwrap();
    let mut first = pool.try_take().unwrap();
    let mut second = pool.try_take().unwrap();
    first.as_mut_capacity().fill(1);
    second.as_mut_capacity().fill(2);
    first.set_filled(4096);
    assert!(first.as_slice().iter().all(|&b| b == 1));
}

#[test]
fn the_parts_of_a_block_are_disjoint_and_come_back_together() {
    let pool = Blocks::map(1, 16384).unwrap();
    let mut whole = pool.try_take().unwrap();
    whole.as_mut_capacity().fill(1);
    whole.set_filled(4097);
    let (first, rest) = whole.split();
    let mut second = rest.unwrap();
    assert_eq!((first.capacity(), second.capacity()), (8192, 8192));
    second.as_mut_capacity().fill(2);
    second.set_filled(1);
    let (second, rest) = second.split();
    let mut third = rest.unwrap();
    third.set_filled(4096);
    let (third, rest) = third.split();
    assert!(rest.is_none(), "no page is left");
    assert_eq!(first.as_slice(), [1; 4097]);
    assert_eq!((second.as_slice(), third.as_slice()), (&[2][..], &[2; 4096][..]));
    drop((first, third));
    assert!(pool.try_take().is_none(), "one part is in use");
    drop(second);
    assert!(pool.try_take().is_some());
}

#[test]
fn half_of_the_blocks_are_left_to_fibers_that_wait() {
    for (count, most) in [(1, 0), (2, 1), (3, 1), (8, 4)] {
        let pool = Blocks::map(count, 4096).unwrap();
        let taken: Vec<_> = std::iter::from_fn(|| pool.take_ample()).collect();
        assert_eq!(taken.len(), most, "of {count}");
    }
}
