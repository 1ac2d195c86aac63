//! Combines the backup options with the environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use ferry_copy::{Backup, Control};

use crate::arguments::Usage;
use crate::values::choice;

/// Values of `--backup` and `VERSION_CONTROL`; `None` makes no backup.
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

/// Values of `--backup`, which is checked after all options are parsed.
pub(crate) fn words() -> [&'static str; 8] {
    CONTROLS.map(|(word, _)| word)
}

#[derive(Debug, Default)]
pub(super) struct BackupOptions {
    pub(super) is_made: bool,
    pub(super) control: Option<OsString>,
    pub(super) suffix: Option<OsString>,
}

impl BackupOptions {
    /// Resolves the options; the environment supplies what they leave open.
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
        // A suffix with a slash would place the backup in another directory.
        let is_suffix = |suffix: &OsString| !suffix.is_empty() && !suffix.as_bytes().contains(&b'/');
        let suffix = suffix.filter(is_suffix).unwrap_or_else(|| OsStr::new("~").to_owned());
        Ok(control.map(|control| Backup { control, suffix }))
    }
}
