//! File content that identifies the file and its version.

const CHUNK: usize = 32;
const PAGE: usize = 4096;

/// Content of one chunk. Files have numbers, as do versions of a file that is changed in place.
fn chunk(file: u32, version: u32, index: usize) -> [u8; CHUNK] {
    let text = format!("{file:08x}.{version:04x}@{index:08x}.........\n");
    text.into_bytes().try_into().unwrap()
}

/// Content of a version of a file.
pub(super) fn fill(file: u32, version: u32, size: usize) -> Vec<u8> {
    let mut bytes = chunk(file, version, 0).repeat(size.div_ceil(CHUNK));
    // Rewrite only the index; its leading digits seldom change.
    for (index, chunk) in bytes.chunks_exact_mut(CHUNK).enumerate() {
        let mut left = index;
        for digit in chunk[14..22].iter_mut().rev() {
            *digit = b"0123456789abcdef"[left % 16];
            left /= 16;
            if left == 0 {
                break;
            }
        }
    }
    bytes.truncate(size);
    bytes
}

/// Number of the file that the bytes belong to.
pub(super) fn file_of(bytes: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(bytes.get(..8)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

/// Returns true if each chunk belongs to some version from 0 to `last` at this position. A read that meets the cutting of a
/// file can return zeros from the new end to the end of that page, because Linux does not lock one against the other.
pub(super) fn is_mixture(bytes: &[u8], file: u32, last: u32, cuts: &[usize]) -> bool {
    if (0..=last).any(|version| fill(file, version, bytes.len()) == bytes) {
        return true;
    }
    let is_cut = |at: usize| cuts.iter().any(|&cut| (cut..cut.next_multiple_of(PAGE)).contains(&at));
    bytes.chunks(CHUNK).enumerate().all(|(index, found)| {
        let versions: Vec<_> = (0..=last).map(|version| chunk(file, version, index)).collect();
        let is_whole = versions.iter().any(|chunk| chunk.starts_with(found));
        let is_torn = || {
            (0..found.len()).all(|at| {
                versions.iter().any(|chunk| chunk[at] == found[at])
                    || found[at] == 0 && is_cut(index * CHUNK + at)
            })
        };
        is_whole || is_torn()
    })
}

pub(super) fn describe(bytes: &[u8]) -> String {
    if let Some(file) = file_of(bytes)
        && is_mixture(bytes, file, 0, &[])
    {
        return format!("{} bytes of file {file}", bytes.len());
    }
    let mut parts: Vec<String> = Vec::new();
    for found in bytes.chunks(CHUNK) {
        let part = match std::str::from_utf8(found) {
            Ok(text) if text.len() > 13 && text.is_ascii() => text[..13].to_owned(),
            Ok(_) | Err(_) => format!("{:?}", String::from_utf8_lossy(found)),
        };
        if parts.last() != Some(&part) {
            parts.push(part);
        }
    }
    parts.truncate(6);
    format!(
        "{} bytes of {}",
        bytes.len(),
        if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
    )
}
