//! Draws the documents' pictures: copies of the same files of 1 MiB, in blocks of 4 KiB and in blocks of 1 MiB; and the
//! documents' programs, which copy small files that are not in memory.

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

/// The form of the documents' small tree with three levels: 31 folders of 5 files of 4 KiB each.
const SMALL: [&str; 6] = ["lab", "tree", "small", "--depth", "2", "small"];

/// The same with two levels, and files of 16 blocks.
const LONGER: [&str; 8] = ["lab", "tree", "small", "--depth", "1", "--sizes", "64K", "longer"];

/// The documents' programs with the trees that they copy. Each picture is named after its program.
const PROGRAMS: [(&str, &str); 4] =
    [("sequential", "small"), ("dfs", "small"), ("bfs", "small"), ("blocks", "longer")];

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
        draw(&binary, scratch.path(), &folder.join(name))?;
    }
    ferry(&SMALL)?;
    ferry(&LONGER)?;
    for (program, tree) in PROGRAMS {
        forget(&scratch.path().join(tree))?;
        let mut copy = Command::new(&binary);
        copy.args(["lab", "strategy", program, tree, program]).current_dir(scratch.path());
        install::output(copy.env("FERRY_TRACE", "recording"), "ferry lab strategy")?;
        draw(&binary, scratch.path(), &folder.join(format!("{program}.svg")))?;
    }
    Ok(())
}

/// Draws the recording in `scratch`.
fn draw(binary: &Path, scratch: &Path, picture: &Path) -> Result<(), Failure> {
    let output = format!("--output={}", picture.display());
    let export = ["trace", "export", "--format=svg", &output, "recording"];
    install::output(Command::new(binary).args(export).current_dir(scratch), "ferry trace export")?;
    println!("{}", picture.display());
    Ok(())
}

/// Removes the content of a tree's files from the page cache.
fn forget(tree: &Path) -> Result<(), Failure> {
    let sync = ["-type", "f", "-exec", "sync", "{}", "+"];
    let dd = ["-type", "f", "-exec", "dd", "if={}", "iflag=nocache", "count=0", "status=none", ";"];
    install::output(Command::new("find").arg(tree).args(sync), "find")?;
    install::output(Command::new("find").arg(tree).args(dd), "find").map(drop)
}
