//! Finds the workspace, its crates, their files and the documents.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

/// Arguments of the Cargo command that all tests are built with.
pub(crate) const TESTS: [&str; 3] = ["test", "--workspace", "--locked"];

/// Returns the workspace's root folder, which holds this crate's.
pub(crate) fn root() -> Result<PathBuf, Failure> {
    let own = env::var_os("CARGO_MANIFEST_DIR").ok_or(Failure::WithoutCargo)?;
    Path::new(&own).parent().map(Path::to_owned).ok_or(Failure::WithoutCargo)
}

/// Returns a command of the Cargo that started this task, or else of the one on PATH, in the workspace's root.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

pub(crate) fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder))
}

/// Builds all programs and tests, and returns the folder with the programs. The command is the test suite's, because
/// another choice of packages has other features and would build half of the dependencies once more.
pub(crate) fn programs(root: &Path) -> Result<PathBuf, Failure> {
    const NAME: &str = "cargo test --no-run";
    let mut command = cargo(root);
    command.args(TESTS).args(["--no-run", "--quiet"]);
    let status = command.status().map_err(Failure::start(NAME))?;
    if status.success() { Ok(target(root).join("debug")) } else { Err(Failure::Command { command: NAME }) }
}

/// Builds a release of ferry and returns its path.
pub(crate) fn release(root: &Path) -> Result<PathBuf, Failure> {
    let mut command = cargo(root);
    command.args(["build", "--quiet", "--release", "--locked", "--package", "ferry"]);
    let status = command.status().map_err(Failure::start("cargo build"))?;
    if !status.success() {
        return Err(Failure::Command { command: "cargo build --release --package ferry" });
    }
    Ok(target(root).join("release/ferry"))
}

/// Returns the crates' folders, sorted: each folder of `crates/` with a manifest, and `xtask`.
pub(crate) fn crate_folders(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut folders = children(&root.join("crates"))?;
    folders.push(root.join("xtask"));
    folders.retain(|folder| folder.join("Cargo.toml").is_file());
    Ok(folders)
}

/// Returns all Rust files beneath a crate's folder, tests and examples included, sorted.
pub(crate) fn sources(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = files(folder)?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    Ok(files)
}

/// Returns all files beneath a crate's folder, sorted, except symbolic links and those in its folder `target`.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let built = folder.join("target");
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in children(&folder)? {
            if path.is_symlink() || path == built {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns README.md, ARCHITECTURE.md and docs/*.md, also those of the first two that do not exist.
pub(crate) fn documents(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut documents = vec![root.join("README.md"), root.join("ARCHITECTURE.md")];
    let folder = root.join("docs");
    if folder.is_dir() {
        documents.extend(children(&folder)?);
        documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    }
    Ok(documents)
}

/// Returns a path as breaches name it: without the root folder.
pub(crate) fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// Returns a text file's content, in which bytes that are not UTF-8 are replaced.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let bytes = fs::read(path).map_err(Failure::path("read", path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns a folder's entries, sorted.
pub(crate) fn children(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(Failure::path("list", folder))? {
        paths.push(entry.map_err(Failure::path("list", folder))?.path());
    }
    paths.sort();
    Ok(paths)
}
