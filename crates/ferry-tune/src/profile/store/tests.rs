use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::super::tests::sample;
use super::{LARGEST, Refused, file_name, find, folders_of, reachable, replace, written_of};

fn told(folders: &[PathBuf], identity: &str) -> String {
    match find(folders, identity) {
        Err((_, why)) => why.to_string(),
        found => panic!("{found:?}"),
    }
}

#[test]
fn a_users_profile_goes_before_the_systems() {
    let folder = tempfile::tempdir().unwrap();
    let (own, system) = (folder.path().join("own/deep"), folder.path().join("system"));
    let folders = [own.clone(), system.clone()];
    let mut profile = sample();
    let identity = profile.place.identity.clone();
    let name = file_name(&identity);
    assert!(find(&folders, &identity).unwrap().is_none());
    replace(&system, &system.join(&name), &profile.to_toml().unwrap()).unwrap();
    assert_eq!(find(&folders, &identity).unwrap().unwrap().path, system.join(&name));
    profile.about.quick = false;
    replace(&own, &own.join(&name), &profile.to_toml().unwrap()).unwrap();
    assert_eq!(find(&folders, &identity).unwrap().unwrap().profile, profile);
    // A file that is not a profile is reported, not skipped.
    std::fs::write(own.join(&name), "x").unwrap();
    assert!(told(&folders, &identity).contains("truncated"));
}

#[test]
fn folders_are_those_of_the_xdg_specification() {
    let of = |is_root: bool, variables: &[(&str, &str)]| {
        let value =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        let found = folders_of(is_root, |name| value(name) as Option<OsString>);
        found.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(":")
    };
    let system = "/etc/ferry/profiles";
    assert_eq!(of(true, &[("HOME", "/root"), ("XDG_CONFIG_HOME", "/x")]), system);
    assert_eq!(of(false, &[("HOME", "/h")]), format!("/h/.config/ferry/profiles:{system}"));
    assert_eq!(
        of(false, &[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]),
        format!("/x/ferry/profiles:{system}")
    );
    assert_eq!(
        of(false, &[("HOME", "/h"), ("XDG_CONFIG_HOME", "x")]),
        format!("/h/.config/ferry/profiles:{system}")
    );
    assert_eq!(of(false, &[]), system);
    for is_root in [true, false] {
        assert_eq!(of(is_root, &[("FERRY_PROFILES", "here"), ("HOME", "/h")]), "here");
    }
}

#[test]
fn without_a_home_there_is_no_folder_to_write_to() {
    let home = |name: &str| (name == "HOME").then(|| OsString::from("/h"));
    assert_eq!(written_of(false, |_| None), None);
    assert_eq!(written_of(true, |_| None), Some("/etc/ferry/profiles".into()));
    assert_eq!(written_of(false, home), Some("/h/.config/ferry/profiles".into()));
}

#[test]
fn a_folder_that_cannot_be_made_is_told_beforehand() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    reachable(&folder.path().join("not/there")).unwrap();
    reachable(Path::new("relative")).unwrap();
    for path in [file.clone(), file.join("beneath")] {
        assert_eq!(reachable(&path).unwrap_err().kind(), std::io::ErrorKind::NotADirectory);
    }
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn what_stands_in_a_profiles_place_is_told_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let folders = [folder.path().to_owned()];
    let path = |identity: &str| folder.path().join(file_name(identity));
    std::fs::create_dir(path("folder")).unwrap();
    assert_eq!(told(&folders, "folder"), "it is not a regular file");
    rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), 0o600.into()).unwrap();
    assert_eq!(told(&folders, "fifo"), "it is not a regular file");
    let text = sample().to_toml().unwrap();
    std::fs::write(path("other"), &text).unwrap();
    assert_eq!(
        told(&folders, "other"),
        format!("it belongs to another filesystem: {}", sample().place.identity)
    );
    symlink(path("other"), path("link")).unwrap();
    assert_eq!(told(&folders, "link"), "Too many levels of symbolic links");
    std::fs::write(path("binary"), b"version = 1\n\xff\n").unwrap();
    assert_eq!(told(&folders, "binary"), "it is not UTF-8");
    let spaces = usize::try_from(LARGEST).unwrap() + 1 - text.len();
    std::fs::write(path("large"), text.clone() + &" ".repeat(spaces)).unwrap();
    assert_eq!(told(&folders, "large"), "it has more than 65536 bytes");
    std::fs::write(path("open"), &text).unwrap();
    std::fs::set_permissions(path("open"), std::fs::Permissions::from_mode(0o664)).unwrap();
    assert!(matches!(find(&folders, "open"), Err((_, Refused::NotTrusted))));
    let mut bad = sample();
    bad.about.processors = 0;
    std::fs::write(path("bad"), bad.to_toml().unwrap()).unwrap();
    assert_eq!(told(&folders, "bad"), "it is not plausible: the number of processors is 0");
    let beneath_a_file = [path("open")];
    assert!(matches!(find(&beneath_a_file, "x"), Ok(None)));
}

#[test]
fn a_link_in_a_profiles_place_is_replaced_and_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (at, elsewhere) = (folder.path().join("a.toml"), folder.path().join("elsewhere"));
    std::fs::write(&elsewhere, "mine").unwrap();
    symlink(&elsewhere, &at).unwrap();
    replace(folder.path(), &at, "text").unwrap();
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "mine");
    assert_eq!(std::fs::read_to_string(&at).unwrap(), "text");
    assert!(at.symlink_metadata().unwrap().is_file());
}

#[test]
fn a_profile_that_cannot_be_put_in_its_place_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("a.toml");
    std::fs::create_dir(&at).unwrap();
    // The leftover of a killed run with this number is no obstacle.
    let left = folder.path().join(format!(".ferry-{}.new", std::process::id()));
    std::fs::write(&left, "").unwrap();
    replace(folder.path(), &at, "text").unwrap_err();
    assert_eq!(names(folder.path()), ["a.toml"]);
}

fn names(folder: &Path) -> Vec<OsString> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn identities_are_names_of_files() {
    assert_eq!(file_name("0a-1B"), "0a-1B.toml");
    assert_eq!(file_name("nfs host:/a b"), "nfs%20host%3a%2fa%20b.toml");
    assert_eq!(file_name(".."), "%2e%2e.toml");
    assert!(file_name(&"ä".repeat(1000)).len() <= 255);
}
