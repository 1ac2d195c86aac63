//! `--debug`: the means by which GNU cp would have copied a file.
//!
//! Scripts read these lines, so they hold GNU cp's answer; `--explain` reports ferry's own method. The words depend on
//! the kernel's answers for this very file, so cp's calls are made: one byte is copied in advance by
//! copy_file_range(2), and taken back.

use ferry_io::{File, FileKind, Stat};

use crate::options::{Options, Reflink, Sparse};
use crate::report::{CpMeans, During as _, FailureKind, Verb};
use crate::target::Target;

#[cfg(test)]
mod tests;

/// Holes of a source, as far as its filesystem reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holes {
    /// It is all hole.
    All,
    /// It has holes; the first data begins here.
    Some(u64),
    /// It has none, or they can't be found out.
    None,
}

/// Answer of the kernel to an attempt to let it copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Copied,
    /// There was nothing to copy.
    Nothing,
    Refused,
}

/// Asks the kernel what it would do for this file, unless its extents are shared.
///
/// # Errors
/// If the byte that was copied to find out can't be taken back.
pub(crate) async fn find_out(
    options: &Options,
    stat: &Stat,
    source: &File,
    target: &Target<'_>,
) -> Result<CpMeans, FailureKind> {
    let holes = find_holes(stat, source).await;
    let attempt = match first_data(options, holes, target.kind) {
        Some(data) => attempt(source, &target.file, data).await,
        None => Attempt::Nothing,
    };
    take_back(target, attempt).await?;
    Ok(words(options, holes, target.kind, attempt))
}

/// Finds the holes of a file. GNU cp asks only if blocks are missing, counted in whole ones.
async fn find_holes(stat: &Stat, source: &File) -> Holes {
    if stat.kind != FileKind::Regular || stat.blocks >= stat.size / 512 {
        return Holes::None;
    }
    match source.seek_data(0).await {
        Ok(None) => Holes::All,
        Ok(Some(0)) => match source.seek_hole(0).await {
            Ok(Some(hole)) if hole < stat.size => Holes::Some(0),
            Ok(_) | Err(_) => Holes::None,
        },
        Ok(Some(data)) => Holes::Some(data),
        Err(_) => Holes::None,
    }
}

/// Returns the offset at which the kernel would begin to copy; `None` if it is not asked to.
fn first_data(options: &Options, holes: Holes, target: FileKind) -> Option<u64> {
    let wants_it = options.reflink != Reflink::Never && options.sparse != Sparse::Never;
    match holes {
        Holes::Some(data) if wants_it && !makes_holes(options, target) => Some(data),
        Holes::None if wants_it && !makes_holes(options, target) => Some(0),
        Holes::Some(_) | Holes::None | Holes::All => None,
    }
}

fn makes_holes(options: &Options, target: FileKind) -> bool {
    options.sparse == Sparse::Always && target == FileKind::Regular
}

async fn attempt(source: &File, target: &File, at: u64) -> Attempt {
    match source.copy_range(at, target, at, 1, true).await {
        Ok(0) => Attempt::Nothing,
        Ok(_) => Attempt::Copied,
        // The copy meets any other failure, too, and reports it.
        Err(_) => Attempt::Refused,
    }
}

/// Empties the target again: the copy would keep the byte if its place in the source becomes a hole.
async fn take_back(target: &Target<'_>, attempt: Attempt) -> Result<(), FailureKind> {
    if attempt != Attempt::Copied || target.kind != FileKind::Regular {
        return Ok(());
    }
    target.file.truncate(0).await.during(Verb::Write)
}

fn words(options: &Options, holes: Holes, target: FileKind, attempt: Attempt) -> CpMeans {
    let offload = match attempt {
        _ if holes == Holes::All => "unknown",
        _ if first_data(options, holes, target).is_none() => "avoided",
        Attempt::Copied => "yes",
        Attempt::Nothing => "unknown",
        Attempt::Refused => "unsupported",
    };
    let is_shared = options.reflink != Reflink::Never && options.sparse != Sparse::Never;
    let reflink = if is_shared { "unsupported" } else { "no" };
    let sparse = match (holes, makes_holes(options, target)) {
        (Holes::All, _) | (Holes::Some(_), false) => "SEEK_HOLE",
        (Holes::Some(_), true) => "SEEK_HOLE + zeros",
        (Holes::None, true) => "zeros",
        (Holes::None, false) => "no",
    };
    CpMeans { offload, reflink, sparse }
}
