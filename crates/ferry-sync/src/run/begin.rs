//! The beginning of a run: both roots are opened, and compared with one another.

use std::path::{Path, PathBuf};

use ferry_io::{Cause, Dir, Errno, Io, Name, Paths};

use crate::decide::{Comparison, Decision, Rules, decide};
use crate::facts::{ability, have_equal_xattrs};
use crate::perform::{Place, is_trash};
use crate::plan::{Verb, Version};
use crate::request::Refused;
use crate::sink::{Planned, planned};
use crate::walk::TRASH;

/// Folders between a root and its tree at most (path_resolution(7) allows shorter paths only).
const LEVELS: usize = 4_096;

/// Both roots.
pub(super) struct Roots {
    pub(super) source: Dir,
    /// `None` if it is missing.
    pub(super) target: Option<Dir>,
    /// Set if the target was made.
    pub(super) is_new: bool,
    /// The target, or the folder in which it is to be made.
    near_target: Dir,
    source_path: PathBuf,
}

impl Roots {
    /// Opens both roots.
    pub(super) async fn open(io: &Io, source_path: &Path, target_path: &Path) -> Result<Self, Refused> {
        let paths = Paths::new();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error: ferry_io::Error| Refused::Open { path, cause: error.cause }
        };
        let source = io.folder(&paths, source_path).map_err(failed(source_path))?;
        let (target, near_target) = match io.folder(&paths, target_path) {
            Ok(target) => (Some(target.clone()), target),
            Err(error) if error.is(Errno::NOENT) => {
                let (above, _) = split(target_path)
                    .ok_or_else(|| Refused::Open { path: target_path.to_owned(), cause: error.cause })?;
                let above = io.folder(&paths, &above).map_err(failed(&above))?;
                refuse_overlap(&source, &above, source_path, target_path).await?;
                (None, above)
            }
            Err(error) => return Err(failed(target_path)(error)),
        };
        if let Some(target) = &target {
            refuse_trash(target, target_path).await?;
            refuse_same(&source, target, source_path, target_path).await?;
            refuse_overlap(&source, target, source_path, target_path).await?;
            refuse_overlap(target, &source, target_path, source_path).await?;
        }
        Ok(Self { source, target, is_new: false, near_target, source_path: source_path.to_owned() })
    }

    /// Makes the target if it is missing.
    pub(super) async fn make_target(&mut self, target_path: &Path) -> Result<(), Refused> {
        if let (None, Some((_, name))) = (&self.target, split(target_path)) {
            let target = make(&self.near_target, &name, target_path).await?;
            (self.near_target, self.target, self.is_new) = (target.clone(), Some(target), true);
        }
        Ok(())
    }

    /// Refuses roots that can't be listed.
    pub(super) async fn list(&self, target_path: &Path) -> Result<(), Refused> {
        self.is_source_empty().await?;
        let Some(target) = &self.target else { return Ok(()) };
        let failed =
            |error: ferry_io::Error| Refused::Open { path: target_path.to_owned(), cause: error.cause };
        is_empty(target).await.map_err(failed).map(drop)
    }

    pub(super) async fn is_source_empty(&self) -> Result<bool, Refused> {
        let path = self.source_path.clone();
        is_empty(&self.source).await.map_err(|error| Refused::Open { path, cause: error.cause })
    }

    /// Returns the rules for the target's filesystem.
    pub(super) async fn rules(&self, comparison: Comparison, keeps_newer: bool) -> Rules {
        let ability = ability(&self.near_target).await;
        Rules {
            comparison,
            keeps_newer,
            owners: ferry_io::is_superuser(),
            grain: ability.grain,
            xattrs: ability.xattrs,
            unfinished: ability.unfinished,
            doubted_since: None,
        }
    }

    /// Returns the action on the roots themselves, if there is one.
    pub(super) async fn root_action(&self, rules: &Rules) -> Option<Planned> {
        let source = self.source.stat().await.ok()?;
        let make = |verb, target| Some(planned(verb, Path::new(""), Some(source), target, None));
        let Some(target) = self.target.as_ref().filter(|_| !self.is_new) else {
            return make(Verb::Create, None);
        };
        let stat = target.stat().await.ok()?;
        let is_equal = decide(&source, Some(&stat), rules) == Decision::Equal
            && have_equal_xattrs(&self.source, target, rules).await.unwrap_or(false);
        if is_equal { None } else { make(Verb::Attributes, Some(stat)) }
    }

    /// Returns the versions of both roots; without a target, only the source's.
    pub(super) async fn versions(&self, target_path: &Path) -> Result<(Version, Option<Version>), Refused> {
        let version = async |dir: &Dir, path: &Path| match dir.stat().await {
            Ok(stat) => Ok(Version::of_source(&stat)),
            Err(error) => Err(Refused::Open { path: path.to_owned(), cause: error.cause }),
        };
        let source = version(&self.source, &self.source_path).await?;
        match self.target.as_ref().filter(|_| !self.is_new) {
            Some(target) => Ok((source, Some(version(target, target_path).await?))),
            None => Ok((source, None)),
        }
    }

    /// Refuses roots that are other folders than those that a plan was made for.
    pub(super) async fn refuse_others(
        &self,
        source: Version,
        target: Option<Version>,
        target_path: &Path,
    ) -> Result<(), Refused> {
        let found = self.versions(target_path).await?;
        if found.0 != source {
            return Err(Refused::Other(self.source_path.clone()));
        }
        if found.1 != target {
            return Err(Refused::Other(target_path.to_owned()));
        }
        Ok(())
    }

    /// Returns the identity of the folder of the trashes, if it is there. With `makes` it is made now, so that the walk
    /// knows it if it is in one of the trees.
    pub(super) async fn trash(
        &self,
        io: &Io,
        (folder, target_path): (&Path, &Path),
        makes: bool,
    ) -> Result<Option<(u64, u64)>, Refused> {
        if let Some(target) = self.target.as_ref().filter(|_| makes) {
            let place = place_of_trash(io, target, target_path, Some(folder)).await?;
            match place.above.make_dir(&place.name, 0o700).await {
                Err(error) if !error.is(Errno::EXIST) => {
                    return Err(Refused::Make { path: folder.to_owned(), cause: error.cause });
                }
                Ok(()) | Err(_) => {}
            }
        }
        let Ok(trash) = io.folder(&Paths::new(), folder) else { return Ok(None) };
        let failed = |error: ferry_io::Error| Refused::Open { path: folder.to_owned(), cause: error.cause };
        let stat = trash.stat().await.map_err(failed)?;
        Ok(Some((stat.device, stat.inode)))
    }
}

