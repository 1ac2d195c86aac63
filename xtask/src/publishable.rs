//! Checks that `ferry-io` can be published: every combination of its features, its examples and documentation, the package
//! itself, and its interface against that of the last release.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::failure::Failure;
use crate::{examples, interface, workspace};

const PACKAGE: &str = "ferry-io";
/// Features that users choose. `unconfined` is for a test only.
const FEATURES: [&str; 3] = ["uring", "trace", "sim"];

/// Runs all checks, even if one fails, and prints how long each takes.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let start = Instant::now();
    let mut parts = vec![timed("check-examples", || examples::check(root))];
    for features in combinations() {
        let name = if features.is_empty() { "no features".to_owned() } else { features.join(" + ") };
        parts.push(timed(&name, || check_features(root, &features)));
    }
    parts.push(timed("the bare build's test", || {
        cargo(root, "cargo test", &["test", "--no-default-features", "--test", "features", "--quiet"])
    }));
    parts
        .push(timed("examples", || cargo(root, "cargo test --doc", &["test", "--features", "sim", "--doc"])));
    parts.push(timed("documentation", || document(root)));
    parts.push(timed("package", || {
        cargo(root, "cargo publish --dry-run", &["publish", "--dry-run", "--allow-dirty"])
    }));
    parts.push(timed("interface", || interface::check(root, PACKAGE)));
    println!("publishable: {} s", start.elapsed().as_secs());
    match parts.iter().filter(|part| part.is_err()).count() {
        0 => Ok(()),
        count => Err(Failure::Parts { count }),
    }
}

fn timed(name: &str, part: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    let start = Instant::now();
    let outcome = part();
    let verdict = outcome.as_ref().map_or_else(ToString::to_string, |()| "ok".to_owned());
    println!("publishable: {name}: {verdict} ({:.1} s)", start.elapsed().as_secs_f64());
    outcome
}

/// Returns every choice of features, the empty one first.
fn combinations() -> impl Iterator<Item = Vec<&'static str>> {
    (0..1_usize << FEATURES.len()).map(|choice| {
        let is_chosen = |(at, _): &(usize, &&str)| choice >> at & 1 == 1;
        FEATURES.iter().enumerate().filter(is_chosen).map(|(_, feature)| *feature).collect()
    })
}

/// Runs clippy on the library, its tests and its examples.
fn check_features(root: &Path, features: &[&str]) -> Result<(), Failure> {
    let features = features.join(",");
    let mut arguments = vec!["clippy", "--no-default-features", "--all-targets", "--quiet"];
    if !features.is_empty() {
        arguments.extend(["--features", &features]);
    }
    let mut command = command(root, &arguments);
    status("cargo clippy", command.args(["--", "-D", "warnings"]))
}

fn document(root: &Path) -> Result<(), Failure> {
    let mut command = command(root, &["doc", "--features", "sim", "--no-deps", "--quiet"]);
    status("cargo doc", command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn cargo(root: &Path, name: &'static str, arguments: &[&str]) -> Result<(), Failure> {
    status(name, &mut command(root, arguments))
}

/// Returns a command of Cargo for the package.
fn command(root: &Path, arguments: &[&str]) -> Command {
    let mut command = workspace::cargo(root);
    command.args(arguments).args(["--package", PACKAGE]);
    command
}

fn status(name: &'static str, command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(Failure::start(name))?;
    if status.success() { Ok(()) } else { Err(Failure::Command { command: name }) }
}

#[cfg(test)]
mod tests {
    use super::{FEATURES, combinations};

    #[test]
    fn each_combination_of_features_comes_once() {
        let mut all: Vec<_> = combinations().collect();
        assert_eq!(all.first().map(Vec::len), Some(0));
        assert_eq!(all.last().map(Vec::as_slice), Some(&FEATURES[..]));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 8);
    }
}
