//! Builds the Debian package: the files that are installed, and those that dpkg and Debian's policy require.
//!
//! Equal sources and toolchains make equal bytes: builds contain no path of this machine, and every time is
//! SOURCE_DATE_EPOCH or else the last commit's. dpkg-deb makes the archive and dpkg-shlibdeps finds the libraries,
//! because they know the rules for symbols and versions.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::install::{self, lay_out, make_folder, output, set_mode, text, write};
use crate::scratch::Scratch;
use crate::workspace;

mod copyright;
#[cfg(test)]
mod tests;

/// The program's version and the package's revision.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-1");

/// Upper bound of a release's size. It has 12.2 MiB: of its code, 1.5 are the lab's, 1.1 the copier's, 1.1 the command
/// line's, 0.8 the runtime's, 0.7 patterns' (gitignore) and 0.6 the sync's. With debugging information it is four times as
/// large.
const LARGEST_MIB: u64 = 14;

/// Folder of zsh's functions in Debian's packages.
const ZSH: &str = "share/zsh/vendor-completions";

const DESCRIPTION: &str = "copier of directory trees, and a drop-in cp
 ferry copies trees of files as fast as the kernel allows: cached files are
 copied at once by plain system calls, other files are requested in batches,
 by io_uring where it is permitted.
 .
 It takes the options of GNU cp, compares trees, and measures copiers. With
 /usr/lib/ferry first on PATH, cp is ferry.";

