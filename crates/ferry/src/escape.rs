//! Names in JSON: text from which the original bytes can be restored.

use std::fmt::Write;

/// Doubles `\` and writes bytes that are not UTF-8 as `\xNN`.
pub(crate) fn json_name(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        out.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}").unwrap_or_default();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::json_name;

    #[test]
    fn a_name_is_escaped_so_that_it_can_be_had_back() {
        assert_eq!(json_name(b"a\xff\\x\n"), "a\\xff\\\\x\n");
    }
}
