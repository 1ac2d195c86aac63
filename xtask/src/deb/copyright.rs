//! The package's file `copyright`: its own licences and those of the crates in the program, in Debian's format.
//!
//! A crate that may be taken under Apache-2.0 is named; its text is on every Debian system. The others want their notice
//! in what is given on, so it is copied from the crate's sources.

use std::io;
use std::path::Path;

use crate::failure::Failure;
use crate::install;
use crate::workspace;

/// The whole file.
pub(super) fn text(root: &Path) -> Result<String, Failure> {
    let mut tree = workspace::cargo(root);
    // Procedural macros run when the program is built, and are not in it.
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
    let listed = super::text(&mut tree, "cargo tree")?;
    // Those of this workspace stand with their folders.
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
         In the program are these crates, each under its own licence:\n{named} .\n Notices of those that may not be \
         had under Apache-2.0:\n{notices}\nFiles: *\nCopyright: 2026 The ferry developers\nLicense: MIT or \
         Apache-2.0\n\nLicense: MIT\n{mit}\nLicense: Apache-2.0\n On Debian systems its text is in \
         /usr/share/common-licenses/Apache-2.0.\n"
    ))
}

/// The licence in the sources of a crate (`name v1.2.3`), which Cargo keeps by registry, name and version.
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

/// Lines that go on with a field: a space before each, and a dot where there would be none.
fn indented(text: &str) -> String {
    let lines = text.trim().lines().map(|line| if line.trim().is_empty() { "." } else { line.trim_end() });
    lines.map(|line| format!(" {line}\n")).collect()
}
