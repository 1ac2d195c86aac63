//! Programs that tests use, and Debian's packages that contain them.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// A package, and the sign that it is installed.
struct Tool {
    package: &'static str,
    sign: Sign,
}

enum Sign {
    /// On PATH.
    Command(&'static str),
    /// By its whole path.
    File(&'static str),
    PythonModule(&'static str),
    /// By dpkg, because its files have different paths.
    Package,
}

const fn tool(package: &'static str, command: &'static str) -> Tool {
    Tool { package, sign: Sign::Command(command) }
}

const TOOLS: &[Tool] = &[
    tool("xfsprogs", "mkfs.xfs"),
    tool("xfsprogs", "xfs_io"),
    tool("btrfs-progs", "mkfs.btrfs"),
    tool("e2fsprogs", "mkfs.ext4"),
    tool("e2fsprogs", "filefrag"),
    tool("mount", "mount"),
    tool("mount", "losetup"),
    tool("util-linux", "unshare"),
    tool("util-linux", "setpriv"),
    tool("bsdutils", "script"),
    tool("diffutils", "diff"),
    tool("acl", "setfacl"),
    tool("attr", "setfattr"),
    tool("b3sum", "b3sum"),
    tool("rsync", "rsync"),
    tool("strace", "strace"),
    tool("fio", "fio"),
    tool("perl-base", "perl"),
    tool("python3", "python3"),
    tool("groff-base", "groff"),
    tool("bash", "bash"),
    tool("zsh", "zsh"),
    tool("fish", "fish"),
    tool("git", "git"),
    // The Debian package, and the source of GNU cp, which keeps ACLs and extended attributes by these libraries.
    tool("dpkg-dev", "dpkg-shlibdeps"),
    tool("dpkg", "dpkg-deb"),
    tool("gzip", "gzip"),
    tool("binutils", "strip"),
    Tool { package: "libacl1-dev", sign: Sign::File("/usr/include/sys/acl.h") },
    Tool { package: "libattr1-dev", sign: Sign::File("/usr/include/attr/libattr.h") },
];

/// Packages that only the whole suite uses.
const TOOLS_FOR_ALL: &[Tool] = &[
    tool("chromium", "chromium"),
    tool("g++", "c++"),
    Tool { package: "python3-venv", sign: Sign::PythonModule("ensurepip") },
    // ferry-mpi.
    tool("openmpi-bin", "mpirun"),
    tool("libopenmpi-dev", "mpicc"),
    Tool { package: "libclang-dev", sign: Sign::Package },
    tool("slurmctld", "slurmctld"),
    tool("slurmd", "slurmd"),
    tool("slurm-client", "srun"),
    tool("munge", "munged"),
];

/// Returns PATH with the folders of mount and mkfs, which a user's or a service's may lack.
pub(crate) fn search_path() -> OsString {
    let mut path = env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}

/// Installs the missing packages by apt-get, as root. Otherwise names them: tests that need them print SKIP.
pub(crate) fn install(is_all: bool) {
    let missing = missing(is_all);
    if missing.is_empty() {
        return;
    }
    let packages = missing.join(" ");
    if !may_install() {
        println!("missing packages, without which tests say SKIP: {packages}");
        return;
    }
    println!("installing packages that tests use: {packages}");
    if let Err(failure) = apt_get(&missing) {
        println!("{failure}; tests that lack a program say SKIP");
    }
}

/// Installs everything that CI uses, and fails if it can't.
pub(crate) fn run() -> Result<(), Failure> {
    let missing = missing(true);
    if missing.is_empty() {
        println!("nothing missing");
        return Ok(());
    }
    println!("missing: {}", missing.join(" "));
    apt_get(&missing)
}

/// Returns the packages whose sign is missing, each once.
fn missing(is_all: bool) -> Vec<&'static str> {
    let for_all = if is_all { TOOLS_FOR_ALL } else { &[] };
    let mut packages: Vec<&str> =
        TOOLS.iter().chain(for_all).filter(|tool| !tool.is_there()).map(|tool| tool.package).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

impl Tool {
    fn is_there(&self) -> bool {
        match self.sign {
            Sign::Command(name) => is_command(name),
            Sign::File(path) => Path::new(path).exists(),
            Sign::Package => {
                let query = ["--show", "--showformat=${db:Status-Status}", self.package];
                let status = Command::new("dpkg-query").args(query).stderr(Stdio::null()).output();
                status.is_ok_and(|status| status.stdout == b"installed")
            }
            Sign::PythonModule(name) => {
                let import = format!("import {name}");
                let python = Command::new("python3").args(["-c", &import]).stderr(Stdio::null()).status();
                python.is_ok_and(|status| status.success())
            }
        }
    }
}

fn is_command(name: &str) -> bool {
    env::split_paths(&search_path()).any(|folder| folder.join(name).is_file())
}

fn may_install() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0") && is_command("apt-get")
}

fn apt_get(packages: &[&str]) -> Result<(), Failure> {
    const NAME: &str = "apt-get install";
    let run = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").arg("--quiet").args(arguments).stdin(Stdio::null());
        let status = command.status().map_err(Failure::start(NAME))?;
        if status.success() { Ok(()) } else { Err(Failure::Command { command: NAME }) }
    };
    run(&["update"])?;
    run(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}
