//! Limit programs by name, and those worth trying for a kind of tree.

use crate::units::size;

/// Maximum number of threads.
const MOST_THREADS: usize = 64;
/// Maximum size of a block.
const MOST_BYTES: usize = 64 << 20;
const KIB: usize = 1 << 10;
/// Block size for trees.
const USUAL: usize = 64 * KIB;

/// The calls that a limit program makes, and how its threads share the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// Each thread lists folders and copies their files with read(2) and write(2).
    ReadWrite,
    /// The same with copy_file_range(2).
    CopyRange,
    /// As `ReadWrite`, but asks for cached names (`RESOLVE_CACHED`) and bytes (`RWF_NOWAIT`) first, as ferry does.
    Cached,
    /// The threads list folders and read files; further threads, one a processor, create and write them.
    Readers,
    /// One file after another: one thread reads, another writes.
    Pipe,
    /// One file after another: write(2) from a mapping, populated by the same thread or by a second one.
    Mapped,
    /// One file after another: the threads read with O_DIRECT, one more writes through the page cache.
    Direct,
}

impl Calls {
    /// All of them with their names.
    pub const ALL: [(&'static str, Self); 7] = [
        ("limit-read-write", Self::ReadWrite),
        ("limit-copy-range", Self::CopyRange),
        ("limit-cached", Self::Cached),
        ("limit-readers", Self::Readers),
        ("limit-pipe", Self::Pipe),
        ("limit-mapped", Self::Mapped),
        ("limit-direct", Self::Direct),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, calls)| *calls == self).map_or("", |(name, _)| name)
    }

    /// Returns true if its threads share one file, instead of copying a file each.
    #[must_use]
    pub fn share_a_file(self) -> bool {
        matches!(self, Self::Pipe | Self::Mapped | Self::Direct)
    }

    /// Returns the supported numbers of threads.
    fn threads(self) -> std::ops::RangeInclusive<usize> {
        match self {
            Self::Pipe => 2..=2,
            Self::Mapped => 1..=2,
            Self::ReadWrite | Self::CopyRange | Self::Cached | Self::Readers | Self::Direct => {
                1..=MOST_THREADS
            }
        }
    }
}

/// A limit program. Its name has the calls, the threads and the block size: `limit-read-write-2x64K`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The calls.
    pub calls: Calls,
    /// Number of threads, from 1 to 64. `Readers` and `Direct` have further ones that write.
    pub threads: usize,
    /// Bytes of a call, a multiple of 4,096. `CopyRange` ignores it.
    pub block_bytes: usize,
    /// Keeps owners, modes, times, extended attributes and ACLs, as `cp -a` does. Not part of the name.
    pub preserves: bool,
}

/// Kind of a tree, which determines the programs worth trying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Files of at most one block.
    Small,
    /// Several larger files.
    Large,
    /// One larger file.
    One,
}

impl Kind {
    /// Returns the kind of a tree of `files` files, the largest of `largest` bytes.
    #[must_use]
    pub fn of(files: u64, largest: u64) -> Self {
        match (largest > 64 << 10, files) {
            (false, _) => Self::Small,
            (true, 1) => Self::One,
            (true, _) => Self::Large,
        }
    }
}

impl Limit {
    /// A program with blocks of 64 KiB.
    const fn new(calls: Calls, threads: usize) -> Self {
        Self { calls, threads, block_bytes: USUAL, preserves: false }
    }

