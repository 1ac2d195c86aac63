//! Paths in JSON. Linux allows any bytes but NUL in a path; JSON holds text.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path that is a string in JSON if it is UTF-8, and otherwise an object with its bytes: `{"bytes":[102,255]}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PathText(pub PathBuf);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written<'a> {
    #[serde(borrow)]
    Text(std::borrow::Cow<'a, str>),
    Bytes {
        bytes: Vec<u8>,
    },
}

impl From<&Path> for PathText {
    fn from(path: &Path) -> Self {
        Self(path.to_path_buf())
    }
}

impl Serialize for PathText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = match self.0.to_str() {
            Some(text) => Written::Text(text.into()),
            None => Written::Bytes { bytes: self.0.as_os_str().as_bytes().to_vec() },
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PathText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = match Written::deserialize(deserializer)? {
            Written::Text(text) => text.into_owned().into_bytes(),
            Written::Bytes { bytes } => bytes,
        };
        if bytes.contains(&0) {
            return Err(D::Error::custom("a path has no NUL"));
        }
        Ok(Self(PathBuf::from(OsString::from_vec(bytes))))
    }
}
