//! How a file was copied, as `--debug` tells it.

use std::fmt;

use ferry_io::{FileKind, Stat};

use crate::abilities::Abilities;
use crate::options::{Options, Reflink, Sparse};
use crate::report::Method;

#[cfg(test)]
mod tests;

/// What was made use of for a file's bytes; `Display` gives GNU cp's words.
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

/// What was made use of where this method was taken.
pub(crate) fn how(
    options: &Options,
    abilities: &Abilities,
    source: &Stat,
    target: FileKind,
    method: Method,
) -> How {
    if method == Method::Reflink {
        return How { offload: "unknown", reflink: "yes", sparse: "unknown" };
    }
    let are_files = source.kind == FileKind::Regular && target == FileKind::Regular;
    let offload = match method {
        Method::Offload => "yes",
        Method::Nothing | Method::Reflink => "unknown",
        Method::Pipeline | Method::Direct | Method::Whole if are_files && abilities.may_offload() => {
            "avoided"
        }
        Method::Pipeline | Method::Direct | Method::Whole => "unsupported",
    };
    let reflink = match options.reflink {
        Reflink::Never => "no",
        Reflink::Auto | Reflink::Always if are_files && abilities.may_clone() => "no",
        Reflink::Auto | Reflink::Always => "unsupported",
    };
    let sparse = match options.sparse {
        _ if !are_files || source.size == 0 => "no",
        Sparse::Always if source.may_have_holes() => "SEEK_HOLE + zeros",
        Sparse::Always => "zeros",
        Sparse::Auto if source.may_have_holes() => "SEEK_HOLE",
        Sparse::Auto | Sparse::Never => "no",
    };
    How { offload, reflink, sparse }
}
