//! Links in the target that a copy follows, as GNU cp does: only those that another user could not have
//! planted.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, lchown, symlink};
use std::path::Path;

use crate::random::filesystem::Filesystem;
use crate::scene::{ferry, is_root, skip, text};

const USER: u32 = 1234;

/// Makes `source/f`, and a link `target/f` of `owner` to `says`; the user owns `theirs`, root owns `x`.
fn arena(owner: u32, says: &str) -> Filesystem {
    let memory = Filesystem::memory();
    let at = |name: &str| memory.path().join(name);
    for folder in ["source", "target/in", "way"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    for (name, text) in [("source/f", "copied"), ("theirs", "old"), ("x", "old"), ("target/in/x", "old")] {
        fs::write(at(name), text).unwrap();
    }
    chown(at("theirs"), Some(USER), None).unwrap();
    let link = |name: &str, says: &str, owner| {
        symlink(says, at(name)).unwrap();
        lchown(at(name), Some(owner), None).unwrap();
    };
    link("target/f", says, owner);
    link("roots", "x", 0);
    link("users", "x", USER);
    link("way/source", "../target/in", owner);
    memory
}

/// Content of `names` after copying `source/f` to `target`, and the messages.
fn copied(place: &Path, names: &[&str]) -> (Vec<String>, String) {
    let output = ferry(place, &["cp", "-r", "-T", "source", "target"]);
    let held = names.iter().map(|name| fs::read_to_string(place.join(name)).unwrap()).collect();
    (held, text(&output.stderr).to_owned())
}

#[test]
fn links_count_by_whose_they_are() {
    if !is_root() {
        skip::<()>("links of another user need root");
        return;
    }
    const REFUSED: &str =
        "ferry cp: cannot create regular file 'target/f': Too many levels of symbolic links\n";
    let table = [
        (0, "../x", "x", true),
        (0, "../theirs", "theirs", true),
        (0, "in/x", "target/in/x", true),
        (0, "in/../.././x", "x", true),
        (0, "../roots", "x", true),
        // The link's owner also owns its destination, and could have written to it.
        (USER, "../theirs", "theirs", true),
        (USER, "../x", "x", false),
        (USER, "in/x", "target/in/x", false),
        // Every link of the chain counts.
        (0, "../users", "x", false),
        (USER, "../roots", "x", false),
    ];
    for (owner, says, led, counts) in table {
        let memory = arena(owner, says);
        let (held, said) = copied(memory.path(), &[led]);
        let expected = if counts { ("copied", "") } else { ("old", REFUSED) };
        assert_eq!((held[0].as_str(), said.as_str()), expected, "{owner}'s link to {says}");
        // The link and its destination are unchanged.
        assert!(memory.path().join("target/f").is_symlink());
    }
}

#[test]
fn an_absolute_link_leads_from_the_root() {
    let memory = Filesystem::memory();
    let place = memory.path();
    for folder in ["source", "target"] {
        fs::create_dir(place.join(folder)).unwrap();
    }
    fs::write(place.join("source/f"), "copied").unwrap();
    fs::write(place.join("x"), "old").unwrap();
    symlink(place.join("x"), place.join("target/f")).unwrap();
    assert_eq!(copied(place, &["x"]), (vec!["copied".to_owned()], String::new()));
}

#[test]
fn a_link_on_the_way_to_an_operand_counts_by_whose_it_is() {
    if !is_root() {
        skip::<()>("links of another user need root");
        return;
    }
    for (owner, counts) in [(0, true), (USER, false)] {
        let memory = arena(owner, "nowhere");
        let output = ferry(memory.path(), &["cp", "--parents", "source/f", "way"]);
        assert_eq!(output.status.success(), counts, "{}", text(&output.stderr));
        assert_eq!(memory.path().join("target/in/f").exists(), counts);
        let owner = memory.path().join("way/source").symlink_metadata().unwrap().uid();
        assert_eq!(counts, owner == 0);
    }
}
