//! Described trees made on disk: entries first, then hard links, then the metadata of directories.
//!
//! This order preserves everything. Linking a name changes its directory's times, an unreadable directory cannot be
//! filled, and a default ACL or setgid bit would be inherited. So directories are 0700 while they are filled, and
//! get their metadata last, the deepest first. An entry's owner is set first, because that clears setuid and
//! capabilities; then attributes and ACLs, mode, and times.

use crate::acl;
use crate::cursor::Cursor;
use crate::describe::{Content, Meta, Node, NodeKind, Tree, split};
use crate::error::{Context, Error, Operation};
use crate::{open, xattr};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, chmodat, chownat, ftruncate,
    linkat, makedev, mkdirat, mknodat, openat, symlinkat, utimensat,
};
use rustix::io::Errno;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes made and written at a time.
const BLOCK_BYTES: usize = 1 << 20;

/// Makes `tree` at `path`. `path` must not exist, its parent must.
///
/// # Errors
/// The first call that fails, with its path in the tree. Entries made before remain.
pub fn make(tree: &Tree, path: &Path) -> Result<(), Error> {
    let bytes = path.as_os_str().as_bytes();
    let (base, base_name) = open::parent(bytes).context(Operation::Open, bytes)?;
    mkdirat(&base, base_name, Mode::RWXU).context(Operation::Create, bytes)?;
    let root = open::directory(&base, base_name).context(Operation::Open, bytes)?;
    let mut cursor = Cursor::new(root);
    let mut buffer = vec![0; BLOCK_BYTES];
    for (path, node) in tree.nodes().skip(1) {
        let (parent, name) = split(path);
        cursor.go(parent).context(Operation::Open, parent)?;
        make_one(&cursor, name, node, &mut buffer).map_err(|error| Error { path: path.to_vec(), ..error })?;
    }
    for (path, node) in tree.nodes() {
        if let NodeKind::HardLink(first) = &node.kind {
            link(&mut cursor, first, path)?;
        }
    }
    let directories = tree.nodes().rev().filter(|(_, node)| node.kind == NodeKind::Directory);
    for (inner, node) in directories.filter(|(path, _)| !path.is_empty()) {
        let (parent, name) = split(inner);
        cursor.go(parent).context(Operation::Open, parent)?;
        apply(cursor.directory(), name, node).map_err(|error| Error { path: inner.to_vec(), ..error })?;
    }
    tree.get(b"").map_or(Ok(()), |root| apply(&base, base_name, root))
}

/// Makes one entry with its metadata. Metadata of directories and hard links are left for later.
fn make_one(cursor: &Cursor, name: &[u8], node: &Node, buffer: &mut [u8]) -> Result<(), Error> {
    let directory = cursor.directory();
    let special = |kind, device| mknodat(directory, name, kind, Mode::RUSR | Mode::WUSR, device);
    match &node.kind {
        NodeKind::HardLink(_) => return Ok(()),
        NodeKind::Directory => return mkdirat(directory, name, Mode::RWXU).context(Operation::Create, name),
        NodeKind::File(content) => {
            let file = create(directory, name).context(Operation::Create, name)?;
            write_content(&file, content, buffer).context(Operation::Write, name)?;
        }
        NodeKind::Symlink(target) => {
            symlinkat(target.as_slice(), directory, name).context(Operation::Create, name)?;
        }
        NodeKind::Fifo => special(FileType::Fifo, 0).context(Operation::Create, name)?,
        NodeKind::Socket => special(FileType::Socket, 0).context(Operation::Create, name)?,
        NodeKind::CharacterDevice(major, minor) => {
            let device = makedev(*major, *minor);
            special(FileType::CharacterDevice, device).context(Operation::Create, name)?;
        }
        NodeKind::BlockDevice(major, minor) => {
            let device = makedev(*major, *minor);
            special(FileType::BlockDevice, device).context(Operation::Create, name)?;
        }
    }
    apply(directory, name, node)
}

/// Creates a new file that only its owner may open.
pub(crate) fn create(directory: impl AsFd, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::RUSR | Mode::WUSR)
}

pub(crate) fn write_content(file: &OwnedFd, content: &Content, buffer: &mut [u8]) -> rustix::io::Result<()> {
    for extent in content.extents() {
        let mut offset = extent.offset;
        while offset < extent.end() {
            let left = usize::try_from(extent.end() - offset).unwrap_or(usize::MAX);
            let size = left.min(buffer.len());
            let block = &mut buffer[..size];
            content.read(offset, block);
            write_all(file, block, offset)?;
            offset += u64::try_from(block.len()).unwrap_or(0);
        }
    }
    let written = content.extents().last().map_or(0, |extent| extent.end());
    if written == content.size() { Ok(()) } else { ftruncate(file, content.size()) }
}

fn write_all(file: impl AsFd, bytes: &[u8], offset: u64) -> rustix::io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let position = offset + u64::try_from(done).unwrap_or(0);
        match rustix::io::pwrite(&file, &bytes[done..], position) {
            Ok(0) => return Err(Errno::IO),
            Ok(size) => done += size,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn link(cursor: &mut Cursor, first: &[u8], path: &[u8]) -> Result<(), Error> {
    let (first_parent, first_name) = split(first);
    let (parent, name) = split(path);
    cursor.go(first_parent).context(Operation::Open, first_parent)?;
    let first_directory = cursor.directory().try_clone_to_owned().map_err(|_| Errno::MFILE);
    let first_directory = first_directory.context(Operation::Open, first_parent)?;
    cursor.go(parent).context(Operation::Open, parent)?;
    linkat(first_directory, first_name, cursor.directory(), name, AtFlags::empty())
        .context(Operation::Link, path)
}

fn apply(directory: impl AsFd, name: &[u8], node: &Node) -> Result<(), Error> {
    let Meta { mode, uid, gid, xattrs, access_acl, default_acl, .. } = &node.meta;
    if uid.is_some() || gid.is_some() {
        let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
        let changed = chownat(&directory, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW);
        changed.context(Operation::SetOwner, name)?;
    }
    let acls = [(acl::ACCESS_XATTR, access_acl), (acl::DEFAULT_XATTR, default_acl)];
    let acls = acls.iter().filter_map(|(key, acl)| acl.as_ref().map(|acl| (*key, acl.encode())));
    let xattrs = xattrs.iter().map(|(key, value)| (key.as_slice(), value.clone()));
    for (key, value) in xattrs.chain(acls) {
        xattr::set(&directory, name, key, &value).context(Operation::SetXattr, name)?;
    }
    if !matches!(node.kind, NodeKind::Symlink(_)) {
        let mode = Mode::from_raw_mode(*mode);
        chmodat(&directory, name, mode, AtFlags::empty()).context(Operation::SetMode, name)?;
    }
    set_times(directory, name, &node.meta)
}

fn set_times(directory: impl AsFd, name: &[u8], meta: &Meta) -> Result<(), Error> {
    let keep = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let spec = |time: Option<crate::attributes::Time>| {
        time.map_or(keep, |time| Timespec { tv_sec: time.seconds, tv_nsec: i64::from(time.nanoseconds) })
    };
    let times = Timestamps { last_access: spec(meta.atime), last_modification: spec(meta.mtime) };
    utimensat(directory, name, &times, AtFlags::SYMLINK_NOFOLLOW).context(Operation::SetTimes, name)
}
