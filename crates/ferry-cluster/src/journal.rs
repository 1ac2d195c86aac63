//! Lines of the journal: a checksum, and a record as JSON.
//!
//! A line that a kill has cut off has a wrong checksum. The reader stops there: the work of that record is done again.

use serde::{Deserialize, Serialize};

use crate::message::{Line, Settings};
use crate::text::Text;

/// Version of the format.
const FORMAT: u32 = 5;
/// Hexadecimal digits of a checksum.
const DIGITS: usize = 16;

/// The first line: the job that the journal belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of the format.
    format: u32,
    /// Name of the task. Another task on the same trees can't go on with what this one has done.
    pub task: Text,
    /// The source folder.
    pub source: Text,
    /// The target folder.
    pub target: Text,
    /// Inode numbers of the source folder and of the target folder. Their devices may have other numbers on another machine.
    pub identity: (u64, u64),
    /// Sizes by which work is divided.
    pub settings: Settings,
    /// Options that decide what the task does, or a hash of them. Another job can't go on with what these have done.
    pub options: Text,
    /// Set if each file gets its name when it is complete.
    pub by_rules: bool,
}

/// A line that is no whole line of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the line is incomplete or damaged")]
pub struct Damaged;

impl Header {
    /// Returns the header of a job.
    #[must_use]
    pub fn new(task: &str, (source, target): (Text, Text), identity: (u64, u64), settings: Settings) -> Self {
        let (options, by_rules) = (Text::default(), false);
        Self { format: FORMAT, task: task.into(), source, target, identity, settings, options, by_rules }
    }

    /// Returns this header with the options of the job.
    #[must_use]
    pub fn with_options(self, options: &str, by_rules: bool) -> Self {
        Self { options: options.into(), by_rules, ..self }
    }
}

fn checksum(json: &[u8]) -> String {
    let mut digits = blake3::hash(json).to_hex().to_string();
    digits.truncate(DIGITS);
    digits
}

fn write(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let json = serde_json::to_vec(value)?;
    let mut line = checksum(&json).into_bytes();
    line.push(b' ');
    line.extend(json);
    line.push(b'\n');
    Ok(line)
}

fn parse<T: for<'de> Deserialize<'de>>(line: &[u8]) -> Result<T, Damaged> {
    let line = line.strip_suffix(b"\n").ok_or(Damaged)?;
    let (sum, json) = line.split_at_checked(DIGITS).ok_or(Damaged)?;
    let json = json.strip_prefix(b" ").ok_or(Damaged)?;
    if checksum(json).as_bytes() != sum {
        return Err(Damaged);
    }
    serde_json::from_slice(json).map_err(|_| Damaged)
}

/// Returns the line of a header.
///
/// # Errors
/// If it can't be written as JSON.
pub fn write_header(header: &Header) -> Result<Vec<u8>, serde_json::Error> {
    write(header)
}

/// Returns the bytes of a line after the header.
///
/// # Errors
/// If it can't be written as JSON.
pub fn write_line(line: &Line) -> Result<Vec<u8>, serde_json::Error> {
    write(line)
}

/// Reads the first line, with its line feed.
///
/// # Errors
/// [`Damaged`], also for another version of the format.
pub fn parse_header(line: &[u8]) -> Result<Header, Damaged> {
    let header: Header = parse(line)?;
    if header.format == FORMAT { Ok(header) } else { Err(Damaged) }
}

/// Reads a line after the header, with its line feed.
///
/// # Errors
/// [`Damaged`]
pub fn parse_line(line: &[u8]) -> Result<Line, Damaged> {
    parse(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Key, Outcome, Record, Report, Totals};

    fn record() -> Line {
        let report = Report {
            lease: 7,
            ended: true,
            outcomes: vec![Outcome::Done],
            folders: Vec::new(),
            made: Vec::new(),
            files: Vec::new(),
            large: Vec::new(),
            linked: Vec::new(),
            totals: Totals { files: 3, ..Totals::default() },
            failures: vec!["cannot open 'a\nb'".into()],
        };
        Line::Record(Box::new(Record { keys: vec![Key::Range(3, 1 << 40)], report }))
    }

    #[test]
    fn a_record_is_one_line_and_comes_back() {
        let line = write_line(&record()).unwrap();
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        assert_eq!(parse_line(&line), Ok(record()));
    }

    #[test]
    fn a_line_that_is_cut_off_or_changed_anywhere_is_refused() {
        let line = write_line(&record()).unwrap();
        for end in 0..line.len() {
            assert_eq!(parse_line(&line[..end]), Err(Damaged), "cut off after {end} bytes");
        }
        for at in 0..line.len() {
            let mut changed = line.clone();
            changed[at] ^= 1;
            assert_eq!(parse_line(&changed), Err(Damaged), "changed at {at}");
        }
    }

    #[test]
    fn a_header_of_another_format_is_refused() {
        let header =
            Header::new("cp", ("a".into(), "b".into()), (1, 2), Settings::new(4)).with_options("-a", true);
        assert_eq!(parse_header(&write_header(&header).unwrap()), Ok(header.clone()));
        let other = Header { format: FORMAT + 1, ..header };
        assert_eq!(parse_header(&write_header(&other).unwrap()), Err(Damaged));
    }
}
