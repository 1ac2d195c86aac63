//! Where the workspace is, which crates it has, and which Rust files belong to a crate.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

/// The workspace's root folder: the one that holds this crate's.
pub(crate) fn root() -> Result<PathBuf, Failure> {
    let own = env::var_os("CARGO_MANIFEST_DIR").ok_or(Failure::WithoutCargo)?;
    Path::new(&own).parent().map(Path::to_owned).ok_or(Failure::WithoutCargo)
}

/// The Cargo that started this task, or the one on PATH.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Where Cargo builds.
pub(crate) fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder))
}

/// The crates' folders, sorted: each folder of `crates/` with a manifest, and `xtask`.
pub(crate) fn crate_folders(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut folders = children(&root.join("crates"))?;
    folders.push(root.join("xtask"));
    folders.retain(|folder| folder.join("Cargo.toml").is_file());
    Ok(folders)
}

/// All Rust files beneath a crate's folder, tests and examples included, sorted.
pub(crate) fn sources(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in children(&folder)? {
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != "target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// A text file's content; what is not UTF-8 is replaced.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let bytes = fs::read(path).map_err(Failure::path("read", path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A folder's entries, sorted.
pub(crate) fn children(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(Failure::path("list", folder))? {
        paths.push(entry.map_err(Failure::path("list", folder))?.path());
    }
    paths.sort();
    Ok(paths)
}
