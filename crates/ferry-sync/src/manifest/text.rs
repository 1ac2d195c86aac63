//! Lines of b3sum and sha256sum: a hash and a path.
//!
//! A line with an escaped path begins with a backslash. sha256sum escapes backslashes, line feeds and carriage returns;
//! b3sum does not know the last of these. Lines in BSD style (`SHA256 (path) = hash`) are read, too.

use ferry_copy::{Algorithm, Digest};

/// Digits of a hash.
const DIGITS: usize = 64;

/// Returns the line of a file.
pub(super) fn line(algorithm: Algorithm, digest: Digest, path: &[u8]) -> Vec<u8> {
    let is_escaped = |byte: &u8| match byte {
        b'\\' | b'\n' => true,
        b'\r' => algorithm == Algorithm::Sha256,
        _ => false,
    };
    let mut line = Vec::with_capacity(DIGITS + path.len() + 4);
    if path.iter().any(is_escaped) {
        line.push(b'\\');
    }
    line.extend(digest.to_string().into_bytes());
    line.extend(b"  ");
    if path == b"-" {
        // Alone it would be the standard input.
        line.extend(b"./");
    }
    for byte in path {
        match byte {
            b'\\' => line.extend(b"\\\\"),
            b'\n' => line.extend(b"\\n"),
            b'\r' if is_escaped(byte) => line.extend(b"\\r"),
            _ => line.push(*byte),
        }
    }
    line.push(b'\n');
    line
}

/// A line that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) digest: Digest,
    /// `None` if the line does not tell.
    pub(super) algorithm: Option<Algorithm>,
    pub(super) path: Vec<u8>,
}

/// Parses a line without its end.
pub(super) fn parse(line: &[u8]) -> Result<Parsed, &'static str> {
    let (is_escaped, line) = line.strip_prefix(b"\\").map_or((false, line), |rest| (true, rest));
    let tagged = [(&b"BLAKE3 ("[..], Algorithm::Blake3), (b"SHA256 (", Algorithm::Sha256)];
    let tagged = tagged.iter().find_map(|(tag, algorithm)| Some((line.strip_prefix(*tag)?, *algorithm)));
    let (digest, algorithm, path) = match tagged {
        Some((rest, algorithm)) => {
            let at = rest.len().checked_sub(DIGITS).ok_or("it has no hash of 64 digits")?;
            let path =
                rest[..at].strip_suffix(b") = ").ok_or("it has no ') = ' before a hash of 64 digits")?;
            (digest(&rest[at..])?, Some(algorithm), path)
        }
        None => {
            let (digits, rest) = line.split_at_checked(DIGITS).ok_or("it has no hash of 64 digits")?;
            let digest = digest(digits)?;
            let path = rest.strip_prefix(b"  ").or_else(|| rest.strip_prefix(b" *"));
            (digest, None, path.ok_or("no two spaces follow the hash")?)
        }
    };
    let path = if is_escaped { unescape(path)? } else { path.to_vec() };
    Ok(Parsed { digest, algorithm, path })
}

/// Parses the digits of a hash.
pub(super) fn digest(digits: &[u8]) -> Result<Digest, &'static str> {
    let mut bytes = [0; DIGITS / 2];
    if digits.len() != DIGITS {
        return Err("it has no hash of 64 digits");
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        let (Some(high), Some(low)) = (value(pair[0]), value(pair[1])) else {
            return Err("its hash has other characters than hexadecimal digits");
        };
        *byte = high << 4 | low;
    }
    Ok(Digest(bytes))
}

fn unescape(text: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut path = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        let meant = match byte {
            b'\\' => match bytes.next() {
                Some(b'\\') => b'\\',
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(_) | None => return Err("its path has an unknown escape after a backslash"),
            },
            _ => byte,
        };
        path.push(meant);
    }
    Ok(path)
}
