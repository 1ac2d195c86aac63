use std::ffi::OsString;

use ferry_lab::record::Scale;

use super::{Conduct, Lab, overview, parse};
use crate::arguments::Parsed;
use crate::help;
use crate::lab::files::{View, ViewFile};
use crate::lab::show::ResultFormat;

fn words(line: &str) -> Vec<OsString> {
    line.split(' ').map(OsString::from).collect()
}

fn conduct(line: &str) -> Conduct {
    match parse(&words(line)) {
        Ok(Parsed::Run(lab)) => match *lab {
            Lab::Conduct(conduct) => *conduct,
            Lab::Strategy(_) => panic!("{line} is a strategy"),
            Lab::Report(_) => panic!("{line} is a report"),
            Lab::Speeds(_) => panic!("{line} prints speeds"),
        },
        Ok(Parsed::Print(..)) => panic!("{line} prints"),
        Err(usage) => panic!("{line}: {}", usage.message),
    }
}

fn refused(line: &str) -> String {
    match parse(&words(line)) {
        Err(usage) => usage.message,
        Ok(_) => panic!("{line} is taken"),
    }
}

#[test]
fn an_experiments_options_are_those_of_the_registry() {
    let found = conduct(
        "copy --quick --trees small --vs a --vs=b --runs 4 --seed 0 --json r.json --work-dir /w --csv",
    );
    assert_eq!(
        (found.experiment.spec().name, found.request.scale, found.request.runs),
        ("copy", Scale::Quick, Some(4))
    );
    let given: Vec<String> =
        found.request.parameters.iter().map(|(name, text)| format!("{name}={text}")).collect();
    assert_eq!(given, ["trees=small", "vs=a", "vs=b"]);
    assert_eq!((found.request.seed, found.format), (Some(0), ResultFormat::Csv));
    assert_eq!(found.request.record.unwrap().to_str(), Some("r.json"));
    assert_eq!(found.request.work_dir.to_str(), Some("/w"));
}

#[test]
fn the_last_operand_is_always_there() {
    let given = |line| conduct(line).request.parameters;
    let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(
        given("tree small /t --depth 2"),
        [pair("depth", "2"), pair("preset", "small"), pair("target", "/t")]
    );
    assert_eq!(given("tree /t"), [pair("target", "/t")]);
    assert_eq!(refused("tree a b c"), "extra operand 'c'");
    assert_eq!(refused("copy here"), "extra operand 'here'");
}

#[test]
fn two_commands_follow_the_options_of_a_comparison() {
    let given = |line| conduct(line).request.parameters;
    let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(
        given("run --names a,b -- ls -l * -- cat -- f"),
        [pair("names", "a,b"), pair("first", "ls -l '*'"), pair("second", "cat -- f")]
    );
    assert_eq!(
        given("run --shell -- ls * | wc -- true"),
        [pair("shell", "yes"), pair("first", "ls * | wc"), pair("second", "true")]
    );
    assert!(given("run --resume r.json").is_empty());
    for line in ["run", "run --quick", "run -- ls", "run -- -- ls", "run -- ls --"] {
        assert_eq!(refused(line), "two commands are needed: '-- COMMAND -- COMMAND'", "{line}");
    }
    assert_eq!(refused("run ls -- ls -- ls"), "unexpected operand 'ls' before '--'");
    assert_eq!(
        refused("run --resume r.json -- ls -- ls"),
        "the commands can't be changed when a record is resumed"
    );
    for option in ["--work-dir", "--as-published"] {
        let line = format!("run {option} -- ls -- ls");
        assert!(refused(&line).starts_with(&format!("unrecognized option '{option}'")), "{line}");
    }
}

#[test]
fn what_makes_no_sense_is_told() {
    assert!(
        refused("nothing").starts_with("'nothing' is not an experiment; choose one of tree, copy, limits, ")
    );
    assert_eq!(refused("copy --runz 2"), "unrecognized option '--runz'; did you mean '--runs'?");
    assert_eq!(refused("copy --runs 0"), "invalid number '0' for '--runs'");
    assert_eq!(refused("copy --zork"), "unrecognized option '--zork'; did you mean '--work-dir'?");
    assert_eq!(refused("copy --xyzzy"), "unrecognized option '--xyzzy'");
    assert_eq!(refused("tree --resume x t"), "unrecognized option '--resume'");
    assert_eq!(refused("strategy dfs a"), "a strategy takes a name, a source and a target");
    assert_eq!(refused("strategy fast a b"), "'fast' is not a strategy");
}

#[test]
fn help_names_defaults_and_exit_codes() {
    let command = super::command(ferry_lab::experiments::named("copy").unwrap());
    // A terminal's width decides where lines end.
    let text = help::long(command).render_help().to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    for part in
        ["Usage: ferry lab copy [OPTION]...", "[1G; quick 32M; as published 1000000000]", " 130 interrupted"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    super::overview().debug_assert();
}

#[test]
fn the_extension_of_a_file_selects_what_is_written_to_it() {
    let found = conduct("copy -o r.json -o r.CSV --output=r.md -or.html");
    assert_eq!(found.request.record.unwrap().to_str(), Some("r.json"));
    let views = [("r.CSV", View::Csv), ("r.md", View::Markdown), ("r.html", View::Page)];
    assert_eq!(found.views, views.map(|(path, view)| ViewFile { path: path.into(), view }));
    assert_eq!(conduct("copy --json any").request.record.unwrap().to_str(), Some("any"));
    assert_eq!(
        refused("copy -o r.txt"),
        "the extension of 'r.txt' selects no format; choose one of .json, .csv, .md, .html"
    );
    assert_eq!(
        refused("copy -o .json"),
        "the extension of '.json' selects no format; choose one of .json, .csv, .md, .html"
    );
    assert_eq!(
        refused("copy -o a.json -o b.json"),
        "the record goes to one file, not to 'a.json' and 'b.json'"
    );
}

#[test]
fn the_names_to_choose_from_are_those_of_the_help() {
    let overview = overview();
    assert_eq!(super::names(), overview.get_subcommands().map(clap::Command::get_name).collect::<Vec<_>>());
}
