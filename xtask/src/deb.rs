//! The Debian package: what is installed, and what dpkg and Debian's policy want beside it.
//!
//! The same sources and toolchain make the same bytes: builds hold no path of this machine, and what would be a time is
//! SOURCE_DATE_EPOCH, which is the last commit's if it is not set. The archive is dpkg-deb's, and which libraries it needs
//! is dpkg-shlibdeps' answer: what they know of symbols and versions is not written here a second time.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::install::{self, lay_out, make_folder, output, set_mode, write};
use crate::scratch::Scratch;
use crate::workspace;

mod copyright;
#[cfg(test)]
mod tests;

/// The program's version, and the package's first.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-1");

/// A program that is larger was built in another way than it should: it has 6.5 MiB, with debugging information four times that.
const LARGEST_MIB: u64 = 8;

/// Where Debian's zsh looks.
const ZSH: &str = "share/zsh/vendor-completions";

const DESCRIPTION: &str = "copier of directory trees, and a drop-in cp
 ferry copies trees of files as fast as the kernel allows: what the kernel has
 in memory is copied at once by plain system calls, what must be waited for is
 asked for in batches, by io_uring where it may be used.
 .
 It takes the options of GNU cp, compares trees, and measures copiers. The link
 /usr/lib/ferry/cp is for those who put its folder first on their PATH.";

