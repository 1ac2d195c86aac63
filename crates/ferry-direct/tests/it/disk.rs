//! Direct files on real filesystems: the bytes bypass the page cache and come back.

use std::path::{Path, PathBuf};
use std::process::Command;

use ferry_direct::{Access, DirectFile, DirectOptions};
use ferry_io::probe;
use ferry_io::{Backend, Dir, Io, OpenHow, Options, RouteChoice, WhyBuffered, run};

use crate::place::{name, pattern};

/// A filesystem in an image, mounted for one test.
pub(super) struct Mounted {
    place: tempfile::TempDir,
}

impl Mounted {
    /// Makes and mounts the filesystem; on failure prints SKIP and returns `None`.
    pub(super) fn new(kind: &str) -> Option<Self> {
        let mounted = Self { place: tempfile::tempdir().expect("a temporary folder") };
        match mounted.mount(kind) {
            Ok(()) => Some(mounted),
            Err(reason) => {
                println!("SKIP {kind}: {}", reason.trim());
                None
            }
        }
    }

    fn mount(&self, kind: &str) -> Result<(), String> {
        std::fs::create_dir(self.path()).map_err(|error| error.to_string())?;
        if kind == "tmpfs" {
            return succeed(Command::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(self.path()));
        }
        let image = self.place.path().join("image");
        // XFS needs at least 300 MB. The image occupies no space until it is written.
        let made = std::fs::File::create(&image).and_then(|file| file.set_len(512 << 20));
        made.map_err(|error| error.to_string())?;
        succeed(Command::new(format!("mkfs.{kind}")).arg("-q").arg(&image))?;
        succeed(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(self.path()))
    }

    pub(super) fn path(&self) -> PathBuf {
        self.place.path().join("mounted")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Fails if the filesystem was never mounted.
        succeed(Command::new("umount").arg("--lazy").arg(self.path())).ok();
    }
}

fn succeed(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// Options of each backend available here.
fn backends() -> Vec<Options> {
    let with = |backend, route| Options { backend, route, ..Options::default() };
    let mut found = vec![with(Backend::Posix, RouteChoice::Auto)];
    let uring = with(Backend::Uring, RouteChoice::Auto);
    match run(&uring, async |_| ()) {
        Ok(_) => found.push(uring),
        Err(error) => println!("SKIP uring: {error}"),
    }
    found
}

/// A small cache: a few MiB exceed it.
fn small() -> DirectOptions {
    DirectOptions { blocks: 64, request_blocks: 8, ahead_blocks: 16, ..DirectOptions::default() }
}

fn cached_bytes(path: &Path) -> probe::InMemory {
    let file = std::fs::File::open(path).expect("it is there");
    probe::data(&file, 0, 0).expect("cachestat(2), Linux 6.5")
}

/// Writes a file out of order at odd offsets and reads it back; returns the expected content.
async fn exercise(io: &Io, folder: &Dir, size: usize) -> (Access, Vec<u8>) {
    let how = OpenHow::create(0o644);
    let file = DirectFile::open(io, folder, &name("file"), how, small()).await.expect("it is new");
    let mut expected = pattern(size);
    for (number, part) in expected.chunks(70_001).enumerate() {
        file.write_from(part, number as u64 * 70_001).await.expect("it is written");
    }
    file.flush().await.expect("it is durable");
    for at in (1..size - 3000).step_by(333_333).rev() {
        file.write_from(&[9; 3000], at as u64).await.expect("it is changed");
        expected[at..at + 3000].fill(9);
    }
    let mut bytes = vec![0; size + 1];
    assert_eq!(file.read_into(&mut bytes, 0).await, Ok(size));
    assert!(bytes[..size] == expected, "what was written is read");
    let access = file.access();
    file.close().await.expect("it is durable");
    (access, expected)
}

#[test]
fn its_bytes_are_on_the_device_and_not_in_the_page_cache() {
    const SIZE: usize = (3 << 20) + 4567;
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(mounted) = Mounted::new(kind) else { continue };
        for options in backends() {
            let path = mounted.path().join("file");
            let (access, expected) = run(&options, async |io| {
                let folder = io.open_dir(&mounted.path()).expect("it is mounted");
                exercise(&io, &folder, SIZE).await
            })
            .expect("the backend is there")
            .0;
            assert!(matches!(access, Access::Direct { .. }), "{kind}: {}", access.explain());
            println!("{kind}, {:?}: {}", options.backend, access.explain());
            let cached = cached_bytes(&path);
            assert_eq!(
                (cached.bytes, cached.dirty_bytes),
                (0, 0),
                "{kind}: the page cache is left out of it"
            );
            assert!(std::fs::read(&path).expect("it is there") == expected, "{kind}: others see the same");
            std::fs::remove_file(&path).expect("it is there");
        }
    }
}

#[test]
fn a_filesystem_in_memory_is_used_through_the_page_cache() {
    let Some(mounted) = Mounted::new("tmpfs") else { return };
    for options in backends() {
        let path = mounted.path().join("file");
        let (access, expected) = run(&options, async |io| {
            let folder = io.open_dir(&mounted.path()).expect("it is mounted");
            exercise(&io, &folder, 1 << 20).await
        })
        .expect("the backend is there")
        .0;
        assert_eq!(access, Access::Buffered { why: WhyBuffered::InMemory, uncached: false });
        assert_eq!(access.explain(), "through the page cache: the filesystem is in memory");
        assert!(std::fs::read(&path).expect("it is there") == expected);
        std::fs::remove_file(&path).expect("it is there");
    }
}
