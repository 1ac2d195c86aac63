//! Describes a request and its result for an event.

use rustix::io::Errno;

use super::{Asked, Event};
use crate::error::Operation;
use crate::inbox::Inbox;
use crate::loaded::Content;
use crate::name::Name;
use crate::op::{AT_POSITION, FileOrEntry, Op, Outcome, Sync};
use crate::route::{Reason, Route};
use crate::slots::Key;
use crate::vectored;

/// Describes a request of the running fiber.
fn described(op: &Op, route: Route, reason: Reason) -> Asked<'_> {
    Asked {
        kind: op.operation() as u8,
        fiber: super::running_fiber(),
        name: name_of(op),
        size: size_of(op),
        offset: offset_of(op),
        route: route as u8,
        reason: reason as u8,
    }
}

/// Records that an operation leaves its worker.
#[inline]
pub(crate) fn queued(key: Key, op: &Op, (route, reason): (Route, Reason), asked: u64) {
    if super::is_on() {
        let now = super::clock();
        let asked_for = described(op, route, reason);
        let waited = now.saturating_sub(asked);
        super::record_at(now, &Event::Queued { key: key.into(), asked: asked_for, waited });
    }
}

/// Records an operation that ran inline.
#[inline]
pub(crate) fn ran(op: &Op, (route, reason): (Route, Reason), began: u64, result: &Result<Outcome, Errno>) {
    if super::is_on() {
        let took = super::clock().saturating_sub(began);
        let asked = described(op, route, reason);
        super::record_at(began, &Event::Ran { asked, took, result: result_of(result) });
    }
}

/// Records that bytes were stored in a new file.
#[inline]
pub(crate) fn stored(name: &Name, size: u64, reason: Reason, began: u64) {
    if super::is_on() {
        let took = super::clock().saturating_sub(began);
        let asked = Asked {
            kind: Operation::Store as u8,
            fiber: super::running_fiber(),
            name: name.as_bytes(),
            size,
            offset: Some(0),
            route: Route::Inline as u8,
            reason: reason as u8,
        };
        let result = i64::try_from(size).unwrap_or(i64::MAX);
        super::record_at(began, &Event::Ran { asked, took, result });
    }
}

/// Records that a thread of the pool begins a worker's operation.
pub(crate) fn started(owner: &Inbox, key: Key) {
    super::record(&Event::Started { worker: owner.number, key: key.into() });
}

/// Records that a thread of the pool has results.
pub(crate) fn finished(owner: &Inbox, keys: impl IntoIterator<Item = Key>) {
    if super::is_on() {
        for key in keys {
            super::record(&Event::Finished { worker: owner.number, key: key.into() });
        }
        super::tell_descriptors();
    }
}

/// The result as a count, or as a negative error number.
pub(crate) fn result_of(result: &Result<Outcome, Errno>) -> i64 {
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    match result {
        Ok(Outcome::Done | Outcome::Descriptor(_) | Outcome::Stat(_) | Outcome::Offset(None)) => 0,
        Ok(Outcome::Offset(Some(offset))) => i64::try_from(*offset).unwrap_or(i64::MAX),
        Ok(Outcome::Count(bytes)) => count(*bytes),
        Ok(Outcome::Bytes(bytes)) => count(bytes.len()),
        Ok(Outcome::Entries(entries)) => count(entries.entries.len()),
        Ok(Outcome::Examined(found)) => count(found.len()),
        Ok(Outcome::Entered(entered)) => count(entered.2.entries.len()),
        Ok(Outcome::Loaded(loaded)) => match &loaded.content {
            Content::Whole(block) | Content::Begun(_, block) => count(block.as_slice().len()),
            Content::Stored(_, bytes) => i64::try_from(*bytes).unwrap_or(i64::MAX),
            Content::Open(_) => 0,
        },
        Err(errno) => -i64::from(errno.raw_os_error()),
    }
}

