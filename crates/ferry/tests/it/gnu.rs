//! Successful copies: same trees, output and exit codes as GNU cp.

use std::os::unix::fs::MetadataExt as _;

use ferry_tree::compare::{Holes, Options};

use crate::scene::{comparison, gnu, same_as_gnu, same_as_gnu_with};

#[test]
fn files_are_copied() {
    same_as_gnu(&[
        "f new",
        "f g",
        "f empty",
        "f empty/",
        "f full",
        "f ./new",
        "f empty/../new",
        "-v f g empty",
        "-t empty f g",
        "-tempty f",
        "-T f g",
        "exec new",
        "setid new",
        "@bad @it @sp @line é empty",
        "-v @bad @it @sp @line é empty",
        "--strip-trailing-slashes f/ empty",
        "f to_full",
        "f to_f/../new",
        "/dev/null new",
        "/proc/version new",
        "f f empty",
        "f ./f empty",
    ]);
}

#[test]
fn folders_are_copied() {
    same_as_gnu(&[
        "-r src new",
        "-R src new/",
        "-r src empty",
        "-r src/ empty/",
        "-r src full",
        "-r src/. empty",
        "-r src/. new",
        "-r src/sub/.. empty",
        "-rT src empty",
        "-rT src empty/",
        "-rT src full/src",
        "-r src f empty",
        "-rv src new",
        "-rv src full",
        "-rv src/. full/src",
        "-r -t empty src other",
        "-r fifo empty",
        "-r src src empty",
        "-r src src/ empty",
        "-r to_src/ empty",
        "-r --strip-trailing-slashes to_src/ empty",
        "-r src/other_sub new",
    ]);
}

#[test]
fn attributes_are_kept_as_asked() {
    same_as_gnu(&[
        "-a src new",
        "-a src full",
        "-a setid new",
        "-a setid g",
        "-p f new",
        "-p f g",
        "-pr src new",
        "-dr src new",
        "-a f hard to_f dangling fifo attributed empty",
        "-a attributed new",
        "-p attributed new",
        "--preserve=xattr attributed new",
        "--preserve=all attributed new",
        "-a --no-preserve=xattr attributed new",
        "--preserve=mode g new",
        "--preserve=timestamps g new",
        "--preserve=ownership g new",
        "--preserve=links f hard empty",
        "-r --preserve=links src new",
        "--no-preserve=mode exec new",
        "--no-preserve=mode g f",
        "-p --no-preserve=mode g new",
        "--no-preserve=mode -p g new",
        "-a --no-preserve=mode src new",
        "-a --no-preserve=links src new",
        "-a --no-preserve=timestamps src new",
        "-a --no-preserve=all src new",
        "-r --no-preserve=mode src new",
        "-a f hard empty",
        "-d f hard empty",
        "f hard empty",
        "-a src/a src/twin empty",
    ]);
}

#[test]
fn existing_targets_are_treated_as_asked() {
    same_as_gnu(&[
        "-n f g",
        "-n f new",
        "-nv f g",
        "-u f newer",
        "-u newer f",
        "-uv f newer g",
        "-un newer f",
        "-ru src full",
        "-rn src full",
        "-rnv src full",
        "-f f g",
        "--remove-destination f g",
        "--remove-destination f hard/../to_f",
        "--remove-destination f other/f",
        "--remove-destination g hard",
        "--remove-destination -v g to_f",
        "-r --remove-destination src full",
        "--remove-destination g dangling",
        "g hard",
        "g to_f",
    ]);
}

#[test]
fn parents_are_made() {
    same_as_gnu(&[
        "--parents src/a empty",
        "--parents src/sub/deep empty",
        "--parents -r src/sub empty",
        "--parents -r src/sub/ empty",
        "--parents ./src/a empty",
        "--parents -p src/sub/deep empty",
        "--parents -a src/sub empty",
        "--parents -t empty src/a src/b f",
        "--parents @/src/a empty",
        "--parents -r to_src/sub empty",
        "--parents src/a full",
        "--parents src/a src/a empty",
        "--parents -v src/sub/deep empty",
        "--parents -rv full/src empty",
    ]);
}

#[test]
fn holes_are_made_as_asked() {
    let options = Options { holes: Holes::Same, ..comparison() };
    same_as_gnu_with(
        &[
            "sparse new",
            "zeros new",
            "--sparse=auto sparse new",
            "--sparse=always zeros new",
            "--sparse=always sparse new",
            "--sparse=never sparse new",
            "--sparse=never zeros new",
            "-a --sparse=always sparse zeros empty",
            "--sparse=always zeros g",
            "--reflink=never --sparse=auto sparse new",
        ],
        &options,
        |_| {},
    );
}

#[test]
fn clones_are_made_where_they_can_be() {
    same_as_gnu(&["--reflink=never src/b new", "--reflink=auto src/b new", "--reflink=never -r src new"]);
}

/// Small files take one request for reading and writing, unless holes are wanted.
#[test]
fn zeros_of_small_files_become_holes_as_gnu_makes_them() {
    let Some(gnu) = gnu() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let at = |path: String| folder.path().join(path);
    std::fs::create_dir(at("source".into())).expect("a source");
    for size in [4096, 5000, 16_384, 65_536, 131_072, 200_000] {
        std::fs::write(at(format!("source/{size}")), vec![0; size]).expect("zeros");
        let half = [vec![1; size / 2], vec![0; size - size / 2]].concat();
        std::fs::write(at(format!("source/half-{size}")), half).expect("half of it zeros");
    }
    for sparse in ["always", "auto", "never"] {
        let option = format!("--sparse={sparse}");
        let copy = |program: &std::path::Path, new: &str| {
            let mut command = std::process::Command::new(program);
            if program != gnu {
                command.arg("cp");
            }
            let arguments = ["-r", "--reflink=never", &option, "source", new];
            let status = command.args(arguments).current_dir(folder.path()).status();
            assert!(status.expect("it runs").success(), "{option}");
        };
        let (theirs, ours) = (format!("gnu-{sparse}"), format!("ferry-{sparse}"));
        copy(&gnu, &theirs);
        copy(env!("CARGO_BIN_EXE_ferry").as_ref(), &ours);
        // Delayed allocation would change the number of blocks.
        assert!(std::process::Command::new("sync").status().expect("sync").success());
        for entry in std::fs::read_dir(at("source".into())).expect("its names") {
            let name = entry.expect("a name").file_name();
            let name = name.to_str().expect("digits");
            let blocks = |copy: &str| at(format!("{copy}/{name}")).metadata().expect("a copy").blocks();
            assert_eq!(blocks(&ours), blocks(&theirs), "{option} {name}");
            let bytes = |copy: &str| std::fs::read(at(format!("{copy}/{name}"))).expect("its bytes");
            assert!(bytes(&ours) == bytes("source"), "{option} {name}");
        }
    }
}
