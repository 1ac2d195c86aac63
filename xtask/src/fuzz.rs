//! Runs the fuzz targets, guided by coverage (libFuzzer), from their seeds.
//!
//! No nightly toolchain is needed: the targets run safe code, so that they need no sanitizer, and the flags that record
//! branches and comparisons are stable. A build script compiles libFuzzer, which is C++.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::failure::Failure;
use crate::workspace;

const TARGETS: [&str; 4] = ["options", "entries", "records", "traces"];

/// Flags that count every branch and record every comparison's operands.
const FLAGS: &str = "-Dwarnings --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Targets that run at the same time; each keeps one processor busy.
const AT_ONCE: usize = 2;

/// Runs each target for half a minute. Inputs that fail stay in a folder beside the build, which the error names.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let folder = root.join("fuzz");
    // A folder of its own: with other flags, each build would discard the usual one.
    let built = workspace::target(root).join("fuzz");
    let programs = build(&folder, &built)?;
    let folders = |target: &str| (built.join("corpus").join(target), built.join("failures").join(target));
    for (corpus, failures) in TARGETS.map(folders) {
        for made in [&corpus, &failures] {
            fs::create_dir_all(made).map_err(Failure::path("create", made))?;
        }
    }
    for targets in TARGETS.chunks(AT_ONCE) {
        let start = |target: &&'static str| {
            let (corpus, failures) = folders(target);
            let program = programs.join(target);
            let mut command = Command::new(&program);
            command.arg(corpus).arg(folder.join("seeds").join(target));
            command.arg(format!("-artifact_prefix={}/", failures.display()));
            command.args(["-max_total_time=30", "-timeout=10", "-rss_limit_mb=2048"]);
            command.args(["-verbosity=0", "-print_funcs=0", "-print_final_stats=1"]);
            command.current_dir(&folder).stderr(Stdio::piped());
            (*target, failures, command.spawn().map_err(Failure::path("run", &program)))
        };
        let running: Vec<_> = targets.iter().map(start).collect();
        // All are waited for, whatever becomes of the others.
        let end = |(target, failures, child): (_, _, Result<Child, Failure>)| match child?.wait_with_output()
        {
            Ok(output) => {
                report(target, &output.stderr);
                output.status.success().then_some(()).ok_or(Failure::Fuzzed { target, failures })
            }
            Err(_lost) => Err(Failure::Fuzzed { target, failures }),
        };
        let ended: Vec<_> = running.into_iter().map(end).collect();
        ended.iter().filter_map(|ended| ended.as_ref().err()).for_each(|failure| println!("{failure}"));
        ended.into_iter().collect::<Result<(), _>>()?;
    }
    Ok(())
}

/// Prints what a target said, without the dictionary that libFuzzer recommends in hundreds of lines.
fn report(target: &str, said: &[u8]) {
    let said = String::from_utf8_lossy(said);
    let is_kept = |line: &&str| !(line.starts_with("######") || line.contains("# Uses: "));
    said.lines().filter(is_kept).for_each(|line| println!("{target}: {line}"));
}

/// Builds all targets below `built`; returns the folder that they are in.
fn build(folder: &Path, built: &Path) -> Result<PathBuf, Failure> {
    const COMMAND: &str = "cargo build of the fuzz targets";
    let host = host()?;
    let mut command = workspace::cargo(folder);
    // With `--target`, the flags do not apply to build scripts.
    command.env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", built);
    command.args(["build", "--release", "--locked", "--target", &host, "--bins"]);
    let status = command.status().map_err(Failure::start(COMMAND))?;
    if status.success() {
        Ok(built.join(host).join("release"))
    } else {
        Err(Failure::Command { command: COMMAND })
    }
}

/// Returns the platform of this machine.
fn host() -> Result<String, Failure> {
    const NAME: &str = "rustc -vV";
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().map_err(Failure::start(NAME))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or(Failure::Command { command: NAME })
}
