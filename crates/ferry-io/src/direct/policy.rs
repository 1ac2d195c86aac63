//! Which block leaves the cache when another needs its place: S3-FIFO.
//!
//! After Yang, Zhang, Qiu, Yue and Rashmi, "FIFO queues are all you need for cache eviction" (SOSP 2023). What is new enters
//! a small queue, a tenth of the cache, and leaves by its end unless it was used again; what was goes to the
//! main queue, where each use buys another round. The keys that left the small queue are remembered for a while: one that
//! comes back enters the main queue. So what is read once, however much of it there is, passes through the small queue
//! only (guard: `a_scan_does_not_flush_out_what_is_used_again`).
//!
//! In the paper's own program a block must be used again twice to stay. Of 50,000 reads by Zipf's law in 131,072 blocks that
//! found 0.3 % less than LRU in a cache of 8,192, which was full only towards the end, and with once it is 0.7 % more; over
//! caches of 2,048 to 32,768 blocks and up to 200,000 reads once was never worse.
//!
//! Added to the paper's: what was read ahead and not used yet is passed over once; what can't leave now (it is being
//! moved, or is not on the device yet) goes to the end of its queue, and after some of that the other queue is looked through first: all
//! blocks are only if none but the last may go; and what a sequential reader or writer has passed
//! leaves before there is need, beyond a tenth of the cache, if the file is larger than that ([`Policy::recycle`]). It would leave
//! unused, and memory that was filled a moment ago is filled again faster: reads of 1 MiB move 1.3 times as much over
//! 8 MiB as over 32.

use std::collections::{HashMap, VecDeque};

/// More uses than this are not counted.
const MOST_USES: u8 = 3;
/// So many of the small queue's oldest are looked at for one that was passed.
const LOOKED_AT: usize = 16;
/// With so many in a queue that can't go, one is looked for in the other queue before: in a queue full of what is not on the
/// device yet, each eviction would else look at all.
const STUCK: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Known {
    uses: u8,
    /// Read ahead, and not used yet.
    is_ahead: bool,
    /// Read ahead and used once, or written as a whole: who did goes on behind it.
    is_passed: bool,
}

/// The order in which the blocks of one cache leave it.
#[derive(Debug)]
pub(super) struct Policy {
    known: HashMap<u64, Known>,
    small: VecDeque<u64>,
    main: VecDeque<u64>,
    /// Keys that left, oldest first, each with the number of its departure.
    left: VecDeque<(u64, u64)>,
    departures: HashMap<u64, u64>,
    departed: u64,
    /// Blocks that were passed.
    passed: usize,
    most_small: usize,
    most_left: usize,
}

