//! The file that an operation acts on, as far as the names in a recording show it.
//!
//! A recording names path components, not paths. The component of the request is the most exact name. A request without
//! one acts on the file of its fiber, whose folder is the fiber that opened its scope.

use ferry_io::Operation as Kind;

use crate::Trace;
use crate::model::{Fiber, Operation};

/// Number of fibers that are examined, from the operation's own outwards. A damaged file may contain circles.
const LEVELS: usize = 8;

/// A file and its folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place<'t> {
    /// Name of the folder, without the folders above it; empty if unknown.
    pub folder: &'t str,
    /// Name of the file; empty if unknown.
    pub name: &'t str,
}

impl<'t> Place<'t> {
    /// Finds the file of an operation.
    #[must_use]
    pub fn of(trace: &'t Trace, operation: &'t Operation) -> Self {
        let mut place = Self { folder: "", name: &operation.name };
        let mut fiber = operation.fiber.and_then(|fiber| trace.fibers.get(fiber as usize));
        for level in 0..LEVELS {
            let Some(inner) = fiber else { break };
            let outer = opener(trace, inner);
            // A fiber that copies several files one after another has the name of the first one, and a folder is made by
            // the fiber of its source.
            let is_folder = level > 0
                || operation.kind != Kind::MakeDirectory && outer.is_none_or(|outer| outer.name.is_empty());
            let is_useless = inner.name.is_empty() || inner.name == place.name;
            if is_useless || !place.name.is_empty() && !is_folder {
                fiber = outer;
                continue;
            }
            if place.name.is_empty() {
                place.name = &inner.name;
            } else {
                place.folder = &inner.name;
                break;
            }
            fiber = outer;
        }
        place
    }

    /// Returns `folder/name`, or as much of it as is known.
    #[must_use]
    pub fn path(&self) -> String {
        if self.folder.is_empty() { self.name.to_owned() } else { format!("{}/{}", self.folder, self.name) }
    }
}

/// Returns the fiber that opened a fiber's scope.
fn opener<'t>(trace: &'t Trace, fiber: &Fiber) -> Option<&'t Fiber> {
    let scope = trace.scopes.get(fiber.scope as usize)?;
    trace.fibers.get(scope.fiber? as usize)
}
