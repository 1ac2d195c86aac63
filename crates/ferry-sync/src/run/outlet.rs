//! Sinks that change nothing, and plans that are read back.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use crate::perform::Done;
use crate::plan::{Action, Header, Reader, SCHEMA, Verb, Version, Writer};
use crate::request::Request;
use crate::sink::{Batch, Planned, Sink};

/// Most actions passed on at once.
const BATCH: usize = 256;

/// The sink of `--dry-run`.
pub(super) struct Printer<'a> {
    tell: &'a dyn Fn(&Action),
    pub(super) done: Done,
}

impl<'a> Printer<'a> {
    pub(super) fn new(tell: &'a dyn Fn(&Action)) -> Self {
        Self { tell, done: Done::default() }
    }
}

impl Sink for Printer<'_> {
    async fn take(&mut self, batch: Batch) -> io::Result<()> {
        for planned in &batch.actions {
            self.done.count(planned.action.verb);
            (self.tell)(&planned.action);
        }
        Ok(())
    }
}

/// The sink of `--plan`.
pub(super) struct Recorder<'a> {
    writer: Writer<BufWriter<File>>,
    tell: &'a dyn Fn(&Action),
    done: Done,
}

impl<'a> Recorder<'a> {
    pub(super) fn begin(
        file: File,
        request: &Request,
        (source_root, target_root): (Version, Option<Version>),
        tell: &'a dyn Fn(&Action),
    ) -> io::Result<Self> {
        let header = Header {
            schema: SCHEMA,
            made_by: concat!("ferry ", env!("CARGO_PKG_VERSION")).to_owned(),
            source: std::path::absolute(&request.source)?.as_path().into(),
            target: std::path::absolute(&request.target)?.as_path().into(),
            source_root,
            target_root,
        };
        Ok(Self { writer: Writer::begin(BufWriter::new(file), header)?, tell, done: Done::default() })
    }

    /// Ends the plan; one that is not whole gets no last line.
    pub(super) fn end(self, is_whole: bool) -> io::Result<Done> {
        if is_whole {
            self.writer.end()?;
        }
        Ok(self.done)
    }
}

impl Sink for Recorder<'_> {
    async fn take(&mut self, batch: Batch) -> io::Result<()> {
        for planned in batch.actions {
            self.done.count(planned.action.verb);
            (self.tell)(&planned.action);
            self.writer.add(planned.action)?;
        }
        Ok(())
    }
}

/// Passes the actions of a plan to a sink: those on entries of one folder together.
pub(super) async fn pass_on<R: io::BufRead>(reader: &mut Reader<R>, sink: &mut impl Sink) -> io::Result<()> {
    let mut batch: Option<Batch> = None;
    while let Some(action) = reader.next_action().map_err(io::Error::other)? {
        let folder = action.path.0.parent().map(Path::to_path_buf).unwrap_or_default();
        let fits = batch.as_ref().is_some_and(|batch| may_join(batch, &folder, &action));
        let planned = Planned { action, source: None, target: None, digest: None };
        match &mut batch {
            Some(batch) if fits => batch.actions.push(planned),
            _ => {
                if let Some(whole) = batch.replace(Batch { folder, actions: vec![planned] }) {
                    sink.take(whole).await?;
                }
            }
        }
    }
    match batch {
        Some(last) => sink.take(last).await,
        None => Ok(()),
    }
}

fn may_join(batch: &Batch, folder: &PathBuf, action: &Action) -> bool {
    let is_deletion = |action: &Action| action.verb == Verb::Delete;
    let is_alone = |action: &Action| action.is_on_folder() && !is_deletion(action);
    batch.folder == *folder
        && batch.actions.len() < BATCH
        && !is_alone(action)
        && batch
            .actions
            .iter()
            .all(|other| !is_alone(&other.action) && is_deletion(&other.action) == is_deletion(action))
}