impl Policy {
    /// For a cache of `blocks`.
    pub(super) fn new(blocks: usize) -> Self {
        let most_small = (blocks / 10).max(1);
        Self {
            known: HashMap::new(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            left: VecDeque::new(),
            departures: HashMap::new(),
            departed: 0,
            passed: 0,
            most_small,
            most_left: blocks.saturating_sub(most_small).max(1),
        }
    }

    /// A block that was not in the cache has come; ahead of its use, or with it.
    pub(super) fn insert(&mut self, key: u64, is_ahead: bool) {
        let before = self.known.insert(key, Known { uses: 0, is_ahead, is_passed: false });
        if let Some(before) = before {
            self.passed -= usize::from(before.is_passed);
            return;
        }
        if self.departures.remove(&key).is_some() {
            self.main.push_back(key);
        } else {
            self.small.push_back(key);
        }
    }

    /// A block was used, after it came.
    pub(super) fn note_use(&mut self, key: u64) {
        let Some(known) = self.known.get_mut(&key) else { return };
        if std::mem::replace(&mut known.is_ahead, false) {
            // What it came for.
            known.is_passed = true;
            self.passed += 1;
            return;
        }
        self.passed -= usize::from(std::mem::replace(&mut known.is_passed, false));
        known.uses = (known.uses + 1).min(MOST_USES);
    }

    /// A block was written as a whole, and its writer goes on behind it.
    pub(super) fn note_written(&mut self, key: u64) {
        if let Some(known) = self.known.get_mut(&key)
            && known.uses == 0
            && !std::mem::replace(&mut known.is_passed, true)
        {
            self.passed += 1;
        }
    }

    /// Takes out an old block that was passed and not used again, if there are more of them than a tenth of the cache.
    pub(super) fn recycle(&mut self, may_go: impl Fn(u64) -> bool) -> Option<u64> {
        if self.passed <= self.most_small {
            return None;
        }
        let goes = |key: &u64| self.known.get(key).is_some_and(|known| known.is_passed) && may_go(*key);
        let place = self.small.iter().take(LOOKED_AT).position(goes)?;
        let key = self.small.remove(place)?;
        self.forget(key);
        Some(key)
    }

    fn forget(&mut self, key: u64) {
        if let Some(known) = self.known.remove(&key) {
            self.passed -= usize::from(known.is_passed);
        }
    }

    /// Takes out the block that goes first, of those that may.
    pub(super) fn evict(&mut self, may_go: impl Fn(u64) -> bool) -> Option<u64> {
        let is_small_first = self.small.len() >= self.most_small;
        [STUCK, usize::MAX].into_iter().find_map(|most| {
            if is_small_first {
                self.evict_small(most, &may_go).or_else(|| self.evict_main(most, &may_go))
            } else {
                self.evict_main(most, &may_go).or_else(|| self.evict_small(most, &may_go))
            }
        })
    }

    /// Looks at each block twice at most: the first time, one that was read ahead is let off.
    fn evict_small(&mut self, most: usize, may_go: &impl Fn(u64) -> bool) -> Option<u64> {
        let mut stuck = 0;
        for _ in 0..self.small.len() * 2 {
            let key = self.small.pop_front()?;
            let Some(known) = self.known.get_mut(&key) else { continue };
            if !may_go(key) {
                self.small.push_back(key);
                stuck += 1;
                if stuck == most {
                    return None;
                }
            } else if std::mem::replace(&mut known.is_ahead, false) {
                self.small.push_back(key);
            } else if known.uses > 0 {
                known.uses = 0;
                self.main.push_back(key);
            } else {
                self.forget(key);
                self.remember(key);
                return Some(key);
            }
        }
        None
    }

    /// Looks at each block so often that none has uses left.
    fn evict_main(&mut self, most: usize, may_go: &impl Fn(u64) -> bool) -> Option<u64> {
        let mut stuck = 0;
        for _ in 0..self.main.len() * (usize::from(MOST_USES) + 1) {
            let key = self.main.pop_front()?;
            let Some(known) = self.known.get_mut(&key) else { continue };
            if !may_go(key) {
                self.main.push_back(key);
                stuck += 1;
                if stuck == most {
                    return None;
                }
            } else if known.uses == 0 {
                self.forget(key);
                return Some(key);
            } else {
                known.uses -= 1;
                self.main.push_back(key);
            }
        }
        None
    }

    fn remember(&mut self, key: u64) {
        self.departed += 1;
        self.departures.insert(key, self.departed);
        self.left.push_back((key, self.departed));
        if self.left.len() > self.most_left
            && let Some((oldest, number)) = self.left.pop_front()
            && self.departures.get(&oldest) == Some(&number)
        {
            self.departures.remove(&oldest);
        }
    }

    /// Takes blocks out that are not in the cache any more.
    pub(super) fn keep_only(&mut self, is_kept: impl Fn(u64) -> bool) {
        self.known.retain(|&key, _| is_kept(key));
        self.passed = self.known.values().filter(|known| known.is_passed).count();
        self.small.retain(|&key| is_kept(key));
        self.main.retain(|&key| is_kept(key));
    }
}

#[cfg(test)]
mod tests;
