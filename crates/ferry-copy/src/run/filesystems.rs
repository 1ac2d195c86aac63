//! Adapting to the filesystems of a source and its target.

use std::sync::Arc;

use ferry_io::Dir;

use super::Run;
use crate::abilities::{Abilities, DevicePair};
use crate::folder::Folder;
use crate::options::{Reflink, Sparse};

/// Magic number of btrfs (statfs(2)).
const BTRFS_SUPER_MAGIC: u64 = 0x9123_683E;

impl Run {
    /// Adapts to the filesystems of an operand's folders.
    ///
    /// More workers make btrfs slower: its transactions are serialised by locks. It shares extents in less time than
    /// it writes a page; XFS does not, where sharing flushes the source and logs both files.
    pub(crate) async fn adapt_to(&self, folder: &Folder, source: &Dir, target: &Dir) {
        let is_btrfs = target.filesystem_magic() == Some(BTRFS_SUPER_MAGIC);
        let is_alone = is_btrfs || self.asks();
        self.io.limit_workers(if is_alone { 1 } else { self.limits.workers });
        let (Ok(source), Ok(found)) = (source.stat().await, target.stat().await) else {
            // On an unknown filesystem each file is synced by itself.
            return;
        };
        let abilities = self.known.of(DevicePair { source: source.device, target: found.device });
        abilities.set_target(target.filesystem_magic());
        abilities.set_clones_small(is_btrfs);
        folder.set_abilities(abilities);
        if self.options.fsync {
            self.durable.meet(found.device, target, || folder.target_path()).await;
        }
    }

    /// Sets a folder's abilities: those of the filesystems of its source and its target.
    pub(crate) fn meet(&self, folder: &Folder, devices: DevicePair, target: &Dir) {
        let above = folder.parent().and_then(|parent| parent.abilities());
        let abilities = match above.filter(|above| above.devices == devices) {
            Some(above) => Arc::clone(above),
            None => {
                let abilities = self.known.of(devices);
                abilities.set_target(target.filesystem_magic());
                // A subvolume has a device number of its own.
                abilities.set_clones_small(above.is_some_and(|above| above.clones_small()));
                abilities
            }
        };
        folder.set_abilities(abilities);
    }

    /// Returns the abilities for a file of the device `source`. Its target is on its folder's device, unless a link has
    /// led to another.
    pub(crate) fn abilities(&self, folder: &Folder, source: u64, target: Option<u64>) -> Arc<Abilities> {
        let Some(of_folder) = folder.abilities() else { return Arc::default() };
        let devices = DevicePair { source, target: target.unwrap_or(of_folder.devices.target) };
        if of_folder.devices == devices { Arc::clone(of_folder) } else { self.known.of(devices) }
    }

    /// Returns true if a file in this folder is opened rather than read, because its extents are likely to be shared.
    pub(crate) fn clones_small_files(&self, folder: &Folder) -> bool {
        let is_wanted = self.options.reflink != Reflink::Never && self.options.sparse == Sparse::Auto;
        is_wanted && folder.abilities().is_some_and(|abilities| abilities.clones_small())
            || self.options.reflink == Reflink::Always
    }

    /// Returns true if a target on this device must be synced by itself, rather than with its filesystem at the end.
    pub(crate) fn is_synced_apart(&self, device: Option<u64>) -> bool {
        self.options.fsync && device.is_none_or(|device| !self.durable.has_met(device))
    }
}
