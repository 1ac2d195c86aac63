use super::*;
use ferry_io::map_blocks;

const BLOCK: usize = 4096;

/// A cache with these dirty parts.
fn cache(dirty: &[(u64, Range<usize>)]) -> (Cache, DirectOptions) {
    let options =
        DirectOptions { block_bytes: BLOCK, blocks: 64, request_blocks: 4, ..DirectOptions::default() };
    let mut cache = Cache::new(map_blocks(64, BLOCK).unwrap(), &options);
    for (index, part) in dirty {
        let memory = cache.memory(0).unwrap();
        cache.add_zeros(*index, memory);
        assert!(cache.write(*index, part.start, &vec![1; part.len()], true));
    }
    (cache, options)
}

fn ends(on_device: u64, size: u64) -> Ends {
    Ends { size, on_device, unit: 4096, is_extending: false }
}

fn whole(blocks: Range<u64>) -> Vec<(u64, Range<usize>)> {
    blocks.map(|index| (index, 0..BLOCK)).collect()
}

#[test]
fn neighbours_become_one_request_up_to_its_bound() {
    let (cache, options) = cache(&[whole(2..4), whole(5..20)].concat());
    let next = |from| next(&cache, &options, ends(1 << 20, 1 << 20), from, u64::MAX).unwrap().blocks;
    assert_eq!(next(0), 2..4);
    assert_eq!(next(4), 5..9);
    assert_eq!(next(18), 18..20);
    assert_eq!(next(30), 2..4, "from the beginning again");
}

#[test]
fn odd_parts_are_rounded_but_not_beyond_the_end() {
    let options = DirectOptions { block_bytes: 4 * BLOCK, blocks: 64, ..DirectOptions::default() };
    let mut cache = Cache::new(map_blocks(64, 4 * BLOCK).unwrap(), &options);
    let memory = cache.memory(0).unwrap();
    cache.add_zeros(1, memory);
    assert!(cache.write(1, 5000, &[1; 10], true));
    let next = |size| next(&cache, &options, ends(size, size), 0, u64::MAX).unwrap();
    assert_eq!(next(100_000).bytes, 16384 + 4096..16384 + 8192);
    assert_eq!(next(16384 + 5100).bytes, 16384 + 4096..16384 + 5100);
}

#[test]
fn a_file_is_made_longer_from_its_end_upwards_one_request_at_a_time() {
    let (mut cache, options) = cache(&whole(3..60));
    let ends = ends(5 * 4096 - 100, 60 * 4096);
    let in_place = next(&cache, &options, ends, 0, u64::MAX).unwrap();
    assert_eq!((in_place.blocks.clone(), in_place.extends), (3..4, false));
    cache.send(in_place.blocks);
    let longer = next(&cache, &options, ends, 0, u64::MAX).unwrap();
    assert_eq!((longer.blocks.clone(), longer.extends), (4..4 + 4 * EXTENDED_AT_ONCE as u64, true));
    let sent = cache.send(longer.blocks.clone());
    assert_eq!(next(&cache, &options, Ends { is_extending: true, ..ends }, 0, u64::MAX), None);
    cache.come_back(longer.blocks.start, 1, sent);
    assert_eq!(next(&cache, &options, ends, 0, u64::MAX), None, "nothing goes beyond what failed");
    cache.forgive();
    assert_eq!(next(&cache, &options, ends, 0, u64::MAX).unwrap().blocks.start, 5);
}

#[test]
fn only_what_was_written_before_is_taken_for_a_flush() {
    let (cache, options) = cache(&whole(0..2));
    let next = |last_write| next(&cache, &options, ends(1 << 20, 1 << 20), 0, last_write);
    assert_eq!(next(0), None);
    assert_eq!(next(1).unwrap().blocks.start, 0);
}
