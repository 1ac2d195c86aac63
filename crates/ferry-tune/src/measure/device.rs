//! The device, bypassing the page cache: sufficient depth, best request size, throughput.
//!
//! A filesystem may accept O_DIRECT without honouring it: ext4 with data=journal buffers it, and an overlay
//! forwards it to what may be memory. So the kernel's report (STATX_DIOALIGN) decides first, then whether a block
//! that was read is cached. An overlay caches elsewhere: without that report (before Linux 6.1, or on btrfs) it
//! counts as not direct. One request in flight is a plain call, more go to the ring, so the curve of depths has a
//! step there.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use ferry_io::probe;
use ferry_lab::Failure;
use ferry_lab::load::{Load, RequestKind};
use ferry_lab::units::size;
use rustix::fs::{Advice, AtFlags, Mode, OFlags, StatxFlags, fadvise, fstatfs, statx};
use rustix::io::Errno;

use super::scale::{SEQUENTIAL_DEPTH, Scale};
use super::steps::{Steps, first_enough};
use super::work::WorkFile;
use crate::{Block, Depth, Direct, Figure};

const DEPTHS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Request sizes that are tried, in bytes.
const BLOCKS: [u64; 6] = [16 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20];
/// Size of a random request in bytes.
const RANDOM_BYTES: usize = 4096;
/// Number of subjects in each round: depths, blocks, and sequential and random reads and writes.
pub(super) const SUBJECTS: usize = DEPTHS.len() + BLOCKS.len() + 4;
/// Filesystems in memory, which accept O_DIRECT although they consist of cached pages (statfs(2)).
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
/// Magic number of an overlay (statfs(2)).
const OVERLAY: u64 = 0x794c_7630;
/// Number of offsets read before the file counts as cached: one page may be cached by chance.
const PLACES: u64 = 4;

/// Alignment of memory, and of offsets and sizes, for direct requests. 0 means unsupported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Alignment {
    pub(super) memory: u32,
    pub(super) offset: u32,
}

/// Returns the alignment that the filesystem reports (STATX_DIOALIGN, Linux 6.1).
pub(super) fn alignment(file: &File) -> Option<Alignment> {
    let found = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let is_told = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::DIOALIGN);
    is_told.then_some(Alignment { memory: found.stx_dio_mem_align, offset: found.stx_dio_offset_align })
}

/// Returns true if direct reads of 4 KiB bypass the page cache.
///
/// # Errors
/// The file cannot be opened again, or not read.
pub(super) fn is_direct(file: &WorkFile, folder: &Path) -> Result<bool, Failure> {
    let magic = fstatfs(&file.open).ok().and_then(|found| u64::try_from(found.f_type).ok());
    if magic.is_some_and(|magic| IN_MEMORY.contains(&magic)) {
        return Ok(false);
    }
    match alignment(&file.open) {
        Some(told) if told.memory == 0 || told.offset == 0 => return Ok(false),
        None if magic == Some(OVERLAY) => return Ok(false),
        _ => {}
    }
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let tried = rustix::fs::open(&file.path, flags, Mode::empty())
        .and_then(|direct| reads_past_the_cache(&direct.into(), file));
    match tried {
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(false),
        Err(errno) => Err(Failure::file("read a file past the page cache in", folder, &errno.into())),
        Ok(is_past) => Ok(is_past),
    }
}

