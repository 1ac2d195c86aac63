//! Comparing by more than the attributes of stat(2): by the texts of links, extended attributes, and content.

use std::ffi::CStr;

use ferry_copy::{Algorithm, Digest, FailureKind, Gate, Verb, hash_file, is_kept_xattr};
use ferry_io::{Dir, Errno, File, Io, Name, OpenHow, Result, Stat, Time, Times, Xattr};

use crate::decide::Rules;
use crate::grain::{Grain, LATE, LONG_AGO};

/// Oldest time that ext4 and XFS can store. ferry gives it to targets that it leaves incomplete.
const OLDEST: Time = Time { seconds: i32::MIN as i64, nanoseconds: 0 };

/// Returns true if both links have one text.
pub(crate) async fn has_equal_text(source: &Dir, target: &Dir, name: &Name) -> Result<bool> {
    Ok(source.read_link(name).await? == target.read_link(name).await?)
}

/// Returns true if both entries have the same extended attributes and ACLs, as far as they are copied.
pub(crate) async fn has_equal_xattrs(source: &Dir, target: &Dir, name: &Name, rules: &Rules) -> Result<bool> {
    if !rules.xattrs {
        return Ok(true);
    }
    let wanted = source.entry_xattrs(name).await?;
    let found = target.entry_xattrs(name).await?;
    Ok(are_equal(wanted, found, rules))
}

/// Returns true if two folders have the same extended attributes.
pub(crate) async fn have_equal_xattrs(source: &Dir, target: &Dir, rules: &Rules) -> Result<bool> {
    if !rules.xattrs {
        return Ok(true);
    }
    let wanted = source.as_file().xattrs().await?;
    let found = target.as_file().xattrs().await?;
    Ok(are_equal(wanted, found, rules))
}

/// Returns true if both have the same extended attributes, as far as they are copied.
pub(crate) fn are_equal(mut wanted: Vec<Xattr>, mut found: Vec<Xattr>, rules: &Rules) -> bool {
    for side in [&mut wanted, &mut found] {
        side.retain(|(name, _)| counts(name, rules));
        side.sort_unstable();
    }
    wanted == found
}

/// Returns true if two entries are compared by an attribute. Only root may set those of other namespaces than `user`, ACLs
/// aside.
fn counts(name: &CStr, rules: &Rules) -> bool {
    let is_settable = [&b"user."[..], b"system.posix_acl_"];
    is_kept_xattr(name)
        && (rules.owners || is_settable.iter().any(|start| name.to_bytes().starts_with(start)))
}

/// Result of comparing the content of two files of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bytes {
    Equal,
    Different,
    /// One of the files is another than was examined, or was written to while it was read.
    Changed,
}

/// Compares the content of two files that were examined before.
pub(crate) async fn compare_content(
    (io, gate): (&Io, Option<&Gate>),
    (source, source_seen): (&Dir, &Stat),
    (target, target_seen): (&Dir, &Stat),
    name: &Name,
) -> std::result::Result<Bytes, FailureKind> {
    let (of_source, of_target) = (failed(Verb::Read), failed(Verb::ReadTarget));
    let source = source.open(name, OpenHow::read()).await.map_err(of_source)?;
    let target = target.open(name, OpenHow::read()).await.map_err(of_target)?;
    let equal = has_equal_bytes((io, gate), &source, &target).await?;
    // Asked after reading: what was written meanwhile has changed the time.
    for (file, seen, verb) in [(&source, source_seen, Verb::Stat), (&target, target_seen, Verb::StatTarget)] {
        let now = file.stat().await.map_err(failed(verb))?;
        let is_seen = now.is_same_file(seen) && now.kind == seen.kind;
        if !is_seen || (now.size, now.times.modified) != (seen.size, seen.times.modified) {
            return Ok(Bytes::Changed);
        }
    }
    Ok(if equal { Bytes::Equal } else { Bytes::Different })
}

