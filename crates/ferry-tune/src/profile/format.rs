//! Profiles as TOML: units are written as comments, and unknown keys are refused.

use serde::Serialize;

use super::figures::{Profile, VERSION};

/// Reason why a text is not a profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The text does not parse.
    #[error("{0}")]
    Syntax(String),
    /// The profile has another format version.
    #[error("it has format version {0}; this program reads version {VERSION}")]
    Version(i64),
    /// A value cannot be represented in TOML.
    #[error("{0}")]
    Value(String),
}

impl Profile {
    /// Returns the profile as TOML.
    ///
    /// # Errors
    /// [`Malformed::Value`] for a number that TOML cannot represent.
    pub fn to_toml(&self) -> Result<String, Malformed> {
        let mut text = Writer(format!(
            "# What `ferry tune` measured of a filesystem. `ferry cp` starts from it; `ferry tune --check` tells whether it helps.\n\
             # Figures have the median, the least and the most of so many runs.\n\
             version = {}\n",
            self.version
        ));
        let Self { version: _, about, place, direct, calls, can, handed_over } = self;
        text.table("place", place, "")?;
        if let Some(direct) = direct {
            text.begin("direct", "Files opened with O_DIRECT.");
            text.line("sequential_read", &direct.sequential_read, "MB/s")?;
            text.line("sequential_write", &direct.sequential_write, "MB/s")?;
            text.line(
                "random_read",
                &direct.random_read,
                "requests of 4 KiB a second, enough_depth in flight",
            )?;
            text.line(
                "random_write",
                &direct.random_write,
                "requests of 4 KiB a second, enough_depth in flight",
            )?;
            text.line(
                "enough_depth",
                &direct.enough_depth,
                "requests in flight; more do not raise the rate",
            )?;
            text.line("best_block", &direct.best_block, "bytes")?;
            text.list(
                "depths",
                &direct.depths,
                "Random reads of 4 KiB a second (iops) by requests in flight (depth).",
            )?;
            text.list("blocks", &direct.blocks, "Sequential reads in MB/s by request size in bytes.")?;
        }
        text.begin("calls", "Cost of calls, in microseconds.");
        text.line("inline_create", &calls.inline_create, "creating an empty file by a plain call")?;
        if let Some(ring) = &calls.ring_hand_over {
            text.line("ring_hand_over", ring, "added by a ring to a request that completes at once")?;
        }
        text.line("pool_hand_over", &calls.pool_hand_over, "added by a pool thread")?;
        text.table("can", can, "Features of the filesystem; alignments in bytes.")?;
        text.table(
            "handed_over",
            handed_over,
            "Execution by the kernel of operations that were queued in a ring.",
        )?;
        // Last, because all its keys are required: so a truncated profile never parses.
        text.table("about", about, "")?;
        Ok(text.0)
    }

    /// Parses a profile.
    ///
    /// # Errors
    /// The first fault, in one line.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let wrong = |error: &toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start);
            let before = text.as_bytes().get(..at).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let what = error.message().lines().collect::<Vec<_>>().join(", ");
            Malformed::Syntax(format!("line {line}: {what}"))
        };
        if !text.ends_with('\n') {
            return Err(Malformed::Syntax("it is truncated: its last line is incomplete".to_owned()));
        }
        let table: toml::Table = text.parse().map_err(|error| wrong(&error))?;
        // The version comes first, because other versions may have other keys.
        match table.get("version").and_then(toml::Value::as_integer) {
            Some(version) if version != i64::from(VERSION) => Err(Malformed::Version(version)),
            Some(_) => toml::from_str(text).map_err(|error| wrong(&error)),
            None => Err(Malformed::Syntax("it is not a profile of ferry: it has no version".to_owned())),
        }
    }
}

struct Writer(String);

impl Writer {
    fn begin(&mut self, name: &str, comment: &str) {
        self.0.push('\n');
        if !comment.is_empty() {
            self.0 += &format!("# {comment}\n");
        }
        self.0 += &format!("[{name}]\n");
    }

    fn line(&mut self, name: &str, value: &impl Serialize, comment: &str) -> Result<(), Malformed> {
        self.0 += &format!("{name} = {}  # {comment}\n", inline(value)?);
        Ok(())
    }

    fn list(&mut self, name: &str, items: &[impl Serialize], comment: &str) -> Result<(), Malformed> {
        self.0 += &format!("# {comment}\n{name} = [\n");
        for item in items {
            self.0 += &format!("  {},\n", inline(item)?);
        }
        self.0 += "]\n";
        Ok(())
    }

    fn table(&mut self, name: &str, value: &impl Serialize, comment: &str) -> Result<(), Malformed> {
        self.begin(name, comment);
        self.0 += &toml::to_string(value).map_err(|error| Malformed::Value(error.to_string()))?;
        Ok(())
    }
}

/// Formats a value in one line with its keys in order.
fn inline(value: &impl Serialize) -> Result<String, Malformed> {
    let mut text = String::new();
    let told = |error: toml::ser::Error| Malformed::Value(error.to_string());
    value.serialize(toml::ser::ValueSerializer::new(&mut text)).map_err(told)?;
    Ok(text)
}