/// Returns true if a block read from `direct` is not cached afterwards, at one of several offsets. Where that
/// cannot be determined (before Linux 6.5), O_DIRECT is trusted.
fn reads_past_the_cache(direct: &File, file: &WorkFile) -> rustix::io::Result<bool> {
    let mut memory = [0; 2 * RANDOM_BYTES];
    let start = memory.as_ptr().align_offset(RANDOM_BYTES);
    let block = memory.get_mut(start..start + RANDOM_BYTES).unwrap_or_default();
    let bytes = RANDOM_BYTES as u64;
    fadvise(&file.open, 0, None, Advice::DontNeed).ok();
    for place in 0..PLACES {
        let at = file.bytes / PLACES * place;
        if rustix::io::pread(direct, &mut *block, at)? < RANDOM_BYTES {
            return Ok(false);
        }
        if probe::data(&file.open, at, bytes).map_or(true, |found| found.bytes == 0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Measures the device, reads first.
pub(super) fn measure(
    file: &WorkFile,
    with_ring: bool,
    scale: &Scale,
    steps: &mut Steps<'_>,
) -> Result<Direct, Failure> {
    let device = Device { file, with_ring, lasts: Duration::from_millis(scale.load_ms) };
    let shapes: Vec<Shape> =
        DEPTHS.map(Shape::random).into_iter().chain(BLOCKS.map(Shape::sequential)).collect();
    let reads: Vec<(RequestKind, Shape)> = shapes.iter().map(|shape| (RequestKind::Read, *shape)).collect();
    let mut found = device.figures(&reads, steps)?.into_iter();
    let depths: Vec<Depth> =
        DEPTHS.into_iter().zip(&mut found).map(|(depth, iops)| Depth { depth, iops }).collect();
    let blocks: Vec<Block> =
        BLOCKS.into_iter().zip(found).map(|(bytes, mb_per_s)| Block { bytes, mb_per_s }).collect();
    let enough_depth = first_enough(&depths, |one| one.iops).map_or(1, |one| one.depth);
    let best_block = first_enough(&blocks, |one| one.mb_per_s).map_or(BLOCKS[0], |one| one.bytes);
    let (sequence, random) = (Shape::sequential(best_block), Shape::random(enough_depth));
    let [sequential_read, random_read] =
        device.each([(RequestKind::Read, sequence), (RequestKind::Read, random)], steps)?;
    // One after the other, because random writes fragment the file where filesystems copy on write.
    let [sequential_write] = device.each([(RequestKind::Write, sequence)], steps)?;
    let [random_write] = device.each([(RequestKind::Write, random)], steps)?;
    Ok(Direct {
        sequential_read,
        sequential_write,
        random_read,
        random_write,
        depths,
        enough_depth,
        blocks,
        best_block,
    })
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    is_random: bool,
    bytes: u64,
    depth: u32,
}

impl Shape {
    fn random(depth: u32) -> Self {
        Self { is_random: true, bytes: RANDOM_BYTES as u64, depth }
    }

    fn sequential(bytes: u64) -> Self {
        Self { is_random: false, bytes, depth: SEQUENTIAL_DEPTH }
    }
}

/// The file under load, and the conditions of each load.
struct Device<'f> {
    file: &'f WorkFile,
    with_ring: bool,
    lasts: Duration,
}

impl Device<'_> {
    fn each<const N: usize>(
        &self,
        subjects: [(RequestKind, Shape); N],
        steps: &mut Steps<'_>,
    ) -> Result<[Figure; N], Failure> {
        let found = self.figures(&subjects, steps)?;
        found.try_into().map_err(|_| Failure::Run("a figure is missing".to_owned()))
    }

    /// Returns the figures of these subjects: requests a second for random ones, MB/s for sequential ones.
    fn figures(
        &self,
        subjects: &[(RequestKind, Shape)],
        steps: &mut Steps<'_>,
    ) -> Result<Vec<Figure>, Failure> {
        let stop = steps.stop();
        let name = |(kind, shape): &(RequestKind, Shape)| {
            let order = if shape.is_random { "random" } else { "sequential" };
            format!("{order} {} of {}, {} in flight", kind.name(), size(shape.bytes), shape.depth)
        };
        steps.rounds(subjects, name, |(kind, shape), round| {
            let load = Load {
                kind: *kind,
                is_random: shape.is_random,
                block_bytes: shape.bytes,
                depth: shape.depth.into(),
                file_bytes: self.file.bytes,
                lasts: self.lasts,
                with_ring: self.with_ring,
            };
            let found = load.run(&self.file.path, round, stop)?;
            Ok(if shape.is_random { found.requests_per_second } else { found.bytes_per_second / 1e6 })
        })
    }
}