    const fn with(self, kib: usize) -> Self {
        Self { block_bytes: kib * KIB, ..self }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> String {
        let name = format!("{}-{}", self.calls.name(), self.threads);
        if self.calls == Calls::CopyRange {
            return name;
        }
        format!("{name}x{}", size(u64::try_from(self.block_bytes).unwrap_or_default()))
    }

    /// Returns the program of this name. The block size may be left out.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (calls, rest) = Calls::ALL.into_iter().find_map(|(known, calls)| {
            let rest = name.strip_prefix(known)?.strip_prefix('-')?;
            Some((calls, rest))
        })?;
        let (threads, block) =
            rest.split_once('x').map_or((rest, None), |(threads, block)| (threads, Some(block)));
        let block_bytes = match block {
            None => Some(USUAL),
            Some(block) => crate::settings::bytes(block).and_then(|bytes| usize::try_from(bytes).ok()),
        };
        let found = Self { block_bytes: block_bytes?, ..Self::new(calls, threads.parse().ok()?) };
        let fits = calls.threads().contains(&found.threads)
            && (1..=MOST_BYTES).contains(&found.block_bytes)
            && found.block_bytes.is_multiple_of(4 * KIB);
        fits.then_some(found)
    }

    /// Returns the programs worth trying for a kind of tree on a machine with so many processors.
    #[must_use]
    pub fn all(kind: Kind, is_cold: bool, processors: usize) -> Vec<Self> {
        let spread = |calls: &[Calls], threads: &[usize]| -> Vec<Self> {
            calls.iter().flat_map(|calls| threads.iter().map(|count| Self::new(*calls, *count))).collect()
        };
        let with = |limits: &[Self], sizes: &[usize]| -> Vec<Self> {
            limits.iter().flat_map(|limit| sizes.iter().map(|kib| limit.with(*kib))).collect()
        };
        let few = threads(&[1, 2, 3, 4, processors, 2 * processors]);
        let many = threads(&[2, 8, 32, 2 * processors]);
        let direct = [Self::new(Calls::Direct, 8).with(256), Self::new(Calls::Direct, 4).with(1024)];
        let mut all = match (kind, is_cold) {
            (Kind::Small, false) => spread(&[Calls::ReadWrite, Calls::CopyRange, Calls::Cached], &few),
            (Kind::Small, true) => [
                spread(&[Calls::ReadWrite, Calls::CopyRange], &many),
                spread(&[Calls::Readers], &[4, 16, 32, 64]),
            ]
            .concat(),
            (Kind::Large, _) => {
                let threads = if is_cold { &many } else { &few };
                let reading = spread(&[Calls::ReadWrite], threads);
                let mapped = Self::new(Calls::Mapped, 2).with(128);
                [with(&reading, &[64, 256]), spread(&[Calls::CopyRange], threads), vec![mapped]].concat()
            }
            (Kind::One, _) => [
                vec![Self::new(Calls::CopyRange, 1)],
                with(&[Self::new(Calls::ReadWrite, 1)], &[32, 64, 128, 256, 1024]),
                with(&[Self::new(Calls::Pipe, 2)], &[32, 64, 128, 256, 1024]),
                with(&spread(&[Calls::Mapped], &[1, 2]), &[64, 128, 256]),
            ]
            .concat(),
        };
        if kind != Kind::Small && is_cold {
            all.extend(direct);
        }
        all
    }

    /// Returns those of [`Limit::all`] that were the fastest on some machine, for a pilot.
    #[must_use]
    pub fn likely(kind: Kind, is_cold: bool, processors: usize) -> Vec<Self> {
        let of = Self::new;
        let next = threads(&[processors, processors + 1]);
        let each = |calls: &[Calls]| -> Vec<Self> {
            calls.iter().flat_map(|calls| next.iter().map(|count| of(*calls, *count))).collect()
        };
        let mut likely = match (kind, is_cold) {
            (Kind::Small, false) => each(&[Calls::ReadWrite, Calls::CopyRange, Calls::Cached]),
            (Kind::Small, true) => vec![
                of(Calls::ReadWrite, 8),
                of(Calls::ReadWrite, 32),
                of(Calls::CopyRange, 32),
                of(Calls::Readers, 16),
                of(Calls::Readers, 64),
            ],
            (Kind::Large, false) => each(&[Calls::ReadWrite, Calls::CopyRange]),
            (Kind::Large, true) => vec![
                of(Calls::ReadWrite, 8).with(256),
                of(Calls::CopyRange, 2),
                of(Calls::CopyRange, 8),
                of(Calls::CopyRange, 32),
            ],
            (Kind::One, _) => vec![
                of(Calls::CopyRange, 1),
                of(Calls::ReadWrite, 1),
                of(Calls::ReadWrite, 1).with(256),
                of(Calls::Pipe, 2),
                of(Calls::Mapped, 1),
                of(Calls::Mapped, 2).with(128),
            ],
        };
        if kind != Kind::Small && is_cold {
            likely.push(of(Calls::Direct, 8).with(256));
        }
        likely
    }
}

/// Returns these numbers of threads once each, in order, up to the maximum.
fn threads(counts: &[usize]) -> Vec<usize> {
    let counts = counts.iter().map(|count| (*count).clamp(1, MOST_THREADS));
    counts.collect::<std::collections::BTreeSet<usize>>().into_iter().collect()
}
