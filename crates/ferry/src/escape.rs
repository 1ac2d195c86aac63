//! Names in JSON: text from which the bytes can be had back.

use std::fmt::Write;

/// `\` doubled, bytes that are not UTF-8 as `\xNN`; the rest as it is.
pub(crate) fn escaped(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        out.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            // Writing to a String can't fail.
            write!(out, "\\x{byte:02x}").unwrap_or_default();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn a_name_is_escaped_so_that_it_can_be_had_back() {
        assert_eq!(escaped(b"a\xff\\x\n"), "a\\xff\\\\x\n");
    }
}
