//! Refusals: same messages and exit codes as GNU cp, and nothing changed.

use crate::scene::{same_as_gnu, same_words_as_gnu};

#[test]
fn operands_that_make_no_sense_are_refused() {
    same_as_gnu(&[
        "",
        "f",
        "@it",
        "-T f",
        "-t empty",
        "-T f g empty",
        "-t empty -T f",
        "-t empty -t full f",
        "-t missing f",
        "-t f g",
        "f g missing",
        "f g missing/",
        "f g exec",
        "f g exec/x",
        "f g loop",
        "f g dangling",
        "--parents f new",
        "--parents f g",
        "--parents -T f empty",
        "-ls f new",
        "--reflink=always --sparse=always f new",
        "--zork f new",
        "-k f new",
        "-rk f new",
        "--recursive=yes f new",
        "f new -t",
        "f new --target-directory",
        "--no f new",
        "--preserve=context f new",
    ]);
}

#[test]
fn sources_that_are_not_there_are_told() {
    same_as_gnu(&[
        "missing new",
        "missing empty",
        "missing gone empty",
        "missing f empty",
        "missing missing empty",
        "-r missing src empty",
        "@gone empty",
        "f/x new",
        "f/ new",
        "dangling new",
        "dangling empty",
        "-r src/a/ new",
        "@empty new",
        "f @empty",
        "loop new",
        "-n missing g",
        "missing no/x",
        "missing f/x",
    ]);
}

#[test]
fn targets_that_cannot_be_made_are_told() {
    same_as_gnu(&[
        "f no/new/",
        "-s f new/",
        "-s f empty/new/",
        "-s f no/new/",
        "f loop/x",
        "-f f loop/x",
        "f no/x",
        "f new/",
        "f g/",
        "f g/x",
        "-r src no/x",
        "-r src empty/new/.",
        "-r src g/x",
        "-r to_f no/x",
        "-r fifo no/x",
        "-l f no/x",
        "-s f no/x",
        "src no/x",
        "f dangling/",
        "-r src dangling/",
        "-r to_f new/",
        "-l f new/",
        "f loop",
        "-T f loop",
    ]);
}

#[test]
fn folders_need_to_be_asked_for() {
    same_as_gnu(&[
        "src new",
        "src empty",
        "src f empty",
        "-l src new",
        "src/ new",
        "-n src g",
        "--parents src empty",
    ]);
}

#[test]
fn files_and_folders_do_not_replace_each_other() {
    same_as_gnu(&[
        "exec full",
        "-T f empty",
        "-T f .",
        "-r src g",
        "-rT src g",
        "-r src to_f",
        "-rn src g",
        "-f exec full",
        "--remove-destination exec full",
        "-r full/. src",
        "-r full other",
    ]);
}

#[test]
fn a_file_is_not_copied_onto_itself() {
    same_as_gnu(&[
        "f f",
        "f ./f",
        "f hard",
        "f to_f",
        "to_f f",
        "-P to_f f",
        "-P to_f to_f",
        "-f f f",
        "-f f hard",
        "-d f to_f",
        "--remove-destination f f",
        "-a f hard",
        "-u f f",
        "-r src/. src",
        "-rT src src",
        "f .",
        "-r src .",
    ]);
}

#[test]
fn a_folder_is_not_copied_into_itself() {
    same_words_as_gnu(&[
        "-r src src",
        "-r src src/new",
        "-r src src/sub",
        "-r src to_src",
        "-a src src/other_sub",
        "-r src/sub f src/sub",
    ]);
}

#[test]
fn what_this_run_made_is_not_overwritten() {
    same_as_gnu(&["f other/f empty", "-v f other/f empty", "-r f other/f empty", "-P to_f f empty"]);
}

#[test]
fn clones_that_cannot_be_made_are_told() {
    same_as_gnu(&["--reflink=always src/b new", "--reflink /dev/null new"]);
}

#[test]
fn content_that_cannot_be_moved_is_told() {
    same_words_as_gnu(&["/proc/self/mem new", "f /dev/full", "-p f /dev/full"]);
}
