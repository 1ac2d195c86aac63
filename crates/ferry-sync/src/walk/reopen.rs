//! Opening again the folders of the path that were closed because too many were open.

use ferry_copy::{FailureKind, Verb};
use ferry_io::{Cause, Errno, Error, Name, Operation};

use super::level::Side;
use super::{Walk, open_levels};

impl Walk<'_> {
    /// Opens the last level's sides again, if they were closed: from the nearest open level down, by names, without
    /// following links. Each must be the folder that it was.
    pub(super) async fn reopen(&mut self) -> Result<(), FailureKind> {
        let is_open = |side: &Side| side.dir.is_some() || side.identity.is_none();
        let Some(open) =
            self.levels.iter().rposition(|level| is_open(&level.source) && is_open(&level.target))
        else {
            return Err(stale());
        };
        for at in open + 1..self.levels.len() {
            let (above, below) = self.levels.split_at_mut(at);
            let (Some(above), Some(level)) = (above.last(), below.first_mut()) else { return Err(stale()) };
            let name = level.path.file_name().and_then(|name| Name::new(name.as_encoded_bytes()));
            let Some(name) = name else { return Err(stale()) };
            reopen_side(&above.source, &mut level.source, &name).await?;
            reopen_side(&above.target, &mut level.target, &name).await?;
        }
        // Those far above close again.
        let count = self.levels.len().saturating_sub(open_levels(self.io.descriptors()));
        for level in self.levels.iter_mut().take(count).skip(1) {
            (level.source.dir, level.target.dir) = (None, None);
        }
        Ok(())
    }
}

async fn reopen_side(above: &Side, side: &mut Side, name: &Name) -> Result<(), FailureKind> {
    let failed = |error| FailureKind::Io { verb: Verb::OpenDirectory, error };
    let (Some(identity), None) = (side.identity, &side.dir) else { return Ok(()) };
    let Some(above) = &above.dir else { return Err(stale()) };
    let dir = above.open_dir(name).await.map_err(failed)?;
    let stat = dir.stat().await.map_err(failed)?;
    if (stat.device, stat.inode) != identity {
        return Err(stale());
    }
    side.dir = Some(dir);
    Ok(())
}

fn stale() -> FailureKind {
    let error = Error { operation: Operation::Open, cause: Cause::Errno(Errno::STALE) };
    FailureKind::Io { verb: Verb::OpenDirectory, error }
}
