//! Names and paths as bytes, which JSON holds without loss.

use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A name, or a path below both roots: names with slashes between them, and empty for the root itself.
///
/// Its JSON is a string; of bytes that are no UTF-8, a list of numbers.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Text(Box<[u8]>);

impl Text {
    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns true for the path of the root.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the path of an entry of this folder.
    #[must_use]
    pub fn join(&self, name: &Self) -> Self {
        if self.is_empty() {
            return name.clone();
        }
        Self([&self.0, &b"/"[..], &name.0].concat().into())
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), f)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => serializer.collect_seq(self.0.iter()),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of bytes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut bytes: A) -> Result<Text, A::Error> {
        let mut read = Vec::new();
        while let Some(byte) = bytes.next_element()? {
            read.push(byte);
        }
        Ok(Text::from(read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back_from_json() {
        for bytes in
            [&b"plain"[..], b"", b"line\nfeed \"quoted\" \\", b"\xff\xfe no text", "\u{e9}".as_bytes()]
        {
            let text = Text::from(bytes);
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(serde_json::from_str::<Text>(&json).unwrap(), text, "{json}");
            assert!(!json.contains('\n'), "a record is one line");
        }
    }

    #[test]
    fn entries_of_the_root_have_no_slash() {
        let root = Text::default();
        assert_eq!(root.join(&"a".into()), "a".into());
        assert_eq!(root.join(&"a".into()).join(&"b".into()), "a/b".into());
    }
}
