//! Large files: ranges, and the end after the last one.

use std::ops::Range;

use ferry_cluster::LargeFile;
use ferry_copy::{FailureKind, Sides, is_complete};
use ferry_io::{Name, Stat};

use super::Rank;
use super::entries::{part, version};
use super::way::{Visit, may_hold};

/// A large file, found again.
struct Looked<'a> {
    pair: Visit<'a, 'a>,
    name: Name,
    part: Name,
    source: Stat,
    target: Option<Stat>,
}

impl Rank<'_> {
    /// Finds a large file. Returns `None` after a failure, which is reported.
    async fn look(&self, file: &LargeFile) -> Option<Looked<'_>> {
        let pair = self.way.go(&file.folder).await?;
        let (name, part) = (Name::new(file.name.as_bytes())?, part(file.name.as_bytes(), file.version)?);
        let looked = match self.copier.look(&pair, &name).await {
            Ok((Some(source), target)) if version(&source) == file.version => Ok((source, target)),
            Ok(_) => Err(FailureKind::Changed),
            Err(kind) => Err(kind),
        };
        match looked {
            Ok((source, target)) => Some(Looked { pair, name, part, source, target }),
            Err(kind) => {
                self.copier.fail(&pair, &name, kind);
                None
            }
        }
    }

    /// Returns true if the file has its name: an interrupted job has given it to its copy, or the existing target stays.
    async fn is_done(&self, looked: &Looked<'_>) -> bool {
        let Some(target) = &looked.target else { return false };
        if self.setup.keeps_existing() || self.rules.keeps_existing() {
            return true;
        }
        if !self.setup.is_resumed || self.rules.keeps_times() {
            return self.setup.is_resumed && is_complete(&looked.source, target);
        }
        // Its time says nothing. The part is missing once it has the name.
        let Ok((_, folder)) = self.copier.folders(&looked.pair).await else { return false };
        target.size == looked.source.size && !may_hold(&folder, &looked.part).await
    }

    /// Copies a range. The first one of a file may have to make the part.
    pub(super) async fn copy_range(&self, file: &LargeFile, range: Range<u64>, makes_part: bool) -> bool {
        let Some(looked) = self.look(file).await else { return false };
        if self.is_done(&looked).await {
            return true;
        }
        let Looked { pair, name, part, source, .. } = &looked;
        let begun = if makes_part { self.copier.begin_ranges_of(pair, part, source).await } else { Ok(()) };
        let copied = match begun {
            Ok(()) => self.copier.copy_range(pair, (name, part), source, range).await,
            Err(kind) => Err(kind),
        };
        self.note(pair, name, copied)
    }

    /// Gives a file its attributes and its name.
    pub(super) async fn close(&self, file: &LargeFile) -> bool {
        let Some(looked) = self.look(file).await else {
            self.discard(file).await;
            return false;
        };
        if self.is_done(&looked).await {
            self.kept.set(self.kept.get() + 1);
            self.discard(file).await;
            return true;
        }
        let Looked { pair, name, part, source, target } = &looked;
        let sides = Sides { source, target: target.as_ref() };
        let ended = self.copier.end_ranges(pair, (name, part), sides).await;
        let is_done = self.note(pair, name, ended);
        if is_done && self.rules.options.explain {
            self.failures.explain("ranges", "large, so ranks share it", source.size);
        }
        if !is_done && self.check().is_ok() {
            self.discard(file).await;
        }
        is_done
    }

    /// Removes what was copied of a file.
    pub(super) async fn discard(&self, file: &LargeFile) -> bool {
        let Some(pair) = self.way.go(&file.folder).await else { return false };
        let (Some(name), Some(part)) =
            (Name::new(file.name.as_bytes()), part(file.name.as_bytes(), file.version))
        else {
            return false;
        };
        let removed = self.copier.drop_ranges(&pair, &part).await;
        self.note(&pair, &name, removed)
    }
}
