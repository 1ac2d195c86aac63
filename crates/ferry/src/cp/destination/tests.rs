use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use ferry_copy::{Dereference, Make, Options};
use tempfile::TempDir;

use super::{Operands, Plan, plan, split, without_trailing_slashes};
use crate::cp::wording::Wording;

/// Files `f`, `g`; directories `d` (with `d/sub`), `e`; links `to_d`, `to_f`, `dangling`.
fn scene() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::write(at("f"), "f").unwrap();
    fs::write(at("g"), "g").unwrap();
    fs::create_dir_all(at("d/sub")).unwrap();
    fs::create_dir(at("e")).unwrap();
    symlink("d", at("to_d")).unwrap();
    symlink("f", at("to_f")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    root
}

fn recursive() -> Options {
    Options { recursive: true, dereference: Dereference::Never, ..Options::default() }
}

/// Defaults of `cp SOURCE DEST`.
fn plain() -> Options {
    Options { copy_contents: true, ..Options::default() }
}

/// Parses operands. A word with `@` is a name in the scene; `-p` is `--parents`, `-s` is
/// `--strip-trailing-slashes`.
fn operands(root: &Path, line: &str) -> Operands {
    let mut operands = Operands::default();
    let name = |word: &str| PathBuf::from(word.replace('@', &format!("{}/", root.display())));
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "-t" => operands.target_directory = words.next().map(name),
            "-T" => operands.no_target_directory = true,
            "-p" => operands.parents = true,
            "-s" => operands.strip_trailing_slashes = true,
            word => operands.paths.push(name(word)),
        }
    }
    operands
}

/// Result of `line`: items as `source > base : relative`, or the error. Names omit the root.
fn outcome(options: &Options, line: &str) -> String {
    let root = scene();
    let text = match plan(operands(root.path(), line), &mut options.clone()) {
        Err(usage) => usage.message,
        Ok(Plan { items, refused, base_is_implied, .. }) => {
            let wording = Wording { make: options.make, base_is_implied };
            let items = items.iter().map(|item| {
                format!("{} > {} : {}", item.source.display(), item.base.display(), item.relative.display())
            });
            let refused = refused.iter().map(|refused| wording.failure(refused));
            refused.chain(items).collect::<Vec<_>>().join("; ")
        }
    };
    let root = root.path().display().to_string();
    text.replace(&format!("{root}/"), "@").replace(&root, "@")
}

#[track_caller]
fn check(options: &Options, table: &[(&str, &str)]) {
    for (line, expected) in table {
        assert_eq!(&outcome(options, line), expected, "{line}");
    }
}

#[test]
fn one_source_gets_the_name_or_goes_into_the_folder() {
    check(
        &plain(),
        &[
            ("@f @new", "@f > @ : new"),
            ("@f @g", "@f > @ : g"),
            ("@f @d", "@f > @d : f"),
            ("@f @d//", "@f > @d : f"),
            ("@f @to_d", "@f > @to_d : f"),
            ("@f @dangling", "@f > @ : dangling"),
            ("@f @d/.", "@f > @d/. : f"),
            ("@f/ @d", "@f/ > @d : f"),
            ("-s @f// @d", "@f > @d : f"),
            ("@f @e/../new", "@f > @e/.. : new"),
        ],
    );
    check(
        &recursive(),
        &[
            ("@d @new", "@d > @ : new"),
            ("@d @new/", "@d > @ : new"),
            ("@d @e", "@d > @e : d"),
            ("@d/ @e/", "@d/ > @e : d"),
            ("@d/. @e", "@d/. > @e : ."),
            ("@d/. @new", "@d/. > @ : new"),
            ("@d/sub/.. @e", "@d/sub/.. > @e : "),
            ("/ @e", "/ > @e : "),
            ("@d @to_f", "@d > @ : to_f"),
        ],
    );
}

#[test]
fn several_sources_need_a_folder() {
    check(
        &plain(),
        &[
            ("@f @g @d", "@f > @d : f; @g > @d : g"),
            ("-t @d @f @g", "@f > @d : f; @g > @d : g"),
            ("-t @to_d @f", "@f > @to_d : f"),
            ("@f @g @new", "target '@new': No such file or directory"),
            ("@f @g @new/", "target '@new/': No such file or directory"),
            ("@f @d @g", "target '@g': Not a directory"),
            ("@f @g @g/x", "target '@g/x': Not a directory"),
            ("-t @new @f", "target directory '@new': No such file or directory"),
            ("-t @g @f", "target directory '@g': Not a directory"),
        ],
    );
}

#[test]
fn operands_that_make_no_sense_are_refused() {
    check(
        &plain(),
        &[
            ("", "missing file operand"),
            ("-t @d", "missing file operand"),
            ("@f", "missing destination file operand after '@f'"),
            ("-T @f", "missing destination file operand after '@f'"),
            ("-T @f @g @d", "extra operand '@d'"),
            ("-t @d -T @f", "cannot combine --target-directory (-t) and --no-target-directory (-T)"),
            ("-p @f @new", "with --parents, the destination must be a directory"),
            ("-p @f @g", "with --parents, the destination must be a directory"),
            ("-p -T @f @d", "with --parents, the destination must be a directory"),
        ],
    );
}

