//! Reading a manifest: of ferry, b3sum or sha256sum.

use std::io::{self, BufRead, Read as _};

use ferry_copy::Algorithm;
use ferry_io::Name;

use super::json::{self, Line};
use super::note::{Content, Note};
use super::text;
use crate::sorted::{Sorted, Sorter};

/// Longest line, in bytes.
const LONGEST: u64 = 1 << 20;

/// The files of a manifest, sorted by path.
pub struct Listing {
    pub(super) files: Sorted<Note>,
    is_blank: bool,
}

/// A manifest that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum BadManifest {
    /// A line that is no line of a manifest, or whose path is outside of the tree.
    #[error("line {number}: {problem}")]
    Line {
        /// Its number, from 1.
        number: u64,
        /// The fault of the line.
        problem: String,
    },
    /// It could not be read.
    #[error("{0}")]
    Read(io::Error),
    /// The temporary file could not be written or read.
    #[error("{0}")]
    Keep(io::Error),
}

impl Listing {
    /// Reads a manifest. Lines that do not tell are taken to have hashes of `algorithm`, or of either.
    ///
    /// # Errors
    /// [`BadManifest`].
    pub fn read(mut input: impl BufRead, algorithm: Option<Algorithm>) -> Result<Self, BadManifest> {
        let folder = std::env::temp_dir();
        let mut sorter = Sorter::new();
        let mut form = Form::Unknown { algorithm };
        let mut line = Vec::new();
        let (mut number, mut has_files) = (0, false);
        loop {
            number += 1;
            line.clear();
            let count = input.by_ref().take(LONGEST + 1).read_until(b'\n', &mut line);
            if count.map_err(BadManifest::Read)? == 0 {
                break;
            }
            let bad = |problem: String| BadManifest::Line { number, problem };
            line.pop_if(|byte| *byte == b'\n');
            if line.len() as u64 > LONGEST {
                return Err(bad("it is longer than 1 MiB".to_owned()));
            }
            if let Some((path, content)) = form.parse(&line).map_err(bad)? {
                let path = path_of(&path).map_err(|problem| bad(problem.to_owned()))?;
                let note = Note { path, number, content: Some(content) };
                sorter.add(vec![note], &folder).map_err(BadManifest::Keep)?;
                has_files = true;
            }
        }
        if matches!(form, Form::Json { ended: false, .. }) {
            let problem = "the last line is missing: the manifest is incomplete".to_owned();
            return Err(BadManifest::Line { number, problem });
        }
        let is_blank = !has_files && !matches!(form, Form::Json { .. });
        Ok(Self { files: sorter.finish(&folder).map_err(BadManifest::Keep)?, is_blank })
    }

    /// Returns true if the manifest has no file and does not say so. JSON says so; of lines of text, an empty tree has
    /// none, and neither has a manifest that was lost.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.is_blank
    }
}

/// Form of a manifest's lines. The first line decides.
enum Form {
    Unknown { algorithm: Option<Algorithm> },
    Text { algorithm: Option<Algorithm> },
    Json { algorithm: Algorithm, files: u64, ended: bool },
}

type Parsed = Option<(Vec<u8>, Content)>;

impl Form {
    /// Parses a line; `None` if it has no file.
    fn parse(&mut self, line: &[u8]) -> Result<Parsed, String> {
        if let Self::Unknown { algorithm } = *self {
            *self = match line.first() {
                Some(b'{') => return self.begin_json(line),
                // Of no files, sha256sum writes nothing; comments are its.
                Some(_) | None => Self::Text { algorithm },
            };
        }
        match self {
            Self::Json { algorithm, files, ended } => match parse_json(line)? {
                Line::File(file) if !*ended => {
                    *files += 1;
                    let (digest, facts) = file.content()?;
                    let content = Content { digest, algorithm: Some(*algorithm), facts: Some(facts) };
                    Ok(Some((file.path.0.into_os_string().into_encoded_bytes(), content)))
                }
                Line::End(end) if !*ended && end.files == *files => {
                    *ended = true;
                    Ok(None)
                }
                Line::End(end) if !*ended => {
                    Err(format!("it counts {} files, and {files} lines have one", end.files))
                }
                Line::File(_) | Line::End(_) | Line::Manifest(_) => Err("it is not expected here".to_owned()),
            },
            Self::Text { algorithm } | Self::Unknown { algorithm } => {
                if line.is_empty() || line.starts_with(b"#") {
                    return Ok(None);
                }
                let parsed = text::parse(line)?;
                let algorithm = parsed.algorithm.or(*algorithm);
                Ok(Some((parsed.path, Content { digest: parsed.digest, algorithm, facts: None })))
            }
        }
    }

    fn begin_json(&mut self, line: &[u8]) -> Result<Parsed, String> {
        let Line::Manifest(header) = parse_json(line)? else {
            return Err("the first line is not that of a manifest".to_owned());
        };
        if header.schema != json::SCHEMA {
            let (found, known) = (header.schema, json::SCHEMA);
            return Err(format!("the manifest has layout {found}; this program reads layout {known}"));
        }
        *self = Self::Json { algorithm: header.algorithm.into(), files: 0, ended: false };
        Ok(None)
    }
}

fn parse_json(line: &[u8]) -> Result<Line, String> {
    serde_json::from_slice(line).map_err(|error| format!("it is no line of a manifest: {error}"))
}

/// Returns a path below the tree, without `.` and doubled slashes.
fn path_of(text: &[u8]) -> Result<Box<[u8]>, &'static str> {
    if text.first() == Some(&b'/') {
        return Err("its path is absolute, and paths are relative to the tree");
    }
    if text.contains(&0) {
        return Err("its path has a NUL byte");
    }
    let mut path = Vec::with_capacity(text.len());
    for component in text.split(|&byte| byte == b'/') {
        if matches!(component, b"" | b".") {
            continue;
        }
        if component == b".." {
            return Err("its path has a component '..', which may lead out of the tree");
        }
        if Name::new(component).is_none() {
            return Err("a component of its path is too long");
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend(component);
    }
    if path.is_empty() || text.last() == Some(&b'/') {
        return Err("its path names no file");
    }
    Ok(path.into())
}
