//! The attributes that `--preserve` and `--no-preserve` name, and what they switch on and off.

use std::ffi::OsStr;

use ferry_copy::Preserve;

use crate::arguments::Usage;
use crate::values::choice;

/// An attribute that `--preserve` and `--no-preserve` name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attribute {
    /// Permission bits and ACLs.
    Mode,
    /// Access and modification times.
    Timestamps,
    /// User and group.
    Ownership,
    /// Hard links between the files copied.
    Links,
    /// SELinux's label, which this copier can't keep.
    Context,
    /// Extended attributes.
    Xattr,
    /// All of them, as far as they can be kept.
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

/// The attributes of a comma-separated list.
pub(crate) fn parse(option: &str, list: &OsStr) -> Result<Vec<Attribute>, Usage> {
    let word = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        choice(option, OsStr::new(&text), &ATTRIBUTES)
    };
    list.as_encoded_bytes().split(|byte| *byte == b',').map(word).collect()
}

impl Attribute {
    /// Notes in `preserve` that this attribute is to be kept, or not.
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
