//! The package's file `copyright`, in Debian's format: its own licences and those of the crates in the program.
//!
//! A crate under Apache-2.0 is only named, because every Debian system has that text. The other licences demand that
//! their notice is passed on, so it is copied from the crate's sources.

use std::io;
use std::path::Path;

use crate::failure::Failure;
use crate::install;
use crate::workspace;

pub(super) fn text(root: &Path) -> Result<String, Failure> {
    let mut tree = workspace::cargo(root);
    // Procedural macros are not a part of the program.
    tree.args([
        "tree",
        "--locked",
        "--package",
        "ferry",
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "none",
    ]);
    tree.args(["--no-dedupe", "--format", "{p}|{l}"]);
    let listed = install::text(&mut tree, "cargo tree")?;
    // Crates of this workspace are listed with their folders.
    let others = listed.lines().filter(|line| !line.contains("(/"));
    let mut crates: Vec<(&str, &str)> = others.filter_map(|line| line.split_once('|')).collect();
    crates.sort_unstable();
    crates.dedup();
    let (mut named, mut notices) = (String::new(), String::new());
    for (package, licence) in crates {
        named += &format!(" {package} ({licence})\n");
        if !licence.contains("Apache-2.0") {
            notices += &format!(" .\n Of {package}:\n .\n{}", notice(&install::cargo_home(), package)?);
        }
    }
    let mit = indented(&workspace::read(&root.join("LICENSE-MIT"))?);
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: ferry\nComment:\n \
         The program contains these crates, each under its own licence:\n{named} .\n Notices of the crates that are \
         not under Apache-2.0:\n{notices}\nFiles: *\nCopyright: 2026 The ferry developers\nLicense: MIT or \
         Apache-2.0\n\nLicense: MIT\n{mit}\nLicense: Apache-2.0\n On Debian systems its text is in \
         /usr/share/common-licenses/Apache-2.0.\n"
    ))
}

/// Returns the licence in the sources of a crate (`name v1.2.3`). Cargo keeps sources by registry, name and version.
fn notice(cargo_home: &Path, package: &str) -> Result<String, Failure> {
    let registries = cargo_home.join("registry/src");
    let folder = package.replace(" v", "-");
    let mut found = String::new();
    for registry in workspace::children(&registries)? {
        let sources = registry.join(&folder);
        if !found.is_empty() || !sources.is_dir() {
            continue;
        }
        for path in workspace::children(&sources)? {
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("LICENSE")) {
                found += &indented(&workspace::read(&path)?);
            }
        }
    }
    if found.is_empty() {
        let missing = registries.join("*").join(folder).join("LICENSE*");
        return Err(Failure::path("find", &missing)(io::ErrorKind::NotFound.into()));
    }
    Ok(found)
}

/// Returns continuation lines of a field: a space before each line, and a dot for an empty one.
fn indented(text: &str) -> String {
    let lines = text.trim().lines().map(|line| if line.trim().is_empty() { "." } else { line.trim_end() });
    lines.map(|line| format!(" {line}\n")).collect()
}
