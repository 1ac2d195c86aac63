use super::*;
use crate::buffers::Blocks;

fn blocks(sizes: &[usize]) -> Vec<Block> {
    let pool = Blocks::map(sizes.len(), 4096).unwrap();
    let block = |&size: &usize| {
        let mut block = pool.try_take().unwrap();
        block.set_filled(size);
        block
    };
    sizes.iter().map(block).collect()
}

#[test]
fn what_is_left_begins_in_the_middle_of_a_block() {
    let blocks = blocks(&[10, 0, 20, 5]);
    let left = |skip| to_write(&blocks, skip).iter().map(|part| part.len()).collect::<Vec<_>>();
    assert_eq!(left(0), [10, 20, 5], "not what is empty");
    assert_eq!(left(9), [1, 20, 5]);
    assert_eq!(left(10), [20, 5]);
    assert_eq!(left(29), [1, 5]);
    assert_eq!(left(34), [1]);
    assert_eq!(left(35), [0; 0]);
}

#[test]
fn blocks_are_filled_one_behind_the_other() {
    let mut blocks = blocks(&[0, 0, 0]);
    let left: Vec<_> = to_fill(&mut blocks, 4097).iter().map(|part| part.len()).collect();
    assert_eq!(left, [4095, 4096]);
    set_filled(&mut blocks, 5000);
    assert_eq!((size(&blocks), capacity(&blocks)), (5000, 3 * 4096));
    assert_eq!(blocks.iter().map(|block| block.as_slice().len()).collect::<Vec<_>>(), [4096, 904, 0]);
}

#[test]
fn one_call_gets_no_more_parts_than_the_kernel_takes() {
    let blocks = blocks(&[1; 1500]);
    assert_eq!((to_write(&blocks, 0).len(), to_write(&blocks, 1024).len()), (1024, 476));
}
