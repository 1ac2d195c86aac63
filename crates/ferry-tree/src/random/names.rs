//! Names of random trees, in particular names that have broken programs before.

use crate::fill::SplitMix64;

const ODD: &[&[u8]] = &[
    b"-",
    b"--",
    b"-rf",
    b"--help",
    b" ",
    b" leading",
    b"trailing ",
    b"two  words",
    b"line\nbreak",
    b"\n",
    b"tab\there",
    b"\r",
    b"it's",
    b"\"quoted\"",
    b"back\\slash",
    b"$(false)",
    b"`false`",
    b"*",
    b"?",
    b"[a-z]",
    b"~",
    b"#",
    b"&",
    b";",
    b"|",
    b"<",
    b">",
    b"!",
    b"%s%n",
    b"...",
    b".hidden",
    b"..hidden",
    b"a.",
    b"\x7f",
    b"\x1b[31mred",
    b"\x01",
    b"\xff",
    b"\xfe\xff",
    b"latin-\xe9",
    b"cut-\xe2\x82",
    b"\xed\xa0\x80",
    b"CON",
    "é".as_bytes(),
    "e\u{301}".as_bytes(),
    "日本語".as_bytes(),
    "\u{202e}txt".as_bytes(),
    "🦀".as_bytes(),
    "\u{feff}bom".as_bytes(),
    "\u{200b}".as_bytes(),
    "İ".as_bytes(),
    b"=",
    b":",
    b"a:b",
    b"+",
    b"@",
    b"d0",
    b"D0",
];

const PLAIN: &[&[u8]] =
    &[b"a", b"b", b"file", b"notes.txt", b"data.bin", b"README", b"src", b"lib", b"x", b"log"];

/// Returns a name of 1 to 255 bytes.
pub(super) fn name(numbers: &mut SplitMix64, odd: bool) -> Vec<u8> {
    match numbers.below(if odd { 10 } else { 4 }) {
        0..4 => [PLAIN[numbers.index(PLAIN.len())], numbers.below(100).to_string().as_bytes()].concat(),
        4..8 => ODD[numbers.index(ODD.len())].to_vec(),
        8 => long(numbers),
        _ => bytes(numbers),
    }
}

/// A unique name of maximum or almost maximum length.
fn long(numbers: &mut SplitMix64) -> Vec<u8> {
    let size = 255 - numbers.index(3);
    let end = format!("{:08x}", numbers.next_u64() >> 32).into_bytes();
    let mut name = vec![b'L'; size - end.len()];
    name.extend(end);
    name
}

fn bytes(numbers: &mut SplitMix64) -> Vec<u8> {
    let size = 1 + numbers.index(12);
    let byte = |_| match u8::try_from(numbers.below(256)).unwrap_or(0) {
        0 | b'/' => b'_',
        byte => byte,
    };
    let name: Vec<u8> = (0..size).map(byte).collect();
    if matches!(name.as_slice(), b"." | b"..") { b"dots".to_vec() } else { name }
}
