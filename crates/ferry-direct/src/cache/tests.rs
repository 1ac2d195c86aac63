use super::*;
use ferry_io::map_blocks;

const BLOCK: usize = 4096;

fn cache(blocks: usize) -> Cache {
    let options = DirectOptions { block_bytes: BLOCK, blocks, ..DirectOptions::default() };
    Cache::new(map_blocks(blocks, BLOCK).unwrap(), &options)
}

fn add(cache: &mut Cache, index: u64) {
    let memory = cache.memory(0).unwrap();
    cache.add_zeros(index, memory);
}

#[test]
fn every_block_is_free_held_or_away() {
    let mut cache = cache(8);
    (0..4).for_each(|index| add(&mut cache, index));
    assert!(cache.write(1, 10, b"abc", true) && cache.write(2, 0, b"d", true));
    let sent = cache.send(1..3);
    let read = vec![cache.memory(0).unwrap(), cache.memory(0).unwrap()];
    cache.expect(10, false);
    cache.expect(11, true);
    assert_eq!(cache.census(), (2, 2, 4));
    cache.come_back(1, 1, sent);
    cache.arrive(10, 1, read);
    assert_eq!(cache.census(), (3, 5, 0));
    assert_eq!(cache.dirty(0..9).map(|(index, _)| index).collect::<Vec<_>>(), [2], "what was not written");
    assert_eq!(
        (cache.find(10), cache.find(11)),
        (BlockState::Held, BlockState::Absent),
        "what could not be read"
    );
    // The dirty block stays; all other memory can be taken.
    let memory: Vec<_> = std::iter::from_fn(|| cache.memory(0)).collect();
    assert_eq!((memory.len(), cache.census()), (7, (0, 1, 0)));
}

#[test]
fn so_many_blocks_may_be_dirty() {
    let mut cache = cache(8);
    for index in 0..6 {
        assert!(!cache.is_write_too_much(index));
        add(&mut cache, index);
        assert!(cache.write(index, 0, b"x", true));
    }
    assert!(cache.is_write_too_much(6));
    assert!(!cache.is_write_too_much(5), "it is dirty already");
    cache.send(0..2);
    assert!(cache.is_write_too_much(6), "what is on its way counts");
}

#[test]
fn what_is_cut_off_is_gone_and_reads_as_zero() {
    let mut cache = cache(8);
    (0..3).for_each(|index| add(&mut cache, index));
    assert!(
        cache.write(0, 100, &[7; 200], true)
            && cache.write(1, 0, &[7; 50], true)
            && cache.write(2, 0, &[7; 9], true)
    );
    cache.truncate(150, BLOCK);
    assert_eq!(cache.unwritten_bytes(), 50);
    let mut bytes = [1; 200];
    assert!(cache.read(0, 100..300, &mut bytes, true));
    assert!(bytes[..50] == [7; 50] && bytes[50..] == [0; 150]);
    assert_eq!(
        (cache.find(1), cache.find(2), cache.census()),
        (BlockState::Absent, BlockState::Absent, (7, 1, 0))
    );
    cache.truncate(100, BLOCK);
    assert_eq!((cache.unwritten_bytes(), cache.dirty_blocks()), (0, 0));
}

/// A stream through a file larger than the cache refills the same memory.
#[test]
fn a_stream_leaves_memory_untouched() {
    let bytes = 40 * BLOCK as u64;
    for (size, untouched) in [(bytes + 1, 34), (bytes, 8)] {
        let mut cache = cache(40);
        for index in 0..32 {
            let memory = cache.memory(size).unwrap();
            cache.add(index, memory);
            assert!(cache.write(index, 0, &[1; BLOCK], false));
            let sent = cache.send(index..index + 1);
            cache.come_back(index, 1, sent);
        }
        assert_eq!(cache.census(), (untouched, 40 - untouched, 0), "a file of {size} bytes");
    }
}