/// The path component of a request, or empty.
pub(crate) fn name_of(op: &Op) -> &[u8] {
    match op {
        Op::Open { name, .. }
        | Op::Enter { name, .. }
        | Op::MakeDirectory { name, .. }
        | Op::Symlink { name, .. }
        | Op::Link { name, .. }
        | Op::MakeNode { name, .. }
        | Op::Rename { name, .. }
        | Op::Unlink { name, .. }
        | Op::Load { name, .. }
        | Op::Chain { name, .. } => name.as_bytes(),
        Op::LinkOpen { new_name, .. } => new_name.as_bytes(),
        Op::Stat { place, .. }
        | Op::ReadLink { place }
        | Op::ListXattr { place }
        | Op::GetXattr { place, .. } => match place {
            FileOrEntry::Entry(_, name) => name.as_bytes(),
            FileOrEntry::Open(_) => &[],
        },
        Op::OpenUnnamed { .. }
        | Op::Read { .. }
        | Op::Write { .. }
        | Op::ReadVectored { .. }
        | Op::WriteVectored { .. }
        | Op::CopyRange { .. }
        | Op::CopyPieces { .. }
        | Op::Clone { .. }
        | Op::Seek { .. }
        | Op::Allocate { .. }
        | Op::Truncate { .. }
        | Op::Sync { .. }
        | Op::SetOwner { .. }
        | Op::SetMode { .. }
        | Op::SetTimes { .. }
        | Op::SetXattr { .. }
        | Op::List { .. }
        | Op::Examine { .. }
        | Op::Close { .. } => &[],
    }
}

fn size_of(op: &Op) -> u64 {
    match op {
        Op::Read { size, .. } | Op::CopyRange { size, .. } | Op::CopyPieces { size, .. } => *size as u64,
        Op::Write { block: Some(block), skip, .. } => block.as_slice().len().saturating_sub(*skip) as u64,
        Op::ReadVectored { blocks, skip, .. } => vectored::capacity(blocks).saturating_sub(*skip) as u64,
        Op::WriteVectored { blocks, skip, .. } => vectored::size(blocks).saturating_sub(*skip) as u64,
        Op::Allocate { size, .. }
        | Op::Truncate { size, .. }
        | Op::Sync { how: Sync::Start { size, .. } | Sync::Finish { size, .. }, .. } => *size,
        Op::Chain { block: Some(block), .. } => block.capacity() as u64,
        Op::Write { block: None, .. }
        | Op::Chain { block: None, .. }
        | Op::Open { .. }
        | Op::OpenUnnamed { .. }
        | Op::Stat { .. }
        | Op::Clone { .. }
        | Op::Seek { .. }
        | Op::Sync { how: Sync::File | Sync::Data | Sync::Filesystem, .. }
        | Op::List { .. }
        | Op::Enter { .. }
        | Op::Examine { .. }
        | Op::MakeDirectory { .. }
        | Op::Symlink { .. }
        | Op::ReadLink { .. }
        | Op::Link { .. }
        | Op::LinkOpen { .. }
        | Op::MakeNode { .. }
        | Op::Rename { .. }
        | Op::Unlink { .. }
        | Op::SetOwner { .. }
        | Op::SetMode { .. }
        | Op::SetTimes { .. }
        | Op::ListXattr { .. }
        | Op::GetXattr { .. }
        | Op::SetXattr { .. }
        | Op::Load { .. }
        | Op::Close { .. } => 0,
    }
}

/// Offset of the request's first byte in the file, if it has one.
fn offset_of(op: &Op) -> Option<u64> {
    match op {
        Op::Read { at, .. }
        | Op::Write { at, .. }
        | Op::ReadVectored { at, .. }
        | Op::WriteVectored { at, .. }
        | Op::CopyRange { source_at: at, .. }
        | Op::CopyPieces { at, .. }
        | Op::Seek { at, .. }
        | Op::Allocate { at, .. }
        | Op::Sync { how: Sync::Start { at, .. } | Sync::Finish { at, .. }, .. } => {
            Some(*at).filter(|at| *at != AT_POSITION)
        }
        Op::Load { .. } | Op::Chain { .. } => Some(0),
        Op::Open { .. }
        | Op::OpenUnnamed { .. }
        | Op::Stat { .. }
        | Op::Clone { .. }
        | Op::Truncate { .. }
        | Op::Sync { how: Sync::File | Sync::Data | Sync::Filesystem, .. }
        | Op::List { .. }
        | Op::Enter { .. }
        | Op::Examine { .. }
        | Op::MakeDirectory { .. }
        | Op::Symlink { .. }
        | Op::ReadLink { .. }
        | Op::Link { .. }
        | Op::LinkOpen { .. }
        | Op::MakeNode { .. }
        | Op::Rename { .. }
        | Op::Unlink { .. }
        | Op::SetOwner { .. }
        | Op::SetMode { .. }
        | Op::SetTimes { .. }
        | Op::ListXattr { .. }
        | Op::GetXattr { .. }
        | Op::SetXattr { .. }
        | Op::Close { .. } => None,
    }
}
