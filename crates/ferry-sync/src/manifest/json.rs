//! Manifests as lines of JSON, described by `docs/manifest.schema.json`.
//!
//! The first line is the header, then comes a line for each file, and the last line counts them: a manifest without it is
//! incomplete.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use ferry_copy::{Algorithm, Digest};
use ferry_io::Time;
use serde::{Deserialize, Serialize};

use super::note::{Content, Facts};
use super::text;
use crate::plan::PathText;

/// Version of the layout. It increases when a reader of the old one would misread the new one.
pub const SCHEMA: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line {
    Manifest(Header),
    File(File),
    End(End),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) schema: u32,
    made_by: String,
    pub(super) algorithm: AlgorithmName,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AlgorithmName {
    Blake3,
    Sha256,
}

impl From<AlgorithmName> for Algorithm {
    fn from(name: AlgorithmName) -> Self {
        match name {
            AlgorithmName::Blake3 => Self::Blake3,
            AlgorithmName::Sha256 => Self::Sha256,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) path: PathText,
    hash: String,
    size: u64,
    /// Four octal digits.
    mode: String,
    /// Seconds and nanoseconds since 1970.
    modified: (i64, u32),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct End {
    pub(super) files: u64,
}

impl File {
    /// Returns the hash and the attributes.
    pub(super) fn content(&self) -> Result<(Digest, Facts), &'static str> {
        let digits = self.mode.len() == 4 && self.mode.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
        let mode = u32::from_str_radix(&self.mode, 8).ok().filter(|_| digits);
        let mode = mode.ok_or("its mode has other characters than four octal digits")?;
        let (seconds, nanoseconds) = self.modified;
        let facts = Facts { size: self.size, mode, modified: Time { seconds, nanoseconds } };
        Ok((text::digest(self.hash.as_bytes())?, facts))
    }
}

pub(super) fn begin(out: &mut impl Write, algorithm: Algorithm) -> io::Result<()> {
    let algorithm = match algorithm {
        Algorithm::Blake3 => AlgorithmName::Blake3,
        Algorithm::Sha256 => AlgorithmName::Sha256,
    };
    let made_by = concat!("ferry ", env!("CARGO_PKG_VERSION")).to_owned();
    write(out, &Line::Manifest(Header { schema: SCHEMA, made_by, algorithm }))
}

pub(super) fn file(out: &mut impl Write, path: &[u8], content: &Content) -> io::Result<()> {
    let Some(Facts { size, mode, modified }) = content.facts else { return Ok(()) };
    let path = PathText::from(Path::new(OsStr::from_bytes(path)));
    let (hash, mode) = (content.digest.to_string(), format!("{mode:04o}"));
    write(
        out,
        &Line::File(File { path, hash, size, mode, modified: (modified.seconds, modified.nanoseconds) }),
    )
}

pub(super) fn end(out: &mut impl Write, files: u64) -> io::Result<()> {
    write(out, &Line::End(End { files }))
}

fn write(out: &mut impl Write, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}
