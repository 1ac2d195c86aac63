//! Checks and tests of `ferry-mpi`, which is a workspace of its own because it needs libmpi and libclang.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::workspace;

/// Builds `ferry`, then checks and tests `ferry-mpi` against it.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    // CI has everything that the tests need.
    let is_ci = env::var_os("CI").is_some_and(|ci| ci == "true");
    let has_mpi =
        Command::new("mpirun").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !has_mpi.is_ok_and(|status| status.success()) {
        println!("SKIP: mpirun is missing: install libopenmpi-dev, openmpi-bin and libclang-dev");
        return if is_ci { Err(Failure::Skips { count: 1 }) } else { Ok(()) };
    }
    const BUILD: &str = "cargo build --package ferry";
    let mut build = workspace::cargo(root);
    succeed(BUILD, build.args(["build", "--locked", "--package", "ferry"]))?;
    let folder = root.join("crates/ferry-mpi");
    let target = workspace::target(root);
    let cargo = |arguments: &[&str]| {
        let mut command = workspace::cargo(&folder);
        command.args(arguments).env("CARGO_TARGET_DIR", target.join("mpi"));
        command.env("FERRY_PROGRAM", target.join("debug/ferry"));
        command
    };
    succeed("cargo fmt of ferry-mpi", &mut cargo(&["fmt", "--check"]))?;
    let clippy = ["clippy", "--locked", "--all-targets", "--", "-D", "warnings"];
    succeed("cargo clippy of ferry-mpi", &mut cargo(&clippy))?;
    const TEST: &str = "cargo test of ferry-mpi";
    let mut test = cargo(&["test", "--locked", "--", "--nocapture"]);
    let output = test.stderr(Stdio::inherit()).output().map_err(Failure::start(TEST))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    print!("{printed}");
    let skips = printed.lines().filter(|line| line.starts_with("SKIP")).count();
    match output.status.success() {
        false => Err(Failure::Command { command: TEST }),
        true if skips > 0 && is_ci => Err(Failure::Skips { count: skips }),
        true => Ok(()),
    }
}

fn succeed(name: &'static str, command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(Failure::start(name))?;
    if status.success() { Ok(()) } else { Err(Failure::Command { command: name }) }
}
