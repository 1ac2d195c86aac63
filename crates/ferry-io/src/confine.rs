//! The flags that keep names in their folders, for every call that takes a name.
//!
//! A name is a single component ([`crate::Name`]), so only a link could lead elsewhere. Opens don't wait, because
//! another user may replace a file by a FIFO. The feature `unconfined` drops these flags to show that the tests of
//! races fail without them (`cargo xtask check-confinement`); release builds refuse it.

use rustix::fs::{AtFlags, OFlags};

#[cfg(all(feature = "unconfined", not(debug_assertions)))]
compile_error!("the feature `unconfined` is for a test that must fail with it, never for a release");

/// True in every build but the one that shows the tests of races to fail.
pub const CONFINED: bool = !cfg!(feature = "unconfined");

/// Flags of open(2), which follows links only with `follow`.
pub(crate) fn open_flags(flags: OFlags, follow: bool) -> OFlags {
    if !CONFINED {
        return flags - OFlags::NONBLOCK - OFlags::NOFOLLOW;
    }
    if follow { flags } else { flags | OFlags::NOFOLLOW }
}

/// Flags of other calls that take a name.
pub(crate) fn at_flags(follow: bool) -> AtFlags {
    if follow || !CONFINED { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW }
}

/// [`at_flags`] as libc has them.
pub(crate) fn at_bits(follow: bool) -> libc::c_int {
    at_flags(follow).bits().cast_signed()
}
