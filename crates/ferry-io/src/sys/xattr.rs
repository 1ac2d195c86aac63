//! Extended attributes of open files and of entries, including links.

use std::ffi::{CStr, CString};
use std::io::Write as _;

use rustix::fd::{AsRawFd as _, BorrowedFd};
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::{Newer, call, checked};
use crate::confine::at_bits;
use crate::entry::{Xattr, names_in, readable};
use crate::name::Name;
use crate::op::FileOrEntry;

const SYS_SETXATTRAT: libc::c_long = 463;
const SYS_GETXATTRAT: libc::c_long = 464;
const SYS_LISTXATTRAT: libc::c_long = 465;

static SETXATTRAT: Newer = Newer::new();
static GETXATTRAT: Newer = Newer::new();
static LISTXATTRAT: Newer = Newer::new();

/// The kernel's limits are 64 KiB for a list and for a value (xattr(7)).
const LARGEST: usize = 64 * 1024;
/// First size to try: clearing the largest buffer costs more than asking again.
const USUAL: usize = 512;

#[repr(C)]
struct XattrArgs {
    value: u64,
    size: u32,
    flags: u32,
}

/// Returns every readable attribute of an open file; none if the filesystem has none.
pub(super) fn all(file: BorrowedFd<'_>) -> Result<Vec<Xattr>, Errno> {
    let names = match sized(|names| call(|| rustix::fs::flistxattr(file, &mut *names))) {
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        answer => answer?,
    };
    // Some are listed although the filesystem does not support them.
    let missing = |errno| if errno == Errno::OPNOTSUPP { Errno::NODATA } else { errno };
    readable(names_in(&names), |name| get_open(file, name).map_err(missing))
}

/// Returns every readable attribute of an entry; none if the filesystem has none. A link is not followed.
pub(super) fn of_entry(dir: BorrowedFd<'_>, name: &Name) -> Result<Vec<Xattr>, Errno> {
    let names = match sized(|names| list_entry(dir, name, names)) {
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        answer => answer?,
    };
    // A value that is listed but unsupported is an error, which the caller meets again.
    readable(names_in(&names), |attribute| get_entry(dir, name, attribute))
}

/// Returns true if an entry has no attributes. Without a buffer the kernel allocates none either; it answers with the size
/// of the list.
pub(super) fn has_none(dir: BorrowedFd<'_>, name: &Name) -> Result<bool, Errno> {
    match list_entry(dir, name, &mut []) {
        Ok(size) => Ok(size == 0),
        Err(Errno::OPNOTSUPP) => Ok(true),
        Err(errno) => Err(errno),
    }
}

/// Gets bytes of unknown size: in a small buffer, or in the largest one if that is too small.
fn sized(get: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut small = [0_u8; USUAL];
    match get(&mut small) {
        Ok(size) => Ok(small[..size].to_vec()),
        Err(Errno::RANGE) => {
            let mut large = vec![0_u8; LARGEST];
            let size = get(&mut large)?;
            large.truncate(size);
            Ok(large)
        }
        Err(errno) => Err(errno),
    }
}

pub(super) fn list(place: &FileOrEntry) -> Result<Vec<u8>, Errno> {
    sized(|names| list_into(place, names))
}

fn list_into(place: &FileOrEntry, names: &mut [u8]) -> Result<usize, Errno> {
    match place {
        FileOrEntry::Open(file) => match call(|| rustix::fs::flistxattr(file.fd(), &mut *names)) {
            // A folder opened with O_PATH.
            Err(Errno::BADF) => match LISTXATTRAT.answer(|| list_at(At::itself(file.fd()), names)) {
                Some(Err(Errno::ACCESS | Errno::NOTDIR)) | None => {
                    let path = descriptor_path(file.fd());
                    call(|| rustix::fs::listxattr(path.as_c_str(), &mut *names))
                }
                Some(answer) => answer,
            },
            answer => answer,
        },
        FileOrEntry::Entry(dir, name) => list_entry(dir.fd(), name, names),
    }
}

fn list_entry(dir: BorrowedFd<'_>, name: &Name, names: &mut [u8]) -> Result<usize, Errno> {
    match LISTXATTRAT.answer(|| list_at(At::entry(dir, name), names)) {
        Some(answer) => answer,
        None => {
            let path = entry_path(dir, name);
            LISTXATTRAT.instead(call(|| rustix::fs::llistxattr(path.as_c_str(), &mut *names)))
        }
    }
}

pub(super) fn get(place: &FileOrEntry, attribute: &CStr) -> Result<Vec<u8>, Errno> {
    match place {
        FileOrEntry::Open(file) => match get_open(file.fd(), attribute) {
            Err(Errno::BADF) => {
                let path = || descriptor_path(file.fd());
                get_somehow(At::itself(file.fd()), attribute, |value| {
                    call(|| rustix::fs::getxattr(path().as_c_str(), attribute, &mut *value))
                })
            }
            answer => answer,
        },
        FileOrEntry::Entry(dir, name) => get_entry(dir.fd(), name, attribute),
    }
}

fn get_entry(dir: BorrowedFd<'_>, name: &Name, attribute: &CStr) -> Result<Vec<u8>, Errno> {
    let path = || entry_path(dir, name);
    get_somehow(At::entry(dir, name), attribute, |value| {
        call(|| rustix::fs::lgetxattr(path().as_c_str(), attribute, &mut *value))
    })
}

