use super::*;

/// Numbers in 0..1 from a seed (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        f64::from(u32::try_from((bits ^ (bits >> 31)) >> 32).unwrap()) / f64::from(u32::MAX)
    }
}

/// Keys by Zipf's law: key n is read in proportion to n to the power of `-skew`.
fn zipf(keys: usize, skew: f64, reads: usize, seed: u64) -> Vec<u64> {
    let weights: Vec<f64> = (1..=keys).map(|n| f64::from(u32::try_from(n).unwrap()).powf(-skew)).collect();
    let sums: Vec<f64> = weights
        .iter()
        .scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect();
    let mut chance = Chance(seed);
    let mut draw = || {
        let at = chance.next() * sums.last().unwrap();
        sums.partition_point(|&sum| sum < at) as u64
    };
    (0..reads).map(|_| draw()).collect()
}

/// Number of reads that a cache of `size` blocks answers under this policy.
fn hits(size: usize, reads: &[u64]) -> usize {
    let mut policy = Policy::new(size);
    let mut held = std::collections::HashSet::new();
    let mut hits = 0;
    for &key in reads {
        if held.contains(&key) {
            hits += 1;
            policy.note_use(key);
            continue;
        }
        if held.len() == size {
            held.remove(&policy.evict(|_| true).unwrap());
        }
        held.insert(key);
        policy.insert(key, false);
    }
    hits
}

/// Number of reads that a cache of `size` blocks answers under LRU.
fn hits_of_lru(size: usize, reads: &[u64]) -> usize {
    let (mut used, mut order) = (HashMap::new(), std::collections::BTreeMap::new());
    let mut hits = 0;
    for (now, &key) in reads.iter().enumerate() {
        if let Some(before) = used.insert(key, now) {
            hits += 1;
            order.remove(&before);
        } else if used.len() > size {
            let (_, oldest) = order.pop_first().unwrap();
            used.remove(&oldest);
        }
        order.insert(now, key);
    }
    hits
}

#[test]
fn zipf_reads_are_found_at_least_as_often_as_with_lru() {
    let mut cases: Vec<(usize, f64, usize, usize)> = [0.8, 1.0, 1.2]
        .iter()
        .flat_map(|&skew| [100, 1000].map(|size| (10_000, skew, size, 100_000)))
        .collect();
    // A cache that is full only towards the end.
    cases.push((131_072, 1.0, 8192, 50_000));
    for (keys, skew, size, count) in cases {
        for seed in 0..3 {
            let reads = zipf(keys, skew, count, seed);
            let (own, lru) = (hits(size, &reads), hits_of_lru(size, &reads));
            println!("skew {skew}, {size} of {keys} blocks, seed {seed}: {own} hits of {count}, LRU {lru}");
            assert!(own >= lru, "skew {skew}, size {size}, seed {seed}: {own} < {lru}");
        }
    }
}

#[test]
fn a_scan_does_not_flush_out_what_is_used_again() {
    let hot = || (0..50).collect::<Vec<u64>>();
    let mut reads: Vec<u64> = (0..4).flat_map(|_| hot()).collect();
    reads.extend(1000..3000);
    let before = hits(100, &reads);
    reads.extend(hot());
    assert_eq!(hits(100, &reads) - before, 50, "all of it is still there");
    assert_eq!(hits_of_lru(100, &reads) - before, 0, "which is more than LRU can say");
}

#[test]
fn what_can_not_go_stays() {
    let mut policy = Policy::new(10);
    (0..10).for_each(|key| policy.insert(key, false));
    assert_eq!(policy.evict(|key| key == 7), Some(7));
    assert_eq!(policy.evict(|_| false), None);
    let gone: Vec<_> = std::iter::from_fn(|| policy.evict(|_| true)).collect();
    assert_eq!(gone.len(), 9, "and each once");
}

#[test]
fn few_are_looked_at_though_many_can_not_go() {
    let mut policy = Policy::new(1000);
    for key in 0..1000 {
        policy.insert(key, false);
        // The first 500 move to the main queue with the first eviction.
        (0..u64::from(key < 500)).for_each(|_| policy.note_use(key));
    }
    assert_eq!(policy.evict(|_| true), Some(500));
    // Dirty: all of the small queue, and every other block of the main queue.
    for key in (0..500).step_by(2) {
        let looked_at = std::cell::Cell::new(0);
        let may_go = |key: u64| {
            looked_at.set(looked_at.get() + 1);
            key < 500 && key.is_multiple_of(2)
        };
        assert_eq!(policy.evict(may_go), Some(key));
        assert!(looked_at.get() <= STUCK + 2, "{}", looked_at.get());
    }
    assert_eq!(policy.evict(|key| key == 998), Some(998), "the last resort");
}

#[test]
fn what_was_read_ahead_is_passed_over_once() {
    let mut policy = Policy::new(10);
    policy.insert(1, true);
    policy.insert(2, false);
    assert_eq!(policy.evict(|_| true), Some(2));
    assert_eq!(policy.evict(|_| true), Some(1), "never used, it goes in the end");
}

#[test]
fn so_many_keys_that_left_are_remembered() {
    let mut policy = Policy::new(10);
    for key in 0..1000 {
        policy.insert(key, false);
        if key >= 10 {
            policy.evict(|_| true).unwrap();
        }
    }
    assert_eq!(policy.departures.len(), policy.most_ghosts);
    assert!(policy.left.len() <= policy.most_ghosts);
}

#[test]
fn what_was_passed_is_recycled_beyond_a_tenth() {
    let mut policy = Policy::new(30);
    policy.insert(100, false);
    for key in 0..4 {
        policy.insert(key, true);
        assert_eq!(policy.recycle(|_| true), None, "three may stay");
        policy.note_use(key);
    }
    assert_eq!(policy.recycle(|key| key != 0), Some(1), "the oldest that may go, and was passed");
    assert_eq!(policy.recycle(|_| true), None);
    policy.insert(5, false);
    policy.note_written(5);
    policy.note_use(0);
    assert_eq!(policy.recycle(|_| true), None, "what is used again was not passed");
    policy.insert(6, false);
    policy.note_written(6);
    assert_eq!(policy.recycle(|_| true), Some(2));
    let left: Vec<_> = std::iter::from_fn(|| policy.evict(|_| true)).collect();
    assert_eq!((left.len(), policy.passed), (5, 0), "each once: {left:?}");
}
