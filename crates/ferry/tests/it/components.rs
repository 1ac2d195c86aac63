//! strace shows that after start-up each call resolves a single name.
//!
//! Every name is resolved in an open directory. strace can't see the ring's requests, so this runs on the
//! POSIX backend; `ferry_io::Name` guarantees the same for the ring. Copies larger than these also read the
//! amount of free memory once (proc(5), cgroups(7)).

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, is_root, skip, text};

/// Paths opened once: the root for absolute paths, the count of open descriptors, and the umask.
const ONCE: [&str; 3] = ["/", "/proc/self/fd", "/proc/thread-self/status"];

/// Paths that glibc's allocator reads at any time: the number of processors, and the overcommit mode.
const LIBRARYS: [&str; 2] = ["/sys/devices/system/cpu/online", "/proc/sys/vm/overcommit_memory"];

/// Paths of the quota of processors, read before several files are copied (cgroups(7)).
const QUOTAS: [&str; 2] = ["/proc/self/cgroup", "/sys/fs/cgroup/"];

/// Extracts the paths from a line of strace.
fn names(line: &str) -> Vec<String> {
    let Some((call, rest)) = line.split_once('(') else { return Vec::new() };
    let call = call.rsplit(' ').next().unwrap_or(call);
    let mut strings = Vec::new();
    let mut pieces = rest.split('"');
    // strace prints all bytes but ASCII letters as numbers.
    while let (Some(_), Some(string)) = (pieces.next(), pieces.next()) {
        strings.push(string.to_owned());
    }
    match call {
        // A link's content and an attribute's name are not paths.
        "symlinkat" | "symlink" => strings.drain(..1).for_each(drop),
        "readlinkat" | "readlink" => strings.truncate(1),
        _ if call.contains("xattr") => strings.truncate(1),
        _ => {}
    }
    strings
}

/// Runs a copy in `folder` and returns calls that resolve more than one name; `None` without strace.
fn seen(folder: &Path, user: Option<u32>, line: &str) -> Option<Vec<String>> {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-xx", "-s", "4096", "-o", "log", "-e", "trace=%file,/xattr"]);
    // Makes glibc read the number of processors even on an idle machine.
    command.env("GLIBC_TUNABLES", "glibc.malloc.arena_test=1");
    // Profiles are found by a path.
    command
        .args([FERRY, "cp", "--backend=posix", "--profile=none"])
        .args(line.split(' '))
        .current_dir(folder);
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(_) => return skip("strace is not here"),
    };
    assert!(output.status.code().is_some_and(|code| code < 2), "{line}: {}", text(&output.stderr));
    let log = fs::read_to_string(folder.join("log")).unwrap();
    let plain = |line: &str| -> Vec<String> { names(line).iter().map(|name| plain(name)).collect() };
    let calls: Vec<_> = log.lines().map(|line| (line, plain(line))).collect();
    let is_working_folder = |(_, names): &(&str, Vec<String>)| names.iter().any(|name| name == ".");
    let begin = calls.iter().position(is_working_folder).expect("the working folder is opened first");
    let after = &calls[begin..];
    let count = after.iter().map(|(_, names)| names.len()).sum::<usize>();
    assert!(count > 5, "{line}: strace saw little: {log}");
    // Relative paths start at this descriptor.
    let (_, working) = calls[begin].0.rsplit_once("= ").expect("it can be opened");
    let first = |line: &str| {
        (line.contains(&format!("openat({working}, ")) && !line.contains(" = -1 "))
            .then(|| plain(line).concat())
    };
    let mut firsts: Vec<String> = after.iter().filter_map(|(line, _)| first(line)).collect();
    firsts.retain(|name| name != ".");
    let is_once = |name: &String| firsts.iter().filter(|found| *found == name).count() == 1;
    assert!(firsts.iter().all(is_once), "{line}: walked twice: {firsts:?}");
    // A path through /proc/self/fd resolves to the open file; attributes of links are set that way.
    let is_path = |name: &String| {
        name.contains('/')
            && !name.starts_with("/proc/self/fd/")
            && !ONCE.iter().chain(&LIBRARYS).any(|known| known == name)
            && !QUOTAS.iter().any(|known| name.starts_with(known))
    };
    let paths = after.iter().filter(|(_, names)| names.iter().any(is_path));
    let once =
        |name: &&str| after.iter().filter(|(_, names)| names.iter().any(|found| found == name)).count();
    assert!(ONCE.iter().all(|name| once(name) <= 1), "{line}: {log}");
    Some(paths.map(|(call, names)| format!("cp {line}: {names:?} in {call}")).collect())
}