/// Script that dpkg runs before it removes the package. It refuses while /bin/cp is ferry, because the removal would
/// leave a dangling link.
const PRERM: &str = r#"#!/bin/sh
set -e
[ "$1" = remove ] || exit 0
case $(readlink -f /bin/cp) in
/usr/bin/ferry | /usr/lib/ferry/*)
    cat >&2 <<'EOF'
ferry: /bin/cp is ferry. Before you remove the package, restore Debian's cp:
  mv -T /bin/cp.gnu /bin/cp
  dpkg-divert --local --no-rename --remove /bin/cp
EOF
    exit 1
    ;;
esac
"#;

/// Builds the package and prints its path.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let binary = install::build(root)?;
    check(root, &binary)?;
    let package = pack(root, &binary, &workspace::target(root).join("package"), epoch(root)?)?;
    println!("{}", package.display());
    Ok(())
}

/// Fails if the program is larger than a release or contains a path of this machine.
fn check(root: &Path, binary: &Path) -> Result<(), Failure> {
    let bytes = fs::read(binary).map_err(Failure::path("read", binary))?;
    if bytes.len().div_ceil(1 << 20) as u64 > LARGEST_MIB {
        return Err(Failure::Large { path: binary.to_owned(), mib: LARGEST_MIB });
    }
    for path in [root.to_owned(), install::cargo_home()] {
        let text = path.as_os_str().as_encoded_bytes();
        if bytes.windows(text.len()).any(|window| window == text) {
            return Err(Failure::Tells { binary: binary.to_owned(), path });
        }
    }
    Ok(())
}

/// Makes a package of a built program in `folder` and returns the package's path.
fn pack(root: &Path, binary: &Path, folder: &Path, epoch: u64) -> Result<PathBuf, Failure> {
    let scratch = Scratch::open()?;
    let tree = scratch.path().join("ferry");
    lay_out(binary, &tree.join("usr"), ZSH)?;
    document(root, &tree, epoch)?;
    let architecture = text(Command::new("dpkg").arg("--print-architecture"), "dpkg --print-architecture")?;
    let (kib, sums) = (installed_kib(&tree)?, sums(&tree)?);
    // dpkg-shlibdeps recognizes the package's tree by this folder.
    make_folder(&tree.join("DEBIAN"))?;
    let needs = dependencies(scratch.path(), &tree.join("usr/bin/ferry"))?;
    let control = format!(
        "Package: ferry\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: {}\nInstalled-Size: {kib}\n\
         {needs}Section: utils\nPriority: optional\nDescription: {DESCRIPTION}\n",
        maintainer(),
    );
    write(&tree.join("DEBIAN/control"), control.as_bytes())?;
    write(&tree.join("DEBIAN/md5sums"), &sums)?;
    let prerm = tree.join("DEBIAN/prerm");
    write(&prerm, PRERM.as_bytes())?;
    set_mode(&prerm, 0o755)?;
    let package = folder.join(format!("ferry_{VERSION}_{architecture}.deb"));
    let mut command = Command::new("dpkg-deb");
    // One thread, because the compressed bytes depend on the number of threads.
    command.args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"]).arg(&tree).arg(&package);
    output(command.env("SOURCE_DATE_EPOCH", epoch.to_string()), "dpkg-deb --build")?;
    Ok(package)
}

/// Compresses the manual pages and adds the files of /usr/share/doc.
fn document(root: &Path, tree: &Path, epoch: u64) -> Result<(), Failure> {
    let folder = tree.join("usr/share/doc/ferry");
    make_folder(&folder)?;
    let date = text(Command::new("date").args(["-u", "-R", "-d", &format!("@{epoch}")]), "date")?;
    let entry = format!(
        "ferry ({VERSION}) unstable; urgency=medium\n\n  * See changelog.gz for the changes.\n\n -- {}  {date}\n",
        maintainer()
    );
    write(&folder.join("changelog.Debian"), entry.as_bytes())?;
    write(&folder.join("changelog"), workspace::read(&root.join("CHANGELOG.md"))?.as_bytes())?;
    write(&folder.join("copyright"), copyright::text(root)?.as_bytes())?;
    let mut compressed = workspace::children(&tree.join("usr/share/man/man1"))?;
    compressed.extend(["changelog.Debian", "changelog"].map(|name| folder.join(name)));
    // Without names, gzip stores no times either.
    output(Command::new("gzip").args(["-9", "--no-name", "--"]).args(compressed), "gzip")?;
    Ok(())
}

/// Returns the package's maintainer, from the variables that Debian's tools use.
fn maintainer() -> String {
    let name = env::var("DEBFULLNAME").unwrap_or_else(|_| "The ferry developers".to_owned());
    let address = env::var("DEBEMAIL").unwrap_or_else(|_| "developers@ferry.invalid".to_owned());
    format!("{name} <{address}>")
}

/// Returns the field for the packages of the program's libraries, with the oldest versions that have the symbols it
/// uses; nothing for a static program.
fn dependencies(scratch: &Path, program: &Path) -> Result<String, Failure> {
    // dpkg-shlibdeps reads the package's name from this file.
    make_folder(&scratch.join("debian"))?;
    write(&scratch.join("debian/control"), b"Source: ferry\n\nPackage: ferry\nArchitecture: any\n")?;
    let mut command = Command::new("dpkg-shlibdeps");
    let needs = text(command.arg("-O").arg(program).current_dir(scratch), "dpkg-shlibdeps")?;
    if needs.is_empty() {
        return Ok(String::new());
    }
    let packages = needs.strip_prefix("shlibs:Depends=");
    packages
        .map(|packages| format!("Depends: {packages}\n"))
        .ok_or(Failure::Command { command: "dpkg-shlibdeps" })
}

/// Returns the size of the installed files as dpkg-gencontrol counts it: each file in whole KiB, each folder as one.
fn installed_kib(tree: &Path) -> Result<u64, Failure> {
    let mut kib = 0;
    for path in entries(tree)? {
        let found = path.symlink_metadata().map_err(Failure::path("read", &path))?;
        kib += if found.is_dir() { 1 } else { found.size().div_ceil(1024) };
    }
    Ok(kib)
}

/// Returns the files' checksums, by which dpkg finds changed files.
fn sums(tree: &Path) -> Result<Vec<u8>, Failure> {
    let files = entries(tree)?.into_iter().filter(|path| path.is_file() && !path.is_symlink());
    let names = files.filter_map(|path| path.strip_prefix(tree).ok().map(Path::to_owned));
    output(Command::new("md5sum").args(names).current_dir(tree), "md5sum")
}

/// Returns everything beneath a folder, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in workspace::children(&folder)? {
            if path.is_dir() && !path.is_symlink() {
                folders.push(path.clone());
            }
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the time of all files in the package: SOURCE_DATE_EPOCH, or else the last commit's.
fn epoch(root: &Path) -> Result<u64, Failure> {
    let given = env::var("SOURCE_DATE_EPOCH").ok();
    let seconds = given.or_else(|| committed(root)).and_then(|text| text.trim().parse().ok());
    seconds.ok_or(Failure::NoTime)
}

/// Returns the time of the last commit. If it cannot be read, git prints the reason.
fn committed(root: &Path) -> Option<String> {
    let mut log = Command::new("git");
    // Root may build in the checkout of another user, which git refuses by default.
    log.args(["-c", "safe.directory=*", "log", "-1", "--format=%ct"]).current_dir(root);
    text(&mut log, "git log").ok()
}
