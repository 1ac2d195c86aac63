//! One path component, checked once and cheap to share.

use std::ffi::{CStr, OsStr};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// One path component: not empty, no `/`, no NUL, neither `.` nor `..`. Clones share the bytes.
///
/// ```
/// use ferry_io::Name;
///
/// let name = Name::new(b"notes.txt").expect("one component of a path");
/// assert_eq!((name.as_bytes(), name.as_c_str()), (&b"notes.txt"[..], c"notes.txt"));
/// assert_eq!((name.as_os_str(), name.detached()), ("notes.txt".as_ref(), name.clone()));
/// assert!([&b""[..], b".", b"..", b"a/b", b"a\0b"].iter().all(|bytes| Name::new(bytes).is_none()));
/// ```
#[derive(Clone)]
pub struct Name {
    /// The name followed by a NUL, perhaps among others of the same listing.
    bytes: Arc<[u8]>,
    start: u32,
    /// Size in bytes without the NUL.
    size: u16,
}

impl Name {
    /// Returns a name, or `None` if `bytes` is not one path component (path_resolution(7)).
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let fits = u16::try_from(bytes.len()).is_ok_and(|size| size < u16::MAX);
        if !fits || bytes.is_empty() || bytes == b"." || bytes == b".." {
            return None;
        }
        if bytes.iter().any(|&b| b == b'/' || b == 0) {
            return None;
        }
        let shared: Arc<[u8]> = bytes.iter().copied().chain([0]).collect();
        Some(Self { bytes: shared, start: 0, size: u16::try_from(bytes.len()).ok()? })
    }

    /// Returns `..`, which callers outside the crate can't name.
    pub(crate) fn parent() -> Self {
        Self { bytes: Arc::from(*b"..\0"), start: 0, size: 2 }
    }

    /// Returns the name at `start` in `bytes`, where the kernel wrote it with its NUL.
    pub(crate) fn within(bytes: &Arc<[u8]>, start: u32, size: u16) -> Self {
        Self { bytes: Arc::clone(bytes), start, size }
    }

    /// Returns the name without its NUL.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        let start = self.start as usize;
        &self.bytes[start..start + usize::from(self.size)]
    }

    /// Returns the name as system calls take it.
    #[must_use]
    pub fn as_c_str(&self) -> &CStr {
        let start = self.start as usize;
        CStr::from_bytes_with_nul(&self.bytes[start..=start + usize::from(self.size)]).unwrap_or_default()
    }

    /// Returns the name as the standard library takes it.
    #[must_use]
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(self.as_bytes())
    }

    /// Returns a copy that shares no memory with a listing, for names that are kept.
    #[must_use]
    pub fn detached(&self) -> Self {
        let start = self.start as usize;
        let end = start + usize::from(self.size);
        Self { bytes: Arc::from(&self.bytes[start..=end]), start: 0, size: self.size }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Name {}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_bytes().escape_ascii().to_string(), f)
    }
}
