//! Writes to free memory before a run, so that the host supplies it.
//!
//! A host may take back memory that its guest has freed (free page reporting, Linux 5.7), and supplies it again page by page
//! when it is used. A copy of one file of 2 GiB then took 0.6 s in some runs and 2.0 to 5.5 s in others.

use crate::machine;
use crate::stop::Stop;

/// Smallest claim; less costs a run no measurable time.
const LEAST: u64 = 64 << 20;
/// Free memory that is left to others.
const SPARE: u64 = 512 << 20;
/// Bytes of one allocation.
const BLOCK: u64 = 256 << 20;

/// Writes to as much free memory as a run takes, and gives it back. Returns the number of bytes, fewer after a stop.
pub(crate) fn claim(bytes: u64, stop: &Stop) -> u64 {
    let room = machine::memory_room().unwrap_or(u64::MAX);
    let wanted = wanted(bytes, free(&meminfo()).min(room));
    let mut blocks = Vec::new();
    let mut left = wanted;
    while left > 0 && !stop.is_set() {
        let size = left.min(BLOCK);
        let mut block = Vec::new();
        let fits = usize::try_from(size).is_ok_and(|size| {
            let reserved = block.try_reserve_exact(size).is_ok();
            if reserved {
                block.resize(size, 1_u8);
            }
            reserved
        });
        if !fits {
            break;
        }
        blocks.push(std::hint::black_box(block));
        left -= size;
    }
    wanted - left
}

/// Returns the bytes to write to: at most what is free, less [`SPARE`], so that no cached data has to go.
fn wanted(bytes: u64, free: u64) -> u64 {
    let wanted = bytes.min(free.saturating_sub(SPARE));
    if wanted < LEAST { 0 } else { wanted }
}

fn meminfo() -> String {
    std::fs::read_to_string("/proc/meminfo").unwrap_or_default()
}

/// Returns the memory that nothing uses, not even a cache (proc_meminfo(5)).
fn free(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemFree:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_free_memory_is_claimed_and_no_little() {
        assert_eq!(wanted(2 << 30, 8 << 30), 2 << 30);
        assert_eq!(wanted(2 << 30, 1 << 30), 512 << 20);
        assert_eq!(wanted(LEAST - 1, 8 << 30), 0);
        assert_eq!(wanted(2 << 30, SPARE + LEAST - 1), 0);
        assert_eq!(wanted(2 << 30, 0), 0);
    }

    #[test]
    fn memory_is_claimed_in_blocks() {
        assert_eq!(free("MemTotal:       8 kB\nMemFree:        4 kB\n"), 4096);
        assert_eq!(free("MemTotal: 8 kB\n"), 0);
        let free = free(&meminfo());
        assert!(free > 0);
        let bytes = BLOCK + LEAST;
        let claimed = claim(bytes, &Stop::on_signals().unwrap());
        // Other tests may have taken the rest meanwhile.
        let free = free.min(machine::memory_room().unwrap_or(u64::MAX));
        assert!(claimed == bytes || free < bytes + 2 * SPARE, "{claimed} of {bytes}, {free} free");
    }
}
