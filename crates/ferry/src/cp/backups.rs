//! Backups as the options and the environment ask for them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use ferry_copy::{Backup, Control};

use crate::arguments::Usage;
use crate::values::choice;

/// What `VERSION_CONTROL` and `--backup` may say; `None` is no backup.
const CONTROLS: [(&str, Option<Control>); 8] = [
    ("none", None),
    ("off", None),
    ("simple", Some(Control::Simple)),
    ("never", Some(Control::Simple)),
    ("existing", Some(Control::Existing)),
    ("nil", Some(Control::Existing)),
    ("numbered", Some(Control::Numbered)),
    ("t", Some(Control::Numbered)),
];

/// The words of `--backup`, which are read only when all options are known.
pub(crate) fn words() -> [&'static str; 8] {
    CONTROLS.map(|(word, _)| word)
}

/// What the options said of backups.
#[derive(Debug, Default)]
pub(super) struct Wish {
    /// `-b`, `--backup` or `-S`.
    pub(super) is_made: bool,
    /// `--backup=CONTROL`.
    pub(super) control: Option<OsString>,
    /// `-S`.
    pub(super) suffix: Option<OsString>,
}

impl Wish {
    /// What comes of it; the environment has a say in what the options leave open.
    pub(super) fn settle(
        self,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Backup>, Usage> {
        if !self.is_made {
            return Ok(None);
        }
        let said = |text: &Option<OsString>| text.as_ref().is_some_and(|text| !text.is_empty());
        let by_environment = environment("VERSION_CONTROL");
        let control = match (self.control, by_environment) {
            (control, _) if said(&control) => {
                choice("backup type", control.as_deref().unwrap_or_default(), &CONTROLS)?
            }
            (_, control) if said(&control) => {
                choice("$VERSION_CONTROL", control.as_deref().unwrap_or_default(), &CONTROLS)?
            }
            _ => Some(Control::Existing),
        };
        let suffix = self.suffix.or_else(|| environment("SIMPLE_BACKUP_SUFFIX"));
        // One with a slash would put backups into another folder.
        let is_suffix = |suffix: &OsString| !suffix.is_empty() && !suffix.as_bytes().contains(&b'/');
        let suffix = suffix.filter(is_suffix).unwrap_or_else(|| OsStr::new("~").to_owned());
        Ok(control.map(|control| Backup { control, suffix }))
    }
}
