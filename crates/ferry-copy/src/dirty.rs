//! Bounds on the memory that a run leaves dirty, from the kernel's limits and the control group's.
//!
//! Read once, when the first file is large enough to matter (`writeback.rs`).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs that write less are never bounded.
const SMALL: u64 = 64 << 20;
/// Bounds on the bytes of all files in pieces being written or written back. Less than a gibibyte would make writers wait for a device
/// that is as fast as memory.
const FEWEST: u64 = 8 << 20;
const MOST: u64 = 1024 << 20;
/// Bounds on a piece of one file, in bytes.
const SMALLEST_PIECE: u64 = 1 << 20;
const LARGEST_PIECE: u64 = 64 << 20;

/// Dirty memory of one run.
#[derive(Default)]
pub(crate) struct Dirty {
    bounds: OnceLock<Bounds>,
    /// Number of files being written back while they are written.
    files: AtomicUsize,
}

/// Amounts of written bytes that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    /// Bytes written by one run beyond which large files are written back early.
    begins: u64,
    /// Bytes in the pieces of all files.
    pieces: u64,
    /// Bytes written by one run that take all memory: each is cached for its source and for its target.
    fills: u64,
}

impl Dirty {
    /// Returns true if a run that has written this many bytes writes large files back early.
    pub(crate) fn is_much(&self, written: u64) -> bool {
        written > SMALL && written > self.bounds().begins
    }

    /// Returns true if this many written bytes take all available memory.
    pub(crate) fn fills_memory(&self, written: u64) -> bool {
        written > SMALL && written > self.bounds().fills
    }

    fn bounds(&self) -> &Bounds {
        self.bounds.get_or_init(Bounds::of_this_machine)
    }

    /// Counts a file that is written back as it goes.
    pub(crate) fn begin_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a file as complete: the pieces of the others become larger.
    pub(crate) fn end_file(&self) {
        self.files.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the size of a piece: each file has one being written and one being written back.
    pub(crate) fn piece(&self) -> u64 {
        let files = self.files.load(Ordering::Relaxed).max(1) as u64;
        let pieces = self.bounds.get().map_or(MOST, |bounds| bounds.pieces);
        (pieces / (2 * files)).clamp(SMALLEST_PIECE, LARGEST_PIECE)
    }
}

impl Bounds {
    fn of_this_machine() -> Self {
        let available = available(Path::new("/proc/meminfo")).unwrap_or(u64::MAX);
        let memory = available.min(group_limit().unwrap_or(u64::MAX));
        let part = |name: &str| {
            let fixed = number(&format!("/proc/sys/vm/{name}_bytes")).filter(|&bytes| bytes > 0);
            fixed.or_else(|| Some(memory / 100 * number(&format!("/proc/sys/vm/{name}_ratio"))?))
        };
        match (part("dirty_background"), part("dirty")) {
            (Some(background), Some(limit)) => Self::between(background, limit, memory),
            // Unknown limits: dirty pages are left to the kernel.
            _ => Self { begins: u64::MAX, pieces: MOST, fills: memory / 2 },
        }
    }

    /// Takes the bytes of dirty memory at which the kernel starts write-back (`background`) and at which it blocks
    /// writers (`limit`), and the bytes of available memory.
    fn between(background: u64, limit: u64, memory: u64) -> Self {
        // The kernel halves it in this case, too.
        let background = if background >= limit { limit / 2 } else { background };
        let begins = background.midpoint(limit);
        Self { begins, pieces: (begins / 2).clamp(FEWEST, MOST), fills: memory / 2 }
    }
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Returns the memory available without swapping (proc_meminfo(5)).
fn available(path: &Path) -> Option<u64> {
    let said = fs::read_to_string(path).ok()?;
    let line = said.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Returns the lowest limit of this process's control groups (cgroups(7)), of either version.
fn group_limit() -> Option<u64> {
    let said = fs::read_to_string("/proc/self/cgroup").ok()?;
    said.lines().filter_map(limit_of_line).min()
}

/// Returns the lowest limit of the group in a line of /proc/self/cgroup and of the groups above it.
fn limit_of_line(line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (controllers, group) = (parts.nth(1)?, parts.next()?);
    let (root, names): (_, &[&str]) = if controllers.is_empty() {
        ("/sys/fs/cgroup", &["memory.max", "memory.high"])
    } else if controllers.split(',').any(|controller| controller == "memory") {
        ("/sys/fs/cgroup/memory", &["memory.limit_in_bytes"])
    } else {
        return None;
    };
    let folder = PathBuf::from(format!("{root}{group}"));
    let groups = folder.ancestors().take_while(|folder| folder.starts_with(root));
    groups
        .flat_map(|group| names.iter().map(move |name| group.join(name)))
        .filter_map(|path| number(path.to_str()?))
        .min()
}

#[cfg(test)]
mod tests;