#[test]
fn the_target_itself_is_meant_with_capital_t() {
    check(
        &recursive(),
        &[
            ("-T @d @e", "@d > @e : "),
            ("-T @d @e/", "@d > @e/ : "),
            ("-T @d @to_d", "@d > @ : to_d"),
            ("-T @d @to_d/", "@d > @to_d/ : "),
            ("-T @d @new", "@d > @ : new"),
            ("-T @f @e", "@f > @ : e"),
            ("-T @f @g", "@f > @ : g"),
        ],
    );
}

#[test]
fn parents_are_taken_along() {
    check(
        &recursive(),
        &[
            ("-p a/b/c @e", "a/b/c > @e : a/b/c"),
            ("-p ./a//b/ @e", "./a//b/ > @e : ./a//b"),
            ("-p /etc/passwd @e", "/etc/passwd > @e : etc/passwd"),
            ("-p ../a/b @e", "../a/b > @e/.. : a/b"),
            ("-p a/../b @e", "a/../b > @e : a/../b"),
            ("-p a/../../b @e", "a/../../b > @e/.. : b"),
            ("-p . @e", ". > @e : ."),
            ("-p -t @e a b/c", "a > @e : a; b/c > @e : b/c"),
        ],
    );
}

#[test]
fn what_cannot_be_made_is_told_by_what_it_would_have_been() {
    check(
        &plain(),
        &[
            ("@f @no/x", "cannot create regular file '@no/x': No such file or directory"),
            ("@f @g/x", "cannot stat '@g/x': Not a directory"),
            ("@f @g/", "cannot stat '@g/': Not a directory"),
            ("@f @new/", "cannot create regular file '@new/': Not a directory"),
            ("@f @dangling/", "cannot create regular file '@dangling/': Not a directory"),
            ("@missing @no/x", "cannot stat '@missing': No such file or directory"),
            ("@missing @g/x", "cannot stat '@missing': No such file or directory"),
            ("@d @no/x", "-r not specified; omitting directory '@d'"),
            ("@missing @new", "@missing > @ : new"),
        ],
    );
    check(
        &recursive(),
        &[
            ("@d @no/x", "cannot create directory '@no/x': No such file or directory"),
            ("@d @e/new/.", "cannot create directory '@e/new/.': No such file or directory"),
            ("@d @dangling/", "cannot create directory '@dangling/': File exists"),
            ("@to_f @no/x", "cannot create symbolic link '@no/x': No such file or directory"),
            ("@to_f @new/", "cannot create symbolic link '@new/': No such file or directory"),
        ],
    );
    let linking = Options { make: Make::HardLink, ..plain() };
    check(&linking, &[("@f @no/x", "cannot create hard link '@no/x' to '@f': No such file or directory")]);
}

#[test]
fn an_empty_name_is_not_the_working_folder() {
    let root = scene();
    let paths = vec![PathBuf::new(), root.path().to_owned()];
    let Plan { items, refused, .. } = plan(Operands { paths, ..Operands::default() }, &mut plain()).unwrap();
    let wording = Wording { make: Make::Copy, base_is_implied: false };
    assert!(items.is_empty());
    assert_eq!(wording.failure(&refused[0]), "cannot stat '': No such file or directory");
    let paths = vec!["Cargo.toml".into(), PathBuf::new()];
    let Plan { refused, .. } = plan(Operands { paths, ..Operands::default() }, &mut plain()).unwrap();
    assert_eq!(wording.failure(&refused[0]), "cannot create regular file '': No such file or directory");
}

#[test]
fn an_implied_base_is_not_shown() {
    let paths = vec!["Cargo.toml".into(), "new".into()];
    let plan = plan(Operands { paths, ..Operands::default() }, &mut plain()).unwrap();
    assert!(plan.base_is_implied);
    assert_eq!(
        (plan.items[0].base.as_path(), plan.items[0].relative.as_path()),
        (Path::new("."), Path::new("new"))
    );
    let wording = Wording { make: Make::Copy, base_is_implied: true };
    assert_eq!(wording.target(Path::new("./new/x")), Path::new("new/x"));
}

#[test]
fn paths_split_at_their_last_slash() {
    let table = [
        ("a", None, "a"),
        ("a/", None, "a"),
        ("a/b", Some("a"), "b"),
        ("a//b//", Some("a"), "b"),
        ("/a", Some("/"), "a"),
        ("/", Some("/"), ""),
        ("", None, ""),
        ("a/.", Some("a"), "."),
    ];
    for (path, folder, name) in table {
        assert_eq!(split(Path::new(path)), (folder.map(Path::new), OsStr::new(name)), "{path}");
    }
    assert_eq!(without_trailing_slashes(Path::new("//")), Path::new("/"));
}
