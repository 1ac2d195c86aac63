//! Installs the program, a link to it named `cp`, manual pages and completions.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::workspace;

#[cfg(test)]
mod tests;

/// Folder of zsh's functions beneath /usr/local and other prefixes in its $fpath.
const ZSH: &str = "share/zsh/site-functions";

/// Builds a release and installs it beneath `prefix`.
pub(crate) fn run(root: &Path, prefix: &Path) -> Result<(), Failure> {
    lay_out(&build(root)?, prefix, ZSH)
}

/// Builds a release, without symbols and without paths of this machine. Returns the program's path.
pub(crate) fn build(root: &Path) -> Result<PathBuf, Failure> {
    let mut command = workspace::cargo(root);
    command.args(["build", "--release", "--locked", "--package", "ferry"]).envs(settings(root)?);
    let status = command.status().map_err(Failure::start("cargo build"))?;
    if !status.success() {
        return Err(Failure::Command { command: "cargo build --release --package ferry" });
    }
    Ok(folder(root).join(host()?).join("release/ferry"))
}

/// The build's folder. It is not the usual one, because with other flags each build would discard the other's.
fn folder(root: &Path) -> PathBuf {
    workspace::target(root).join("package")
}

fn host() -> Result<String, Failure> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    text(Command::new(rustc).args(["--print", "host-tuple"]), "rustc --print host-tuple")
}

/// Environment of the build, as Cargo takes it.
///
/// The program is linked statically if the C library can be: loading shared libraries takes longer than copying a few files.
pub(crate) fn settings(root: &Path) -> Result<[(&'static str, OsString); 5], Failure> {
    let mut flags = OsString::new();
    if has_static_library()? {
        flags.push("-Ctarget-feature=+crt-static");
    }
    for (path, shown) in [(root, "/usr/src/ferry"), (&cargo_home(), "/usr/share/cargo")] {
        if !flags.is_empty() {
            flags.push("\x1f");
        }
        flags.push("--remap-path-prefix=");
        flags.push(path);
        flags.push(format!("={shown}"));
    }
    Ok([
        ("CARGO_TARGET_DIR", folder(root).into()),
        // Named although it is the usual one: the flags are then not those of procedural macros, which are never static.
        ("CARGO_BUILD_TARGET", host()?.into()),
        ("CARGO_PROFILE_RELEASE_STRIP", "symbols".into()),
        ("CARGO_PROFILE_RELEASE_DEBUG", "false".into()),
        ("CARGO_ENCODED_RUSTFLAGS", flags),
    ])
}

/// Returns true if the linker finds a static C library, which some distributions package apart.
fn has_static_library() -> Result<bool, Failure> {
    let found = text(Command::new("cc").arg("-print-file-name=libc.a"), "cc -print-file-name")?;
    Ok(Path::new(&found).is_absolute())
}

/// Returns Cargo's own folder, with the sources of other crates.
pub(crate) fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cargo");
    env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

/// Installs everything beneath `prefix`; the file for zsh goes to the folder `zsh` there.
pub(crate) fn lay_out(binary: &Path, prefix: &Path, zsh: &str) -> Result<(), Failure> {
    let program = prefix.join("bin/ferry");
    make_folder(&prefix.join("bin"))?;
    replace(&program, |beside| {
        fs::copy(binary, beside).map_err(Failure::path("write", beside))?;
        set_mode(beside, 0o755)
    })?;
    let link = prefix.join("lib/ferry/cp");
    make_folder(&prefix.join("lib/ferry"))?;
    replace(&link, |beside| symlink("../../bin/ferry", beside).map_err(Failure::path("create", beside)))?;
    let pages = prefix.join("share/man/man1");
    make_folder(&pages)?;
    output(Command::new(&program).arg("man").arg(&pages), "ferry man")?;
    for page in workspace::children(&pages)? {
        if page.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ferry")) {
            set_mode(&page, 0o644)?;
        }
    }
    for (shell, folder, name) in [
        ("bash", "share/bash-completion/completions", "ferry"),
        ("zsh", zsh, "_ferry"),
        ("fish", "share/fish/vendor_completions.d", "ferry.fish"),
    ] {
        let script = output(Command::new(&program).args(["completions", shell]), "ferry completions")?;
        make_folder(&prefix.join(folder))?;
        write(&prefix.join(folder).join(name), &script)?;
    }
    Ok(())
}

/// Creates a folder, and those above it, that everyone may enter regardless of the umask. An existing folder keeps its
/// mode.
pub(crate) fn make_folder(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_folder(parent)?;
    }
    fs::create_dir(path).map_err(Failure::path("create", path))?;
    set_mode(path, 0o755)
}

/// Writes a file that everyone may read regardless of the umask.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(Failure::path("write", path))?;
    set_mode(path, 0o644)
}

pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<(), Failure> {
    let mode = PermissionsExt::from_mode(mode);
    fs::set_permissions(path, mode).map_err(Failure::path("change", path))
}

/// Replaces `path` in one step by a file or link that `make` creates beside it, so that a `cp` exists at any time.
fn replace(path: &Path, make: impl FnOnce(&Path) -> Result<(), Failure>) -> Result<(), Failure> {
    let beside = path.with_extension("new");
    // A run that was killed may have left it.
    remove(&beside)?;
    let made = make(&beside).and_then(|()| fs::rename(&beside, path).map_err(Failure::path("replace", path)));
    if made.is_err() {
        remove(&beside)?;
    }
    made
}

fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::path("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Returns a command's standard output. Standard error is not captured, so that the command explains its failure
/// itself.
pub(crate) fn output(command: &mut Command, name: &'static str) -> Result<Vec<u8>, Failure> {
    let output = command.stderr(std::process::Stdio::inherit()).output().map_err(Failure::start(name))?;
    if output.status.success() { Ok(output.stdout) } else { Err(Failure::Command { command: name }) }
}

/// Returns a command's standard output as a line.
pub(crate) fn text(command: &mut Command, name: &'static str) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&output(command, name)?).trim().to_owned())
}
