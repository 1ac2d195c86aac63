//! The cells: what is copied, where, and the command that measures it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools;

/// Options of `ferry lab copy` that all cells share.
const OPTIONS: [&str; 10] = [
    "--programs",
    "none",
    "--dd-size",
    "0",
    "--minutes",
    "0",
    "--limits",
    "auto",
    // Other variants of cp and ferry have no column in the table.
    "--also",
    "ferry-ring",
];

/// Copiers that are compared with `cp -r` and `ferry cp -r`. Those that are not installed are named below the table.
const PEERS: [&str; 5] = [
    "cpz {source} {target}",
    "fcp {source} {target}",
    "xcp -r --no-progress --no-perms --no-timestamps {source} {target}",
    "rcp {source} {target}",
    "rsync -rl --whole-file --inplace {source}/ {target}",
];

/// Copiers that keep what `cp -a` keeps.
const ARCHIVERS: [&str; 2] =
    ["rsync -aHAXS {source}/ {target}", "rcp --preserve-settings=all {source} {target}"];

/// Mounts a filesystem on an image in RAM and executes a command there. Arguments: the mount point for the RAM, the
/// filesystem, the command. The mounts belong to the namespace of this shell and end with it, also if it is killed.
const IN_RAM: &str = r#"
mount -t tmpfs -o size=5G ferry-bench "$1"
truncate -s 4G "$1/image"
case $2 in
  ext4) mkfs.ext4 -q -F -N 1000000 "$1/image" ;;
  xfs) mkfs.xfs -q -f "$1/image" ;;
  btrfs) mkfs.btrfs -q -f "$1/image" ;;
esac
mkdir "$1/work"
mount -o loop,noatime "$1/image" "$1/work"
shift 2
exec "$@"
"#;

/// One row of the table.
#[derive(Debug)]
pub(super) struct Cell {
    /// Name of its record, without `.json`.
    pub(super) name: &'static str,
    /// Preset of `ferry lab tree`.
    tree: &'static str,
    /// Cache: `cold` or `warm`.
    state: &'static str,
    extent: Extent,
    place: Place,
    runs: u32,
    /// Approximate time that the measurement takes with all peers, in minutes.
    pub(super) minutes: u32,
}

/// Extent of the copies, `--copy-as`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// `cp -r`
    Shared,
    /// `cp -a`
    Archive,
}

/// Filesystem of the copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A new one of this type in RAM.
    Ram(&'static str),
    /// That of the records.
    Disk,
}

const fn cell(
    name: &'static str,
    (tree, state, extent): (&'static str, &'static str, Extent),
    place: Place,
    (runs, minutes): (u32, u32),
) -> Cell {
    Cell { name, tree, state, extent, place, runs, minutes }
}

/// All cells, in the order of the table's rows.
pub(super) const CELLS: &[Cell] = &[
    cell("small-ext4-warm", ("small", "warm", Extent::Shared), Place::Ram("ext4"), (15, 2)),
    cell("small-xfs-warm", ("small", "warm", Extent::Shared), Place::Ram("xfs"), (15, 2)),
    cell("small-btrfs-warm", ("small", "warm", Extent::Shared), Place::Ram("btrfs"), (15, 2)),
    cell("small-ext4-warm-archive", ("small", "warm", Extent::Archive), Place::Ram("ext4"), (15, 2)),
    cell("small-ext4-cold", ("small", "cold", Extent::Shared), Place::Ram("ext4"), (15, 3)),
    cell("flat-ext4-warm", ("flat", "warm", Extent::Shared), Place::Ram("ext4"), (15, 15)),
    cell("three-ext4-warm", ("three", "warm", Extent::Shared), Place::Ram("ext4"), (41, 1)),
    cell("wide-disk-cold", ("wide", "cold", Extent::Shared), Place::Disk, (7, 15)),
    cell("large-disk-cold", ("large", "cold", Extent::Shared), Place::Disk, (7, 5)),
    cell("huge-disk-warm", ("huge", "warm", Extent::Shared), Place::Disk, (15, 15)),
    cell("huge-disk-cold", ("huge", "cold", Extent::Shared), Place::Disk, (7, 10)),
    cell("mixed-disk-warm-archive", ("mixed", "warm", Extent::Archive), Place::Disk, (15, 5)),
    cell("mixed-disk-cold-archive", ("mixed", "cold", Extent::Archive), Place::Disk, (7, 5)),
];

impl Cell {
    /// Returns the path of its record.
    pub(super) fn record(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.json", self.name))
    }

    /// Returns the command that takes the record, or adds the runs that it lacks. `room` is the mount point for RAM.
    pub(super) fn command(&self, ferry: &Path, record: &Path, folder: &Path, room: &Path) -> Command {
        let mut command = match self.place {
            Place::Disk => Command::new(ferry),
            Place::Ram(filesystem) => {
                let mut command = Command::new("unshare");
                command.args(["--mount", "--propagation", "private", "sh", "-euc", IN_RAM, "sh"]);
                command.arg(room).arg(filesystem).arg(ferry);
                command
            }
        };
        let work = match self.place {
            Place::Disk => folder.to_owned(),
            Place::Ram(_) => room.join("work"),
        };
        command.env("PATH", tools::search_path()).args(["lab", "copy", "--work-dir"]).arg(work);
        if record.exists() {
            command.arg("--resume").arg(record);
        } else {
            command.arg("--json").arg(record).args(self.options());
        }
        command
    }

    fn options(&self) -> Vec<String> {
        let (extent, peers) = match self.extent {
            Extent::Shared => ("shared", &PEERS[..]),
            Extent::Archive => ("archive", &ARCHIVERS[..]),
        };
        let runs = self.runs.to_string();
        let own = ["--trees", self.tree, "--states", self.state, "--copy-as", extent, "--runs", &runs];
        let peers = peers.iter().flat_map(|line| ["--vs", line]);
        own.into_iter().chain(OPTIONS).chain(peers).map(str::to_owned).collect()
    }
}
