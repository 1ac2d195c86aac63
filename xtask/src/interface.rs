//! Compares the interface of `ferry-io` with that of its last release, by cargo-semver-checks.
//!
//! The version of `ferry-io` says which changes are allowed. Before 1.0, a new minor version allows all: cargo-semver-checks
//! then skips its lints and succeeds. With a release, its commit becomes [`BASELINE`], and the lints apply again. The program
//! is built into the target folder, where it stays.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::workspace;

/// Version of cargo-semver-checks. Each version reads the output of only a few versions of rustdoc.
const VERSION: &str = "0.51.0";
/// The commit that has the interface of the last release, 0.1.0.
const BASELINE: &str = "030a434eb07b7b2e95d9e61737eaf8ce42a2e8a2";

/// Builds cargo-semver-checks unless this version exists, and prints its path.
pub(crate) fn install(root: &Path) -> Result<(), Failure> {
    let folder = folder(root);
    // A folder of its own, so that other builds do not wait for this one.
    let work = folder.join("work");
    let mut command = workspace::cargo(root);
    command.args(["install", "cargo-semver-checks", "--version", VERSION, "--locked", "--quiet"]);
    // Without jobs side by side, because other builds run at the same time.
    command.args(["--jobs", "1", "--root"]).arg(&folder).arg("--target-dir").arg(&work);
    succeed("cargo install cargo-semver-checks", &mut command)?;
    match fs::remove_dir_all(&work) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Failure::path("remove", &work)(error));
        }
        Ok(()) | Err(_) => {}
    }
    println!("{}", program(root).display());
    Ok(())
}

/// Compares the interfaces. If the program or the release's commit is missing, says so. CI does without: building the program takes
/// ten minutes of a processor, and an interface is compared before a release.
pub(crate) fn check(root: &Path, package: &str) -> Result<(), Failure> {
    let program = program(root);
    if !program.is_file() {
        println!("not run: `cargo xtask semver-checks` builds the program");
        return Ok(());
    }
    let commit = format!("{BASELINE}^{{commit}}");
    let mut find = Command::new("git");
    find.current_dir(root).args(["rev-parse", "--verify", "--quiet", &commit]);
    if !find.stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        println!("not run: git has no {BASELINE}");
        return Ok(());
    }
    let mut command = Command::new(program);
    command.current_dir(root).args(["semver-checks", "--package", package, "--features", "sim"]);
    succeed("cargo semver-checks", command.args(["--baseline-rev", BASELINE]))
}

fn folder(root: &Path) -> PathBuf {
    workspace::target(root).join("tools")
}

fn program(root: &Path) -> PathBuf {
    folder(root).join("bin/cargo-semver-checks")
}

fn succeed(name: &'static str, command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(Failure::start(name))?;
    if status.success() { Ok(()) } else { Err(Failure::Command { command: name }) }
}
