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
