//! Test binaries: built by Cargo, listed and started here, so that several run at once.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::{tools, workspace};

const BUILD: &str = "cargo test --workspace --no-run";

#[derive(Clone)]
pub(super) struct Binary {
    /// Crate and target: `ferry-io lib`, `ferry-io it`.
    pub(super) name: String,
    pub(super) program: PathBuf,
    /// The crate's folder, in which Cargo starts tests.
    pub(super) folder: PathBuf,
}

/// A binary that ended.
pub(super) struct Run {
    pub(super) name: String,
    pub(super) output: String,
    pub(super) is_success: bool,
    pub(super) duration: Duration,
}

/// Builds all tests. Errors of the compiler are printed as usual.
pub(super) fn build(root: &Path) -> Result<Vec<Binary>, Failure> {
    build_with(root, &workspace::TESTS)
}

/// Builds the tests that arguments of Cargo choose.
pub(super) fn build_with(root: &Path, arguments: &[&str]) -> Result<Vec<Binary>, Failure> {
    let mut command = workspace::cargo(root);
    command.args(arguments).args(["--no-run", "--message-format=json-render-diagnostics"]);
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(Failure::start(BUILD))?;
    let mut binaries = Vec::new();
    if let Some(messages) = child.stdout.take() {
        for line in BufReader::new(messages).lines() {
            binaries.extend(binary(&line.map_err(Failure::start(BUILD))?));
        }
    }
    let status = child.wait().map_err(Failure::start(BUILD))?;
    if status.success() { Ok(binaries) } else { Err(Failure::Command { command: BUILD }) }
}

/// Returns the test binary that a message of Cargo's is about, if any.
fn binary(message: &str) -> Option<Binary> {
    // This is the profile's `test`; the target's says only that tests can be built.
    if !message.contains(r#""test":true},"features""#) {
        return None;
    }
    let program = field(message, "executable")?;
    let folder = Path::new(&field(message, "manifest_path")?).parent()?.to_owned();
    let source = PathBuf::from(field(message, "src_path")?);
    let in_folder = source.strip_prefix(&folder).ok()?;
    let target = match in_folder.to_str()? {
        "src/lib.rs" => "lib",
        "src/main.rs" => "main",
        "tests/it/main.rs" => "it",
        _ => in_folder.file_stem()?.to_str()?,
    };
    let name = format!("{} {target}", folder.file_name()?.to_str()?);
    Some(Binary { name, program: program.into(), folder })
}

/// Returns the text of the last field of this name. Paths with quotes or backslashes are not expected.
fn field(message: &str, name: &str) -> Option<String> {
    let (_, rest) = message.rsplit_once(&format!("\"{name}\":\""))?;
    rest.split_once('"').map(|(text, _)| text.to_owned())
}

impl Binary {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command.env("PATH", tools::search_path()).stdin(Stdio::null());
        command
    }

    pub(super) fn tests(&self) -> Result<Vec<String>, Failure> {
        let output =
            self.command().args(["--list", "--format=terse"]).output().map_err(Failure::start("--list"))?;
        if !output.status.success() {
            return Err(Failure::Command { command: "--list of a test binary" });
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }

    pub(super) fn run(&self, tests: &[String], variables: &[(&str, &str)]) -> Result<Run, Failure> {
        let start = Instant::now();
        let run = || -> io::Result<(Vec<u8>, bool)> {
            let (mut reader, writer) = io::pipe()?;
            let mut command = self.command();
            command.args(["--show-output", "--exact"]).envs(variables.iter().copied());
            command.args(tests);
            let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
            // It holds the pipe's other end open, so that the output would never end.
            drop(command);
            let mut output = Vec::new();
            reader.read_to_end(&mut output)?;
            Ok((output, child.wait()?.success()))
        };
        let (output, is_success) = run().map_err(Failure::path("run", &self.program))?;
        let output = String::from_utf8_lossy(&output).into_owned();
        Ok(Run { name: self.name.clone(), output, is_success, duration: start.elapsed() })
    }
}

/// Builds and runs the examples in documentation comments.
pub(super) fn run_examples(root: &Path) -> Result<(), Failure> {
    const COMMAND: &str = "cargo test --workspace --doc";
    let mut command = workspace::cargo(root);
    command.args(workspace::TESTS).args(["--doc", "--quiet"]);
    let status = command.status().map_err(Failure::start(COMMAND))?;
    if status.success() { Ok(()) } else { Err(Failure::Command { command: COMMAND }) }
}

#[cfg(test)]
mod tests {
    use super::binary;

    #[test]
    fn test_binaries_are_found_in_cargos_messages() {
        let message = |source: &str, is_test: bool, program: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/checkout/crates/ferry-io/Cargo.toml","target":{{"kind":["lib"],"name":"it","src_path":"/checkout/crates/ferry-io/{source}","edition":"2024","doc":true,"test":true}},"profile":{{"opt_level":"0","test":{is_test}}},"features":[],"filenames":["/checkout/target/debug/deps/it"],"executable":{program},"fresh":true}}"#
            )
        };
        let name = |message: &str| binary(message).map(|binary| binary.name);
        let program = r#""/checkout/target/debug/deps/it""#;
        assert_eq!(name(&message("src/lib.rs", true, program)).as_deref(), Some("ferry-io lib"));
        assert_eq!(name(&message("tests/it/main.rs", true, program)).as_deref(), Some("ferry-io it"));
        assert_eq!(
            name(&message("tests/switched_off.rs", true, program)).as_deref(),
            Some("ferry-io switched_off")
        );
        assert_eq!(name(&message("src/main.rs", false, program)), None);
        assert_eq!(name(&message("src/lib.rs", true, "null")), None);
    }
}
