//! Files with several names: the first name is copied by one rank alone, and the others are linked to it.

use ferry_cluster::Text;
use ferry_copy::{FailureKind, Sides};
use ferry_io::Name;

use super::Rank;

impl Rank<'_> {
    /// Copies the first name of a file.
    pub(super) async fn copy_owner(&self, folder: &Text, name: &Text) -> bool {
        if self.setup.leaves_linked() {
            // The journal is that of a job that has begun with a new target.
            return true;
        }
        let (Some(pair), Some(name)) = (self.way.go(folder).await, Name::new(name.as_bytes())) else {
            return false;
        };
        let copied = async {
            let (source, target) = self.copier.look(&pair, &name).await?;
            let source = source.ok_or(FailureKind::Changed)?;
            if self.setup.keeps_existing() && target.is_some() {
                // Another program has made it: the other names must not become links to it.
                return Err(FailureKind::Changed);
            }
            self.copy_over(&pair, &name, &source, target.as_ref()).await
        };
        let copied = copied.await;
        self.note(&pair, &name, copied)
    }

    /// Links a name to the copy of the first one.
    pub(super) async fn link(&self, first: (&Text, &Text), link: (&Text, &Text)) -> bool {
        if self.setup.leaves_linked() {
            return true;
        }
        let (Some(first_name), Some(name)) = (Name::new(first.1.as_bytes()), Name::new(link.1.as_bytes()))
        else {
            return false;
        };
        let Some(first_pair) = self.way.go(first.0).await else { return false };
        let known = async {
            let (source, target) = self.copier.look(&first_pair, &first_name).await?;
            let (Some(source), Some(target)) = (source, target) else { return Err(FailureKind::Changed) };
            // The copier links further names to the copy that it knows.
            let is_known = self.copier.keep(&first_pair, &first_name, &source, (&target, None)).await?;
            if is_known { Ok((source, target)) } else { Err(FailureKind::Changed) }
        };
        let known = known.await;
        let Some(pair) = self.way.go(link.0).await else { return false };
        let linked = async {
            let (first_source, first_target) = known?;
            let (source, target) = self.copier.look(&pair, &name).await?;
            let source = source.filter(|source| source.is_same_file(&first_source));
            let source = source.ok_or(FailureKind::Changed)?;
            match &target {
                Some(target) if target.is_same_file(&first_target) => Ok(()),
                Some(_) if self.setup.keeps_existing() => Ok(()),
                _ if self.rules.by_rules => self.copier.copy_by_rules(&pair, &name).await,
                target => {
                    let sides = Sides { source: &source, target: target.as_ref() };
                    self.copier.copy(&pair, &name, sides).await
                }
            }
        };
        let linked = linked.await;
        self.note(&pair, &name, linked)
    }
}
