//! Option `--copy-as`: the extent of a copy, which cp, ferry and the limit programs share.

use ferry_tree::compare::{Holes, Options};

use crate::error::Failure;
use crate::experiments::copies::NEVER_SHARED;
use crate::settings::{Parameter, ParameterKind, Settings};

const NAME: &str = "copy-as";

/// Extent of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::experiments) enum Extent {
    /// Names and bytes; no blocks are shared.
    Plain,
    /// Names and bytes; where the filesystem can share blocks, copiers may do that.
    Shared,
    /// As `Plain`, with everything that `cp -a` keeps.
    Archive,
}

impl Extent {
    /// The option.
    pub(in crate::experiments) const PARAMETER: Parameter = Parameter::new(
        NAME,
        "EXTENT",
        "Options of cp and ferry: plain (-r --reflink=never), shared (-r), archive (-a --reflink=never)",
        ParameterKind::Word(&["plain", "shared", "archive"]),
        "plain",
    );

    /// Returns the extent that was asked for.
    pub(in crate::experiments) fn of(settings: &Settings) -> Self {
        match settings.text(NAME).as_str() {
            "shared" => Self::Shared,
            "archive" => Self::Archive,
            _ => Self::Plain,
        }
    }

    /// Fails for the documents' programs in an archive, because they keep no attributes.
    pub(in crate::experiments) fn check(settings: &Settings) -> Result<(), Failure> {
        let has_programs =
            settings.values().contains_key("programs") && settings.texts("programs") != ["none"];
        if Self::of(settings) == Self::Archive && has_programs {
            let why = "the documents' programs keep no attributes: add `--programs none`";
            return Err(Failure::Misuse(format!("'--{NAME} archive': {why}")));
        }
        Ok(())
    }

    /// Returns the options of cp and `ferry cp`.
    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &["-r", NEVER_SHARED],
            Self::Shared => &["-r"],
            Self::Archive => &["-a", NEVER_SHARED],
        }
    }

    /// Returns the properties in which a copy must equal its source. Limit programs keep neither hard links nor holes.
    pub(super) fn properties(self) -> Options {
        match self {
            Self::Plain | Self::Shared => Options::plain(),
            Self::Archive => Options { links: false, holes: Holes::Ignore, ..Options::all() },
        }
    }
}