/// Decodes `\x61\x62`.
fn plain(name: &str) -> String {
    let bytes = name.split("\\x").skip(1).map(|byte| u8::from_str_radix(&byte[..2], 16).unwrap());
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
}

/// A tree of all file types, existing targets, and paths through links.
const SCENE: &str = "set -e; mkdir -p src/deep/er other into full/src/deep way; cd src
    echo text > f; ln f twin; ln -s f link; ln -s nowhere dangling; ln -s deep to_deep; mkfifo pipe
    echo more > deep/g; echo most > deep/er/h; truncate -s 3M large; mkdir -m 500 closed; chmod 4755 f
    cd ..; echo old > full/src/f; ln -s f full/src/link; ln -s f full/src/deep/g; ln -s src way/link; ln -s ../src way/in
    ln -s into to_into; touch -d 2001-01-01 full/src/f
    setfattr -n user.color -v blue src/f; setfattr -h -n trusted.color -v blue src/link || true";

/// Command lines; `@` is the scene's absolute path.
const LINES: [&str; 26] = [
    "-a src new",
    "-r src into",
    "-rL src/deep src/to_deep into",
    "-a src full",
    "-rf src full",
    "-au src full",
    "-a --remove-destination src full",
    "-an src full",
    "-rl src new",
    "-rs @src new",
    "-a @src @new",
    "-a @src/deep/../deep @into/../into",
    "-rT src full/src",
    "-a src/deep/er src/f src/pipe src/link into",
    "-r src/ full/",
    "-a --parents src/deep/er src/deep/g into",
    "-r --parents way/in/deep/g ./src/../src/f into/.",
    "-H way/in/f to_into",
    "way/in/f to_into/",
    "src/f new",
    "-p src/f full/src/f",
    "-a src/closed/. new",
    "src/missing/f src/f/x src/large into",
    "-r src src into",
    "--reflink=never --sparse=always src/large new",
    "--fsync -a src into",
];

#[test]
fn names_are_single_after_start_up() {
    if Command::new("setfattr").arg("--version").output().is_err() {
        skip::<()>("setfattr is not installed");
        return;
    }
    let memory = Filesystem::memory();
    let place = memory.path();
    let mut found = Vec::new();
    for line in LINES {
        for folder in fs::read_dir(place).unwrap().flatten() {
            crate::races::clear(&folder.path());
        }
        let made = Command::new("sh").args(["-c", SCENE]).current_dir(place).output().unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        let line = line.replace('@', &format!("{}/", place.display()));
        match seen(place, None, &line) {
            Some(seen) => found.extend(seen),
            None => return,
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// A directory with search permission only is opened with O_PATH.
#[test]
fn names_are_single_where_folders_may_only_be_searched() {
    if !is_root() {
        skip::<()>("becoming another user needs root");
        return;
    }
    let memory = Filesystem::memory();
    let place = memory.path();
    let script =
        "chmod 777 .; mkdir -p src/a new/src/a; echo x > src/a/f; chmod 711 src; chown -R 65534 new src/a
        chmod 300 new/src/a; touch log; chmod 666 log";
    let made = Command::new("sh").args(["-c", script]).current_dir(place).output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    for line in ["-a src/a new/src", "--parents -p src/a/f new", "-rT src/a new/src/a"] {
        let Some(found) = seen(place, Some(65_534), line) else { return };
        assert!(found.is_empty(), "{found:#?}");
    }
}
