//! What keeps a name from leading out of its folder: the flags of every call that takes one.
//!
//! All of them, of the plain calls and of the ring's, come from here. A name is a single component ([`crate::Name`]), so
//! only a link could lead elsewhere; and only what waits for nobody is opened, because another user may make a FIFO of a
//! file. The feature `unconfined` takes that away, so that the tests of races can be seen to fail without it
//! (`cargo xtask check-confinement`); a release can't be built with it.

use rustix::fs::{AtFlags, OFlags};

#[cfg(all(feature = "unconfined", not(debug_assertions)))]
compile_error!("the feature `unconfined` is for a test that must fail with it, never for a release");

/// Whether names are confined: in every build but that of the test which shows that others would fail without it.
pub const CONFINED: bool = !cfg!(feature = "unconfined");

/// The flags of an open(2) that follows links only if `follow` says so.
pub(crate) fn open_flags(flags: OFlags, follow: bool) -> OFlags {
    if !CONFINED {
        return flags - OFlags::NONBLOCK - OFlags::NOFOLLOW;
    }
    if follow { flags } else { flags | OFlags::NOFOLLOW }
}

/// Those of the other calls that take a name.
pub(crate) fn at_flags(follow: bool) -> AtFlags {
    if follow || !CONFINED { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW }
}

/// The same as libc has them.
pub(crate) fn at_bits(follow: bool) -> libc::c_int {
    at_flags(follow).bits().cast_signed()
}
