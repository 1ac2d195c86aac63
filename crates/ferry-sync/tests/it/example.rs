//! The example `mirror` shows a plan, and performs exactly what it has shown.

use std::path::Path;
use std::process::{Command, Output};

use ferry_sync::plan::{Action, Verb};
use ferry_tree::capture::capture;
use ferry_tree::compare::{Options, snapshots};
use ferry_tree::{Node, Tree, make};

fn mirror(arguments: &[&Path], options: &[&str]) -> Output {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples/mirror");
    let output = Command::new(&program).args(options).args(arguments).output();
    output.unwrap_or_else(|error| {
        panic!("{} is built by `cargo test -p ferry-sync`: {error}", program.display())
    })
}

#[test]
fn the_example_shows_its_actions_before_it_performs_them() {
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    let new = Tree::new()
        .with("new", Node::file("new").mode(0o600))
        .with("changed", Node::file("longer than before"))
        .with("link", Node::symlink("new"));
    make::make(&new, &source).unwrap();
    let old = Tree::new().with("changed", Node::file("old")).with("gone", Node::file("gone"));
    make::make(&old, &target).unwrap();
    let before = capture(&target).unwrap();

    let shown = mirror(&[&source, &target], &[]);
    assert!(shown.status.success(), "{shown:?}");
    assert_eq!(snapshots(&before, &capture(&target).unwrap(), &Options::all()), [], "it is only shown");
    let lines = std::str::from_utf8(&shown.stdout).unwrap().lines();
    let actions: Vec<Action> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let verb = |name: &str| {
        let action = actions.iter().find(|action| action.path.0 == Path::new(name));
        action.map(|action| action.verb)
    };
    assert_eq!([verb("new"), verb("link")], [Some(Verb::Create); 2]);
    assert_eq!([verb("changed"), verb("gone")], [Some(Verb::Replace), Some(Verb::Delete)]);

    let performed = mirror(&[&source, &target], &["--yes"]);
    assert!(performed.status.success(), "{performed:?}");
    assert_eq!(performed.stdout, shown.stdout, "the plan is the same");
    let said = std::str::from_utf8(&performed.stderr).unwrap();
    assert!(said.starts_with("created 2, replaced 1, "), "{said}");
    let [source, target] = [source, target].map(|path| capture(&path).unwrap());
    assert_eq!(snapshots(&source, &target, &Options::all()), []);
}

#[test]
fn the_example_refuses_to_empty_a_folder() {
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    make::make(&Tree::new(), &source).unwrap();
    make::make(&Tree::new().with("kept", Node::file("kept")), &target).unwrap();
    let output = mirror(&[&source, &target], &["--yes"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(std::fs::read(target.join("kept")).unwrap(), b"kept");
}