/// What dpkg runs before it removes the package: a `/bin/cp` that is ferry would be a link to nothing after that.
const PRERM: &str = r#"#!/bin/sh
set -e
[ "$1" = remove ] || exit 0
case $(readlink -f /bin/cp) in
/usr/bin/ferry | /usr/lib/ferry/*)
    cat >&2 <<'EOF'
ferry: /bin/cp is ferry; before it is removed, give Debian's its name again:
  mv -T /bin/cp.gnu /bin/cp
  dpkg-divert --local --no-rename --remove /bin/cp
EOF
    exit 1
    ;;
esac
"#;

/// Builds the package and says where it is.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let binary = install::build(root)?;
    check(root, &binary)?;
    let package = pack(root, &binary, &workspace::target(root).join("package"), epoch(root)?)?;
    println!("{}", package.display());
    Ok(())
}

/// Whether the program is as small as one that is released, and tells nothing of this machine.
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

/// Makes the package of a program that was built, in `folder`; answers its path.
fn pack(root: &Path, binary: &Path, folder: &Path, epoch: u64) -> Result<PathBuf, Failure> {
    let scratch = Scratch::open()?;
    let tree = scratch.path().join("ferry");
    lay_out(binary, &tree.join("usr"), ZSH)?;
    document(root, &tree, epoch)?;
    let architecture = text(Command::new("dpkg").arg("--print-architecture"), "dpkg --print-architecture")?;
    let (kib, sums) = (installed_kib(&tree)?, sums(&tree)?);
    // dpkg-shlibdeps looks for it, to know what is the package's.
    make_folder(&tree.join("DEBIAN"))?;
    let needs = dependencies(scratch.path(), &tree.join("usr/bin/ferry"))?;
    let control = format!(
        "Package: ferry\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: {}\nInstalled-Size: {kib}\n\
         Depends: {needs}\nSection: utils\nPriority: optional\nDescription: {DESCRIPTION}\n",
        maintainer(),
    );
    write(&tree.join("DEBIAN/control"), control.as_bytes())?;
    write(&tree.join("DEBIAN/md5sums"), &sums)?;
    let prerm = tree.join("DEBIAN/prerm");
    write(&prerm, PRERM.as_bytes())?;
    set_mode(&prerm, 0o755)?;
    let package = folder.join(format!("ferry_{VERSION}_{architecture}.deb"));
    let mut command = Command::new("dpkg-deb");
    // By one thread: the compressed bytes depend on how many there are.
    command.args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"]).arg(&tree).arg(&package);
    output(command.env("SOURCE_DATE_EPOCH", epoch.to_string()), "dpkg-deb --build")?;
    Ok(package)
}

/// Compresses the manual pages and adds what belongs into /usr/share/doc.
fn document(root: &Path, tree: &Path, epoch: u64) -> Result<(), Failure> {
    let folder = tree.join("usr/share/doc/ferry");
    make_folder(&folder)?;
    let date = text(Command::new("date").args(["-u", "-R", "-d", &format!("@{epoch}")]), "date")?;
    let entry = format!(
        "ferry ({VERSION}) unstable; urgency=medium\n\n  * What is new stands in changelog.gz.\n\n -- {}  {date}\n",
        maintainer()
    );
    write(&folder.join("changelog.Debian"), entry.as_bytes())?;
    write(&folder.join("changelog"), workspace::read(&root.join("CHANGELOG.md"))?.as_bytes())?;
    write(&folder.join("copyright"), copyright::text(root)?.as_bytes())?;
    let mut compressed = workspace::children(&tree.join("usr/share/man/man1"))?;
    compressed.extend(["changelog.Debian", "changelog"].map(|name| folder.join(name)));
    // Without the names' times.
    output(Command::new("gzip").args(["-9", "--no-name", "--"]).args(compressed), "gzip")?;
    Ok(())
}

/// Whom to write to, as Debian's tools ask the environment.
fn maintainer() -> String {
    let name = env::var("DEBFULLNAME").unwrap_or_else(|_| "The ferry developers".to_owned());
    let address = env::var("DEBEMAIL").unwrap_or_else(|_| "developers@ferry.invalid".to_owned());
    format!("{name} <{address}>")
}

/// The libraries that the program needs, with the versions whose symbols it uses.
fn dependencies(scratch: &Path, program: &Path) -> Result<String, Failure> {
    // It reads the packages' names here.
    make_folder(&scratch.join("debian"))?;
    write(&scratch.join("debian/control"), b"Source: ferry\n\nPackage: ferry\nArchitecture: any\n")?;
    let mut command = Command::new("dpkg-shlibdeps");
    let needs = text(command.arg("-O").arg(program).current_dir(scratch), "dpkg-shlibdeps")?;
    needs
        .strip_prefix("shlibs:Depends=")
        .map(str::to_owned)
        .ok_or(Failure::Command { command: "dpkg-shlibdeps" })
}

/// Each file in whole KiB, each folder as one: what dpkg-gencontrol says.
fn installed_kib(tree: &Path) -> Result<u64, Failure> {
    let mut kib = 0;
    for path in entries(tree)? {
        let found = path.symlink_metadata().map_err(Failure::path("read", &path))?;
        kib += if found.is_dir() { 1 } else { found.size().div_ceil(1024) };
    }
    Ok(kib)
}

/// The files' sums, by which dpkg can tell whether they are as they were.
fn sums(tree: &Path) -> Result<Vec<u8>, Failure> {
    let files = entries(tree)?.into_iter().filter(|path| path.is_file() && !path.is_symlink());
    let names = files.filter_map(|path| path.strip_prefix(tree).ok().map(Path::to_owned));
    output(Command::new("md5sum").args(names).current_dir(tree), "md5sum")
}

/// Everything beneath a folder, sorted.
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

/// The time that everything bears: SOURCE_DATE_EPOCH, or the last commit's.
fn epoch(root: &Path) -> Result<u64, Failure> {
    let given = env::var("SOURCE_DATE_EPOCH").ok();
    let seconds = given.or_else(|| committed(root)).and_then(|text| text.trim().parse().ok());
    seconds.ok_or(Failure::NoTime)
}

/// When the last commit was made; git itself says why it does not tell.
fn committed(root: &Path) -> Option<String> {
    let mut log = Command::new("git");
    // Root builds in checkouts of others, too, which git refuses by itself.
    log.args(["-c", "safe.directory=*", "log", "-1", "--format=%ct"]).current_dir(root);
    text(&mut log, "git log").ok()
}

/// A command's standard output as a line.
fn text(command: &mut Command, name: &'static str) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&output(command, name)?).trim().to_owned())
}
