//! Attributes of `--preserve` and `--no-preserve`, and their effect.

use std::ffi::OsStr;

use ferry_copy::Preserve;

use crate::arguments::Usage;
use crate::values::choice;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attribute {
    Mode,
    Timestamps,
    Ownership,
    Links,
    /// SELinux label, which ferry cannot preserve.
    Context,
    Xattr,
    All,
}

const ATTRIBUTES: [(&str, Attribute); 7] = [
    ("mode", Attribute::Mode),
    ("timestamps", Attribute::Timestamps),
    ("ownership", Attribute::Ownership),
    ("links", Attribute::Links),
    ("context", Attribute::Context),
    ("xattr", Attribute::Xattr),
    ("all", Attribute::All),
];

pub(crate) fn parse(option: &str, list: &OsStr) -> Result<Vec<Attribute>, Usage> {
    let word = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        choice(option, OsStr::new(&text), &ATTRIBUTES)
    };
    list.as_encoded_bytes().split(|byte| *byte == b',').map(word).collect()
}

impl Attribute {
    pub(crate) fn set(self, preserve: &mut Preserve, kept: bool) {
        match self {
            Self::Mode => {
                preserve.mode = kept;
                preserve.refuse_mode = !kept;
            }
            Self::Timestamps => preserve.timestamps = kept,
            Self::Ownership => preserve.ownership = kept,
            Self::Links => preserve.links = kept,
            Self::Context => {}
            Self::Xattr => {
                preserve.xattr = kept;
                preserve.xattr_required = kept;
            }
            Self::All => {
                for attribute in [Self::Mode, Self::Timestamps, Self::Ownership, Self::Links] {
                    attribute.set(preserve, kept);
                }
                preserve.xattr = kept;
            }
        }
    }
}
