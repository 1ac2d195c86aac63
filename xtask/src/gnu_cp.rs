//! Builds the GNU cp that tests compare ferry with, from the newest source package in Debian's archive.
//!
//! Tests only run it: neither the program nor its source becomes a part of ferry. apt fetches the package from the
//! machine's own package sources, with separate lists and settings beneath the target folder, and checks Debian's
//! signature. The program stays until its folder is removed, so that one checkout is compared with one version.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crate::failure::Failure;
use crate::install::output;
use crate::workspace;

#[cfg(test)]
mod tests;

/// The oldest version whose messages ferry has.
const LEAST: (u32, u32) = (9, 10);
/// The suite with Debian's newest packages.
const SUITE: &str = "sid";
/// Keys of which one signs the archive's packages.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Libraries without which the program would keep no ACLs and no extended attributes.
const LIBRARIES: [&str; 2] = ["libacl.so.1", "libattr.so.1"];
/// Adds a goal for the generated sources, which must exist before the first file is compiled.
const MAKEFILE: &str = "include Makefile\nbefore-cp: $(BUILT_SOURCES)\n";

/// Builds the program unless it exists, and prints its path.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let folder = workspace::target(root).join("gnu-cp");
    let link = folder.join("cp");
    if check(&link).is_err() {
        let work = folder.join("work");
        // A run that was killed may have left it.
        remove(&work)?;
        fs::create_dir_all(&work).map_err(Failure::path("create", &work))?;
        let package = fetch(&work)?;
        let built = build(&work, &package)?;
        keep(&built, &folder)?;
        remove(&work)?;
    }
    println!("{}: {}", link.display(), check(&link)?);
    Ok(())
}

/// Downloads the newest source package and returns the path of its description.
fn fetch(work: &Path) -> Result<PathBuf, Failure> {
    let mut known = archives()?;
    if known.is_empty() {
        // Images of containers often come without lists.
        output(Command::new("apt-get").arg("update"), "apt-get update")?;
        known = archives()?;
    }
    for uri in known {
        let apt = Apt::new(work, &uri)?;
        let updated = apt.command("apt-get").arg("update").stdout(Stdio::null()).status();
        if !updated.map_err(Failure::start("apt-get update"))?.success() {
            // The archive lacks the suite, as one of updates does; another may have it.
            continue;
        }
        let mut source = apt.command("apt-get");
        source.args(["source", "--download-only", "--only-source", "coreutils"]).current_dir(work);
        output(&mut source, "apt-get source coreutils")?;
        let is_description = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "dsc");
        let found = workspace::children(work)?.into_iter().find(is_description);
        return found.ok_or(Failure::Command { command: "apt-get source coreutils" });
    }
    Err(Failure::NoArchive { suite: SUITE })
}

/// Returns the addresses of the archives from which this machine installs packages.
fn archives() -> Result<Vec<String>, Failure> {
    let mut command = Command::new("apt-get");
    command.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Component: main"]);
    Ok(distinct(&String::from_utf8_lossy(&output(&mut command, "apt-get indextargets")?)))
}

/// Returns the lines of a text, each once, in their order.
fn distinct(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !lines.iter().any(|known| known == line) {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// apt with package sources, lists and a cache of its own: the machine's stay unchanged.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    fn new(work: &Path, uri: &str) -> Result<Self, Failure> {
        let folder = work.join("apt");
        remove(&folder)?;
        for made in ["parts", "state/lists/partial", "cache/archives/partial"] {
            let made = folder.join(made);
            fs::create_dir_all(&made).map_err(Failure::path("create", &made))?;
        }
        let list = folder.join("sources.list");
        let line = format!("deb-src [signed-by={KEYRING}] {uri} {SUITE} main\n");
        fs::write(&list, line).map_err(Failure::path("write", &list))?;
        Ok(Self { folder })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(["--quiet", "--quiet", "-o", "APT::Update::Error-Mode=any"]);
        // apt's own user may not write into the folder.
        command.args(["-o", "APT::Sandbox::User=root"]);
        for (option, name) in [
            ("Dir::Etc::sourcelist", "sources.list"),
            ("Dir::Etc::sourceparts", "parts"),
            ("Dir::State", "state"),
            ("Dir::Cache", "cache"),
        ] {
            command.arg("-o").arg(format!("{option}={}", self.folder.join(name).display()));
        }
        command
    }
}

/// Unpacks the package, builds its cp and returns the program's path.
fn build(work: &Path, package: &Path) -> Result<PathBuf, Failure> {
    let source = work.join("source");
    let mut unpack = Command::new("dpkg-source");
    // apt compared the files with the archive's signed list.
    unpack.args(["--no-check", "--extract"]).arg(package).arg(&source);
    output(&mut unpack, "dpkg-source --extract")?;
    let mut configure = Command::new("./configure");
    configure.args(["--quiet", "--disable-nls", "--disable-dependency-tracking"]);
    output(configure.current_dir(&source).env("FORCE_UNSAFE_CONFIGURE", "1"), "./configure")?;
    let makefile = source.join("ferry.mk");
    fs::write(&makefile, MAKEFILE).map_err(Failure::path("write", &makefile))?;
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    for goal in ["before-cp", "src/cp"] {
        let mut make = Command::new("make");
        make.args(["--silent", "--file", "ferry.mk", &format!("--jobs={jobs}"), goal]).current_dir(&source);
        output(&mut make, "make src/cp")?;
    }
    Ok(source.join("src/cp"))
}

/// Copies the program to a folder named after its version, and links to it beside that folder.
fn keep(built: &Path, folder: &Path) -> Result<(), Failure> {
    let version = check(built)?;
    let kept = folder.join(&version);
    fs::create_dir_all(&kept).map_err(Failure::path("create", &kept))?;
    let program = kept.join("cp");
    fs::copy(built, &program).map_err(Failure::path("write", &program))?;
    let link = folder.join("cp");
    match fs::remove_file(&link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Failure::path("remove", &link)(error));
        }
        Ok(()) | Err(_) => {}
    }
    symlink(Path::new(&version).join("cp"), &link).map_err(Failure::path("create", &link))
}

/// Returns the program's version if ferry follows it and it has all libraries.
fn check(program: &Path) -> Result<String, Failure> {
    let said = output(Command::new(program).arg("--version"), "cp --version")?;
    let said = String::from_utf8_lossy(&said).into_owned();
    let version = said.lines().next().and_then(|line| line.strip_prefix("cp (GNU coreutils) "));
    let version = version.filter(|version| is_followed(version));
    let bytes = fs::read(program).map_err(Failure::path("read", program))?;
    for library in LIBRARIES {
        if !bytes.windows(library.len()).any(|window| window == library.as_bytes()) {
            return Err(Failure::Without { program: program.to_owned(), library });
        }
    }
    version.map(str::to_owned).ok_or(Failure::OldCp { least: LEAST })
}

/// Returns true for [`LEAST`] and newer versions.
fn is_followed(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    let (major, minor) = (parts.next().flatten(), parts.next().flatten());
    major.zip(minor).is_some_and(|version| version >= LEAST)
}

fn remove(folder: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Failure::path("remove", folder)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