/// Splits a path into the folder that it is in and its last name.
fn split(path: &Path) -> Option<(PathBuf, Name)> {
    let name = Name::new(path.file_name()?.as_encoded_bytes())?;
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some((above.to_path_buf(), name))
}

async fn make(above: &Dir, name: &Name, path: &Path) -> Result<Dir, Refused> {
    let failed = |error: ferry_io::Error| Refused::Make { path: path.to_owned(), cause: error.cause };
    above.make_dir(name, 0o700).await.map_err(failed)?;
    above.open_dir(name).await.map_err(failed)
}

async fn refuse_same(a: &Dir, b: &Dir, a_path: &Path, b_path: &Path) -> Result<(), Refused> {
    match (a.stat().await, b.stat().await) {
        (Ok(a), Ok(b)) if a.is_same_file(&b) => Err(Refused::Same(a_path.to_owned(), b_path.to_owned())),
        _ => Ok(()),
    }
}

/// Refuses two folders of which `inner` is `outer` or beneath it.
async fn refuse_overlap(
    outer: &Dir,
    inner: &Dir,
    outer_path: &Path,
    inner_path: &Path,
) -> Result<(), Refused> {
    let failed = |error: ferry_io::Error| Refused::Open { path: inner_path.to_owned(), cause: error.cause };
    let wanted = outer.stat().await.map_err(failed)?;
    let mut at = inner.clone();
    let mut stat = at.stat().await.map_err(failed)?;
    for _ in 0..LEVELS {
        if stat.is_same_file(&wanted) {
            return Err(Refused::Overlap { inner: inner_path.to_owned(), outer: outer_path.to_owned() });
        }
        at = at.parent().await.map_err(failed)?;
        let above = at.stat().await.map_err(failed)?;
        if above.is_same_file(&stat) {
            return Ok(());
        }
        stat = above;
    }
    let cause = Cause::Errno(Errno::NAMETOOLONG);
    Err(Refused::Open { path: inner_path.to_owned(), cause })
}

/// Opens the folder in which the trash is made.
pub(crate) async fn place_of_trash(
    io: &Io,
    target: &Dir,
    target_path: &Path,
    folder: Option<&Path>,
) -> Result<Place, Refused> {
    let Some(folder) = folder else {
        let name = Name::new(TRASH).unwrap_or_else(|| unreachable!("letters are a name"));
        let path = target_path.join(name.as_os_str());
        return Ok(Place { above: target.clone(), name, path });
    };
    let failed = |cause| Refused::Open { path: folder.to_owned(), cause };
    let (above, name) = split(folder).ok_or_else(|| failed(Cause::Errno(Errno::INVAL)))?;
    let above = io.folder(&Paths::new(), &above).map_err(|error| failed(error.cause))?;
    let (here, there) = (target.stat().await, above.stat().await);
    let is_elsewhere = here.ok().zip(there.ok()).is_none_or(|(here, there)| here.device != there.device);
    if is_elsewhere {
        // Entries go there by rename(2).
        return Err(failed(Cause::Errno(Errno::XDEV)));
    }
    // It may be the root of another filesystem.
    if let (Ok(there), Ok(here)) = (above.open_dir(&name).await, target.stat().await) {
        let found = there.stat().await.map_err(|error| failed(error.cause))?;
        if found.device != here.device {
            return Err(failed(Cause::Errno(Errno::XDEV)));
        }
    }
    Ok(Place { above, name, path: folder.to_owned() })
}

/// Refuses a target that is a trash: nothing in it is part of a tree.
pub(crate) async fn refuse_trash(target: &Dir, path: &Path) -> Result<(), Refused> {
    match is_trash(target).await {
        Ok(false) => Ok(()),
        Ok(true) => Err(Refused::IntoTrash(path.to_owned())),
        Err(error) => Err(Refused::Open { path: path.to_owned(), cause: error.cause }),
    }
}

/// Returns true if a root has no entries, apart from a trash.
///
/// # Errors
/// Those of listing it.
async fn is_empty(root: &Dir) -> ferry_io::Result<bool> {
    let mut part = root.list(Some(0)).await?;
    while part.entries.iter().all(|entry| entry.name.as_bytes() == TRASH) {
        if part.next.is_none() {
            return Ok(true);
        }
        part = root.list(None).await?;
    }
    Ok(false)
}
