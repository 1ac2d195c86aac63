//! Builds the Python wheel, installs it in a fresh virtual environment, runs its tests there, and removes it again.
//!
//! The wheel is of the profile `dev`, which the other tests have built most of. With `--release`, it is the one for users,
//! and the table of speeds is whole.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::workspace;

/// Builds the wheel.
const MATURIN: &str = "maturin==1.16.0";
/// Packages that the tests use, with the versions that they were written for.
const USED_BY_TESTS: [&str; 3] = ["mypy==2.4.1", "tqdm==4.70.1", "rich==15.0.0"];

/// Profile of the wheel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Dev,
    Release,
}

/// Runs all steps.
pub(crate) fn run(root: &Path, profile: Profile) -> Result<(), Failure> {
    let folder = workspace::target(root).join("python");
    let environment = Environment::make(folder.join("venv"))?;
    let wheel = build(root, &environment, &folder.join("wheels"), profile)?;
    println!("{}", wheel.display());
    environment.pip(&[&["install"], &USED_BY_TESTS[..]].concat())?;
    let before = environment.files()?;
    environment.pip(&["install", "--no-deps", &wheel.display().to_string()])?;
    let tests = root.join("crates/ferry-python");
    environment.python(&tests.join("tests/run.py"), &[])?;
    let quick: &[&str] = if profile == Profile::Release { &[] } else { &["--quick"] };
    environment.python(&tests.join("bench/speed.py"), quick)?;
    environment.pip(&["uninstall", "--yes", "ferry"])?;
    let left: Vec<_> = environment.files()?.difference(&before).cloned().collect();
    for path in &left {
        println!("left by the wheel: {}", path.display());
    }
    if left.is_empty() { Ok(()) } else { Err(Failure::Parts { count: left.len() }) }
}

/// A virtual environment.
struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Makes it anew, with the packages that build the wheel.
    fn make(folder: PathBuf) -> Result<Self, Failure> {
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(Failure::path("remove", &folder))?;
        }
        let python = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        succeed(Command::new(python).args(["-m", "venv"]).arg(&folder), "python3 -m venv")?;
        let environment = Self { folder };
        environment.pip(&["install", MATURIN])?;
        Ok(environment)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    fn pip(&self, arguments: &[&str]) -> Result<(), Failure> {
        let mut command = Command::new(self.program("pip"));
        command.args(["--quiet", "--disable-pip-version-check"]).args(arguments);
        succeed(&mut command, "pip")
    }

    /// Runs a program. It writes no compiled modules, which pip would not remove.
    fn python(&self, program: &Path, arguments: &[&str]) -> Result<(), Failure> {
        let mut command = Command::new(self.program("python"));
        command.arg(program).args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
        succeed(&mut command, "python")
    }

    /// Returns all files and folders in it.
    fn files(&self) -> Result<BTreeSet<PathBuf>, Failure> {
        let mut found = BTreeSet::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for path in workspace::children(&folder)? {
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path.clone());
                }
                found.insert(path);
            }
        }
        Ok(found)
    }
}

/// Builds the wheel and returns its path. maturin chooses the lowest manylinux tag that the program's symbols allow.
fn build(
    root: &Path,
    environment: &Environment,
    wheels: &Path,
    profile: Profile,
) -> Result<PathBuf, Failure> {
    if wheels.exists() {
        fs::remove_dir_all(wheels).map_err(Failure::path("remove", wheels))?;
    }
    let profile = if profile == Profile::Release { "release" } else { "dev" };
    let mut command = Command::new(environment.program("maturin"));
    command.args(["build", "--quiet", "--locked", "--profile", profile, "--out"]).arg(wheels);
    command.arg("--manifest-path").arg(root.join("crates/ferry-python/Cargo.toml"));
    // The interpreter of the environment, not another one that is active.
    command.arg("--interpreter").arg(environment.program("python"));
    succeed(command.current_dir(root), "maturin build")?;
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "whl");
    let found = workspace::children(wheels)?.into_iter().find(is_wheel);
    found.ok_or(Failure::Command { command: "maturin build" })
}

fn succeed(command: &mut Command, name: &'static str) -> Result<(), Failure> {
    let status = command.status().map_err(Failure::start(name))?;
    if status.success() { Ok(()) } else { Err(Failure::Command { command: name }) }
}
