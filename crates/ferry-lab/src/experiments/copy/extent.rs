//! Option `--copy-as`: the extent of a copy, which cp, ferry and the limit programs share.

use ferry_tree::compare::{Holes, Options};

use crate::error::Failure;
use crate::experiments::copies::NEVER_SHARED;
use crate::settings::{Parameter, ParameterKind, Settings};

const NAME: &str = "copy-as";

/// Extent of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::experiments) enum Extent {
    /// Names and bytes, by the commands' own defaults: the kernel may copy bytes, or share blocks.
    Shared,
    /// Names and bytes. cp and ferry read and write every byte.
    Plain,
    /// As `Plain`, with everything that `cp -a` keeps.
    Archive,
}

impl Extent {
    /// The option.
    pub(in crate::experiments) const PARAMETER: Parameter = Parameter::new(
        NAME,
        "EXTENT",
        "Options of cp and ferry: shared (-r), plain (-r --reflink=never), archive (-a --reflink=never)",
        ParameterKind::Word(&["shared", "plain", "archive"]),
        "shared",
    );

    /// Returns the extent that was asked for.
    pub(in crate::experiments) fn of(settings: &Settings) -> Self {
        match settings.text(NAME).as_str() {
            "plain" => Self::Plain,
            "archive" => Self::Archive,
            _ => Self::Shared,
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
            Self::Shared => &["-r"],
            Self::Plain | Self::Archive => self.options_by_blocks(),
        }
    }

    /// Returns the options with which cp and `ferry cp` read and write every byte.
    pub(super) fn options_by_blocks(self) -> &'static [&'static str] {
        match self {
            Self::Shared | Self::Plain => &["-r", NEVER_SHARED],
            Self::Archive => &["-a", NEVER_SHARED],
        }
    }

    /// Returns the properties in which a copy must equal its source. Limit programs keep neither hard links nor holes.
    pub(super) fn properties(self) -> Options {
        match self {
            Self::Shared | Self::Plain => Options::plain(),
            Self::Archive => Options { links: false, holes: Holes::Ignore, ..Options::all() },
        }
    }
}