/// Returns the hash of a file that was examined before; `None` if it has changed since.
pub(crate) async fn hash(
    (io, gate): (&Io, Option<&Gate>),
    dir: &Dir,
    name: &Name,
    seen: &Stat,
    algorithm: Algorithm,
) -> Result<Option<Digest>> {
    let file = dir.open(name, OpenHow::read()).await?;
    hash_file((io, gate), &file, seen, algorithm).await
}

fn failed(verb: Verb) -> impl Fn(ferry_io::Error) -> FailureKind {
    move |error| FailureKind::Io { verb, error }
}

async fn has_equal_bytes(
    (io, gate): (&Io, Option<&Gate>),
    source: &File,
    target: &File,
) -> std::result::Result<bool, FailureKind> {
    let mut block = io.block().await.map_err(failed(Verb::Read))?;
    let mut at = 0;
    loop {
        let _in_flight = Gate::begin(gate).await.map_err(failed(Verb::Read))?;
        let (back, count) = source.read_at(block, at).await;
        let wanted = back.as_slice()[..count.map_err(failed(Verb::Read))?].to_vec();
        // The same block is used again: a fiber that holds one must not wait for another.
        let (back, count) = target.read_at(back, at).await;
        block = back;
        let found = &block.as_slice()[..count.map_err(failed(Verb::ReadTarget))?];
        let size = wanted.len().min(found.len());
        if wanted[..size] != found[..size] || size == 0 && wanted.len() != found.len() {
            return Ok(false);
        }
        if size == 0 {
            return Ok(true);
        }
        at += size as u64;
    }
}

/// Abilities of a filesystem that decide which differences mean anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ability {
    /// The times that it stores.
    pub(crate) grain: Grain,
    /// The time that it stores for incomplete targets.
    pub(crate) unfinished: Time,
    /// Set if it stores extended attributes.
    pub(crate) xattrs: bool,
}

/// FAT and exFAT (statfs(2)).
const MSDOS_MAGIC: u64 = 0x4d44;
const EXFAT_MAGIC: u64 = 0x2011_bab0;
/// 1980-01-01 and 2107-12-31, 23:59:58.
const EARLIEST_FAT: i64 = 315_532_800;
const LATEST_FAT: i64 = 4_354_819_198;

/// Finds out what the filesystem of the target stores, by a file without a name. Where such files are unsupported, the
/// filesystem's kind decides.
pub(crate) async fn ability(target: &Dir) -> Ability {
    let known = |grain| Ability { grain, unfinished: grain.stored(OLDEST), xattrs: true };
    // FAT and exFAT count from 1980, FAT in the time zone of its mount.
    let [first, last] = [EARLIEST_FAT, LATEST_FAT].map(|seconds| Time { seconds, nanoseconds: 0 });
    let by_kind = match target.filesystem_magic() {
        Some(MSDOS_MAGIC) => Ability { xattrs: false, ..known(Grain::of_seconds(2).within(first, last)) },
        Some(EXFAT_MAGIC) => {
            Ability { xattrs: false, ..known(Grain::of_nanoseconds(10_000_000).within(first, last)) }
        }
        Some(_) | None => known(Grain::UNKNOWN),
    };
    probe(target).await.unwrap_or(by_kind)
}

async fn probe(target: &Dir) -> Result<Ability> {
    let file = target.open_unnamed(0o600).await?;
    let stored = async |time| {
        file.set_times(Times { accessed: time, modified: time }).await?;
        Ok::<_, ferry_io::Error>(file.stat().await?.times.modified)
    };
    let grain =
        Grain::of_stored(stored(Grain::PROBE).await?).within(stored(LONG_AGO).await?, stored(LATE).await?);
    let unfinished = stored(OLDEST).await?;
    let lacks = file.set_xattr(c"user.ferry.probe", b"1").await.is_err_and(|e| e.is(Errno::OPNOTSUPP));
    Ok(Ability { grain, unfinished, xattrs: !lacks })
}
