//! How GNU cp would have copied a file, as `--debug` tells it.
//!
//! Scripts read these lines, so they hold GNU cp's answer, not ferry's way, which `--explain` tells. The words depend on
//! what the kernel answers for this very file: the same questions are asked. One byte is copied in advance by
//! copy_file_range(2), and taken back.

use std::fmt;

use ferry_io::{File, FileKind, Stat};

use crate::options::{Options, Reflink, Sparse};
use crate::report::{FailureKind, Method, Verb};
use crate::target::Target;

#[cfg(test)]
mod tests;

/// Means that GNU cp would have used for a file's bytes; `Display` gives its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct How {
    offload: &'static str,
    reflink: &'static str,
    sparse: &'static str,
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offload, reflink, sparse } = self;
        write!(f, "copy offload: {offload}, reflink: {reflink}, sparse detection: {sparse}")
    }
}

impl How {
    /// The words for a file that was copied by this method: extents that are shared leave nothing else to tell.
    pub(crate) fn if_not_shared(self, method: Method) -> Self {
        match method {
            Method::Reflink => Self { offload: "unknown", reflink: "yes", sparse: "unknown" },
            Method::Offload | Method::Pipeline | Method::Direct | Method::Whole | Method::Nothing => self,
        }
    }
}

/// Where the bytes of a source are, as far as its filesystem tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holes {
    /// Nowhere: it is all hole.
    All,
    /// There are holes; the first data begins here.
    Some(u64),
    /// None, or they can't be asked for.
    None,
}

/// What the kernel answers to an attempt to let it copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Copied,
    /// Nothing was there to copy.
    Nothing,
    Refused,
}

/// Asks the kernel what it would do for this file, unless its extents are shared.
///
/// # Errors
/// If the byte that was copied to find out can't be taken back.
pub(crate) async fn find_out(
    options: &Options,
    (stat, source): (&Stat, &File),
    target: &Target<'_>,
) -> Result<How, FailureKind> {
    let holes = find_holes(stat, source).await;
    let attempt = match first_data(options, holes, target.kind) {
        Some(data) => attempt(source, &target.file, data).await,
        None => Attempt::Nothing,
    };
    take_back(target, attempt).await?;
    Ok(words(options, holes, target.kind, attempt))
}

/// Whether a file has holes: GNU cp asks only where blocks are missing, counted in whole ones.
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

/// Where the kernel would begin to copy; `None` if it is not asked to.
fn first_data(options: &Options, holes: Holes, target: FileKind) -> Option<u64> {
    let wants_it = options.reflink != Reflink::Never && options.sparse != Sparse::Never;
    match holes {
        Holes::Some(data) if wants_it && !makes_holes(options, target) => Some(data),
        Holes::None if wants_it && !makes_holes(options, target) => Some(0),
        Holes::Some(_) | Holes::None | Holes::All => None,
    }
}

/// Returns true if zeros become holes.
fn makes_holes(options: &Options, target: FileKind) -> bool {
    options.sparse == Sparse::Always && target == FileKind::Regular
}

async fn attempt(source: &File, target: &File, at: u64) -> Attempt {
    match source.copy_range(at, target, at, 1, true).await {
        Ok(0) => Attempt::Nothing,
        Ok(_) => Attempt::Copied,
        // If it fails for another reason, so does the copy, which tells of it.
        Err(_) => Attempt::Refused,
    }
}

/// Empties the target again: the copy would leave the byte there if the source has no data at its place by then.
async fn take_back(target: &Target<'_>, attempt: Attempt) -> Result<(), FailureKind> {
    if attempt != Attempt::Copied || target.kind != FileKind::Regular {
        return Ok(());
    }
    target.file.truncate(0).await.map_err(|error| FailureKind::Io { verb: Verb::Write, error })
}

fn words(options: &Options, holes: Holes, target: FileKind, attempt: Attempt) -> How {
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
    How { offload, reflink, sparse }
}
