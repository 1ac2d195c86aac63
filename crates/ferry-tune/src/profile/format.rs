//! Profiles as TOML: written with their units, read strictly.

use serde::Serialize;

use super::{Profile, VERSION};

/// Why a text is no profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It can't be read as one.
    #[error("{0}")]
    Syntax(String),
    /// It is one, of another version of the format.
    #[error("version {0} of the format, and this program reads {VERSION}")]
    Version(i64),
    /// A value has no place in TOML.
    #[error("{0}")]
    Value(String),
}

impl Profile {
    /// The profile as TOML.
    ///
    /// # Errors
    /// [`Malformed::Value`] for a number that TOML has not.
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
            text.line("random_read", &direct.random_read, "of 4 KiB each second, enough_depth in flight")?;
            text.line("random_write", &direct.random_write, "of 4 KiB each second, enough_depth in flight")?;
            text.line("enough_depth", &direct.enough_depth, "in flight, beyond which more buy nothing")?;
            text.line("best_block", &direct.best_block, "bytes")?;
            text.list(
                "depths",
                &direct.depths,
                "Random reads of 4 KiB each second (iops), so many in flight (depth).",
            )?;
            text.list("blocks", &direct.blocks, "Sequential reads in MB/s, so many bytes each.")?;
        }
        text.begin("calls", "What calls cost, in microseconds.");
        text.line("inline_create", &calls.inline_create, "an empty file, made by a plain call")?;
        if let Some(ring) = &calls.ring_hand_over {
            text.line("ring_hand_over", ring, "what a ring adds to a request that completes at once")?;
        }
        text.line("pool_hand_over", &calls.pool_hand_over, "what a thread of the pool adds")?;
        text.table("can", can, "What the filesystem has; alignments in bytes.")?;
        text.table("handed_over", handed_over, "How the kernel ran operations that were queued in a ring.")?;
        // Last, since all its keys must be there: what is cut off anywhere is no profile.
        text.table("about", about, "")?;
        Ok(text.0)
    }

    /// The profile in a text.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let wrong = |error: &toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start);
            let before = text.as_bytes().get(..at).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let what = error.message().lines().collect::<Vec<_>>().join(", ");
            Malformed::Syntax(format!("line {line}: {what}"))
        };
        if !text.ends_with('\n') {
            return Err(Malformed::Syntax("it is cut off: its last line has no end".to_owned()));
        }
        let table: toml::Table = text.parse().map_err(|error| wrong(&error))?;
        // Another version may have other keys: that is not to be told as an unknown key.
        match table.get("version").and_then(toml::Value::as_integer) {
            Some(version) if version != i64::from(VERSION) => Err(Malformed::Version(version)),
            Some(_) => toml::from_str(text).map_err(|error| wrong(&error)),
            None => Err(Malformed::Syntax("no profile of ferry's: it has no version".to_owned())),
        }
    }
}

/// A text that grows.
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

    /// One item a line.
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

/// The value in one line, its keys in their order.
fn inline(value: &impl Serialize) -> Result<String, Malformed> {
    let mut text = String::new();
    let told = |error: toml::ser::Error| Malformed::Value(error.to_string());
    value.serialize(toml::ser::ValueSerializer::new(&mut text)).map_err(told)?;
    Ok(text)
}
