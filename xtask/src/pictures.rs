//! Draws the documents' pictures: copies of the same files of 1 MiB, in blocks of 4 KiB and in blocks of 1 MiB.

use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::scratch::Scratch;
use crate::{install, workspace};

/// The tree of the first document with 155 files instead of 3,905, which would make two million operations.
const TREE: [&str; 6] = ["lab", "tree", "large-3905", "--depth", "2", "source"];

/// The copier of the first document: one thread, every operation on the ring.
const COPIER: [&str; 5] = ["cp", "-r", "--route=ring", "--workers=1", "--trace=recording"];

/// Each picture's name, size of blocks, and target of its copy.
const PICTURES: [(&str, &str, &str); 2] =
    [("blocks-4k.svg", "--block-size=4K", "4k"), ("blocks-1m.svg", "--block-size=1M", "1m")];

/// Builds a release, copies, and writes each picture into `folder`.
pub(crate) fn run(root: &Path, folder: &Path) -> Result<(), Failure> {
    let binary = workspace::release(root)?;
    install::make_folder(folder)?;
    let folder = folder.canonicalize().map_err(Failure::path("enter", folder))?;
    let scratch = Scratch::open()?;
    let ferry = |arguments: &[&str]| {
        install::output(Command::new(&binary).args(arguments).current_dir(scratch.path()), "ferry").map(drop)
    };
    ferry(&TREE)?;
    for (name, blocks, target) in PICTURES {
        ferry(&[&COPIER[..], &[blocks, "source", target]].concat())?;
        let picture = folder.join(name);
        let output = format!("--output={}", picture.display());
        ferry(&["trace", "export", "--format=svg", &output, "recording"])?;
        println!("{}", picture.display());
    }
    Ok(())
}
