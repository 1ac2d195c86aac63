//! Actions put aside until everything else is done: lines of a plan in an unnamed temporary file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use crate::plan::Action;
use crate::sink::{Batch, Planned};

/// Most actions of one batch.
const BATCH: usize = 256;

/// Actions put aside.
#[derive(Default)]
pub(super) struct Aside {
    file: Option<BufWriter<File>>,
    /// The first failure: nothing is added after it, because a part of a line may be in the file.
    failed: Option<io::Error>,
}

impl Aside {
    /// Adds an action. A failure is returned by [`Self::read`].
    pub(super) fn add(&mut self, action: &Action) {
        if self.failed.is_none() {
            self.failed = self.try_add(action).err();
        }
    }

    fn try_add(&mut self, action: &Action) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(BufWriter::new(tempfile::tempfile()?)),
        };
        serde_json::to_writer(&mut *file, action)?;
        file.write_all(b"\n")
    }

    /// Begins to read the actions in the order in which they were added.
    ///
    /// # Errors
    /// Those of creating and writing the temporary file.
    pub(super) fn read(self) -> io::Result<Actions> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let input = match self.file {
            Some(file) => {
                let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.rewind()?;
                Some(BufReader::new(file))
            }
            None => None,
        };
        Ok(Actions { input, next: None })
    }
}

/// Actions being read.
pub(super) struct Actions {
    input: Option<BufReader<File>>,
    /// Read already, of the next batch.
    next: Option<Action>,
}

impl Actions {
    /// Returns the next actions on entries of one folder.
    pub(super) fn next_batch(&mut self) -> io::Result<Option<Batch>> {
        let Some(first) = self.take()? else { return Ok(None) };
        let folder = folder_of(&first);
        let is_alone = first.is_on_folder();
        let mut actions = vec![given(first)];
        while !is_alone
            && actions.len() < BATCH
            && let Some(next) = self.take()?
        {
            if folder_of(&next) != folder || next.is_on_folder() {
                self.next = Some(next);
                break;
            }
            actions.push(given(next));
        }
        Ok(Some(Batch { folder, actions }))
    }

    fn take(&mut self) -> io::Result<Option<Action>> {
        if let Some(next) = self.next.take() {
            return Ok(Some(next));
        }
        let Some(input) = &mut self.input else { return Ok(None) };
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&line)?))
    }
}

/// Returns an action whose attributes are to be read again.
fn given(action: Action) -> Planned {
    Planned { action, source: None, target: None, digest: None }
}

fn folder_of(action: &Action) -> PathBuf {
    action.path.0.parent().map(Path::to_path_buf).unwrap_or_default()
}