/// Gets an attribute by the newer call, or else by `older`.
fn get_somehow(
    at: At<'_>,
    attribute: &CStr,
    older: impl Fn(&mut [u8]) -> Result<usize, Errno>,
) -> Result<Vec<u8>, Errno> {
    sized(|value| match GETXATTRAT.answer(|| get_at(at, attribute, value)) {
        Some(Err(Errno::ACCESS | Errno::NOTDIR)) => older(value),
        Some(answer) => answer,
        None => GETXATTRAT.instead(older(value)),
    })
}

/// Sets an attribute, or removes it if there is no value.
pub(super) fn set(file: BorrowedFd<'_>, attribute: &CStr, value: Option<&[u8]>) -> Result<(), Errno> {
    let Some(value) = value else { return remove(file, attribute) };
    let flags = XattrFlags::empty();
    match call(|| rustix::fs::fsetxattr(file, attribute, value, flags)) {
        Err(Errno::BADF) => match SETXATTRAT.answer(|| set_at(At::itself(file), attribute, value)) {
            Some(Err(Errno::ACCESS | Errno::NOTDIR)) | None => {
                let path = descriptor_path(file);
                call(|| rustix::fs::setxattr(path.as_c_str(), attribute, value, flags))
            }
            Some(answer) => answer,
        },
        answer => answer,
    }
}

/// Removes an attribute; through its path in /proc if the file was opened with O_PATH.
fn remove(file: BorrowedFd<'_>, attribute: &CStr) -> Result<(), Errno> {
    match call(|| rustix::fs::fremovexattr(file, attribute)) {
        Err(Errno::BADF) => {
            let path = descriptor_path(file);
            call(|| rustix::fs::removexattr(path.as_c_str(), attribute))
        }
        answer => answer,
    }
}

fn get_open(file: BorrowedFd<'_>, attribute: &CStr) -> Result<Vec<u8>, Errno> {
    sized(|value| call(|| rustix::fs::fgetxattr(file, attribute, &mut *value)))
}

/// Builds `/proc/self/fd/N`, for kernels without a call that takes the descriptor.
pub(super) fn descriptor_path(fd: BorrowedFd<'_>) -> CString {
    path_of(format!("/proc/self/fd/{}", fd.as_raw_fd()).into_bytes())
}

/// Builds `/proc/self/fd/N/NAME`, for kernels before Linux 6.13.
fn entry_path(dir: BorrowedFd<'_>, name: &Name) -> CString {
    let mut path = Vec::with_capacity(300);
    if write!(path, "/proc/self/fd/{}/", dir.as_raw_fd()).is_ok() {
        path.extend_from_slice(name.as_bytes());
    }
    path_of(path)
}

/// Neither numbers nor names contain a NUL.
fn path_of(bytes: Vec<u8>) -> CString {
    CString::new(bytes).unwrap_or_default()
}

/// Subject of the newer calls.
#[derive(Clone, Copy)]
struct At<'a> {
    dir: BorrowedFd<'a>,
    name: &'a CStr,
    flags: libc::c_int,
}

impl<'a> At<'a> {
    /// An entry; links are not followed.
    fn entry(dir: BorrowedFd<'a>, name: &'a Name) -> Self {
        Self { dir, name: name.as_c_str(), flags: at_bits(false) }
    }

    /// A folder opened with O_PATH, which the empty name does not accept. EACCES if it can't be searched; ENOTDIR for
    /// other types.
    fn itself(dir: BorrowedFd<'a>) -> Self {
        Self { dir, name: c".", flags: 0 }
    }
}

fn list_at(at: At<'_>, names: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the name ends in NUL; the kernel writes at most `names.len()` bytes there.
    let answer = unsafe {
        libc::syscall(
            SYS_LISTXATTRAT,
            at.dir.as_raw_fd(),
            at.name.as_ptr(),
            at.flags,
            names.as_mut_ptr(),
            names.len(),
        )
    };
    checked(answer)
}

fn get_at(at: At<'_>, attribute: &CStr, value: &mut [u8]) -> Result<usize, Errno> {
    let size = u32::try_from(value.len()).map_err(|_| Errno::INVAL)?;
    let args = XattrArgs { value: value.as_mut_ptr().addr() as u64, size, flags: 0 };
    attribute_at(SYS_GETXATTRAT, at, attribute, &args)
}

fn set_at(at: At<'_>, attribute: &CStr, value: &[u8]) -> Result<(), Errno> {
    let size = u32::try_from(value.len()).map_err(|_| Errno::INVAL)?;
    let args = XattrArgs { value: value.as_ptr().addr() as u64, size, flags: 0 };
    attribute_at(SYS_SETXATTRAT, at, attribute, &args).map(|_| ())
}

fn attribute_at(
    number: libc::c_long,
    at: At<'_>,
    attribute: &CStr,
    args: &XattrArgs,
) -> Result<usize, Errno> {
    // SAFETY: both strings end in NUL; `args` has the kernel's layout, and its value is `args.size` bytes that the
    // caller holds during the call.
    let answer = unsafe {
        libc::syscall(
            number,
            at.dir.as_raw_fd(),
            at.name.as_ptr(),
            at.flags,
            attribute.as_ptr(),
            args as *const XattrArgs,
            size_of::<XattrArgs>(),
        )
    };
    checked(answer)
}
