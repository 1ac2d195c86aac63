//! Several entries of a folder, examined by one request.
//!
//! A request for each stat(2) and each listxattr(2) costs a future, a fiber and a decision of the router apart; on the pool it
//! costs two context switches. Comparing two trees takes both calls for nearly every entry, so the names of a folder are
//! examined together: inline while such calls do not block, otherwise on one thread of the pool
//! (docs/decisions/0020-examining-many.md).

use std::sync::Arc;

use rustix::io::Errno;

use crate::descriptor::Dir;
use crate::error::{Cause, Result};
use crate::facts::Facts;
use crate::name::Name;
use crate::op::{Op, Outcome, expect_outcome};
use crate::worker::{current, submit};

/// Facts of one entry, or the error of fstatat(2).
type Examined = std::result::Result<Facts, Errno>;

impl Dir {
    /// Examines several entries in one request, in the order of `names`. With `compared`, texts of links and extended attributes
    /// are read, too. If they can't be read, or are too many, they are missing; the caller then asks for each apart.
    ///
    /// Each entry has its own error, of fstatat(2).
    ///
    /// # Errors
    /// If the scope is cancelled.
    pub async fn examine(&self, names: Vec<Name>, compared: bool) -> Result<Vec<Examined>> {
        if current().splits_requests() {
            return self.examine_each(&names).await;
        }
        let op = Op::Examine { dir: Arc::clone(&self.fd), names, compared };
        expect_outcome!(submit(op).await.1, Outcome::Examined(found) => found)
    }

    /// Requests each entry's attributes apart.
    async fn examine_each(&self, names: &[Name]) -> Result<Vec<Examined>> {
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            found.push(match self.stat_entry(name, false).await {
                Ok(stat) => Ok(Facts::of(stat)),
                Err(error) => match error.cause {
                    Cause::Errno(errno) => Err(errno),
                    Cause::Cancelled | Cause::TimedOut | Cause::Closed => {
                        return Err(error);
                    }
                },
            });
        }
        Ok(found)
    }
}
