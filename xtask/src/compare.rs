//! Checks and tests the package `compare`, which is no member of the workspace because it depends on other runtimes.

use std::path::Path;

use crate::failure::Failure;
use crate::workspace;

/// Cargo's commands, each with its name for errors. The default features leave out the runtimes that take long to build.
const COMMANDS: [(&str, &[&str]); 3] = [
    ("cargo fmt of compare", &["fmt", "--check"]),
    ("cargo clippy of compare", &["clippy", "--quiet", "--locked", "--all-targets", "--", "-D", "warnings"]),
    ("cargo test of compare", &["test", "--locked"]),
];

/// Runs the commands. They use the workspace's target folder, so that what is built there is not built again.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    for (name, arguments) in COMMANDS {
        let mut command = workspace::cargo(&root.join("compare"));
        command.env("CARGO_TARGET_DIR", workspace::target(root)).args(arguments);
        let status = command.status().map_err(Failure::start(name))?;
        if !status.success() {
            return Err(Failure::Command { command: name });
        }
    }
    Ok(())
}
