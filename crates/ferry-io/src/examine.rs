//! Several entries of a folder, examined by one request.
//!
//! A request for each stat(2) and each listxattr(2) costs a future, a fiber and a decision of the router apart; on the pool it
//! costs two context switches. Comparing two trees takes both calls for nearly every entry, so the names of a folder are
//! examined together: inline while such calls do not block, otherwise on one thread of the pool
//! (docs/decisions/0020-examining-many.md).

use std::sync::Arc;

use rustix::io::Errno;

use crate::descriptor::Dir;
use crate::error::Result;
use crate::facts::Facts;
use crate::name::Name;
use crate::op::{Op, Outcome, expect_outcome};
use crate::worker::{current, submit};

/// Names of one request.
const NAMES: usize = 64;
/// Names of one request where each has to be waited for: several threads of the pool then wait at once.
const SLOW_NAMES: usize = 8;

/// Facts of one entry, or the error of fstatat(2).
type Examined = std::result::Result<Facts, Errno>;

impl Dir {
    /// Examines several entries in one request, in the order of `names`. With `details`, texts of links and extended attributes
    /// are read, too. If they can't be read, or are too many, they are missing; the caller then asks for each apart.
    ///
    /// Each entry has its own error, of fstatat(2).
    ///
    /// # Errors
    /// If the scope is cancelled.
    pub async fn examine(&self, names: Vec<Name>, details: bool) -> Result<Vec<Examined>> {
        let op = Op::Examine { dir: Arc::clone(&self.fd), names, details };
        expect_outcome!(submit(op).await.1, Outcome::Examined(found) => found)
    }

    /// Returns the number of names that one request should have, for now.
    #[must_use]
    pub fn names_at_once(&self) -> usize {
        if current().waits_for_entries(self.fd.device()) { SLOW_NAMES } else { NAMES }
    }
}
