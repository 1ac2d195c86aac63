use std::ffi::OsString;

use clap::Command as Clap;

use super::{COMMANDS, Command, overview, parse};
use crate::arguments::{CommandError, Text};
use crate::help;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

/// Message and exit code of a command line that is refused.
#[track_caller]
fn refused(line: &str) -> (String, u8) {
    match parse(&words(line)) {
        Err(CommandError { program, usage, code }) => (format!("{program}: {}", usage.message), code),
        Ok(_) => panic!("{line} is accepted"),
    }
}

/// Text that a command line prints, and the name of the command that it is about.
#[track_caller]
fn printed(line: &str) -> (Text, String) {
    match parse(&words(line)) {
        Ok(Command::Print(text, command)) => {
            (text, command.get_display_name().unwrap_or_default().to_owned())
        }
        Ok(_) => panic!("{line} runs"),
        Err(error) => panic!("{line}: {}", error.usage.message),
    }
}

#[test]
fn the_list_of_commands_is_that_of_the_help() {
    assert_eq!(overview().get_subcommands().map(Clap::get_name).collect::<Vec<_>>(), COMMANDS);
}

#[test]
fn a_misspelt_word_is_answered_with_the_one_that_is_meant() {
    let table = [
        ("ferry cpp a b", "ferry: 'cpp' is not a command; did you mean 'cp'?"),
        ("ferry help cpp", "ferry: 'cpp' is not a command; did you mean 'cp'?"),
        ("ferry help lab cop", "ferry: 'cop' is not a command; did you mean 'copy'?"),
        ("ferry --verison", "ferry: unrecognized option '--verison'; did you mean '--version'?"),
        ("ferry -x", "ferry: invalid option -- 'x'"),
        ("ferry lab cop", "ferry lab: 'cop' is not an experiment; did you mean 'copy'?"),
        ("ferry lab reprot", "ferry lab: 'reprot' is not an experiment; did you mean 'report'?"),
        ("ferry trace sohw", "ferry trace: 'sohw' is not a command; did you mean 'show'?"),
        (
            "ferry sync --delet-excluded a b",
            "ferry sync: unrecognized option '--delet-excluded'; did you mean '--delete-excluded'?",
        ),
        (
            "ferry verify --manifset=m a",
            "ferry verify: unrecognized option '--manifset=m'; did you mean '--manifest'?",
        ),
        ("ferry tune --chekc .", "ferry tune: unrecognized option '--chekc'; did you mean '--check'?"),
        ("ferry lab copy --qiuck", "ferry lab copy: unrecognized option '--qiuck'; did you mean '--quick'?"),
        ("ferry lab copy --zork", "ferry lab copy: unrecognized option '--zork'; did you mean '--work-dir'?"),
        ("ferry lab copy --xyzzy", "ferry lab copy: unrecognized option '--xyzzy'"),
        (
            "ferry lab report --ouput x",
            "ferry lab report: unrecognized option '--ouput'; did you mean '--output'?",
        ),
        (
            "ferry trace export --ouput x",
            "ferry trace export: unrecognized option '--ouput'; did you mean '--output'?",
        ),
    ];
    for (line, expected) in table {
        assert_eq!(refused(line), (expected.to_owned(), 2), "{line}");
    }
    let near = "ferry cp: unrecognized option '--recusive'; did you mean '--recursive'?";
    assert_eq!(refused("ferry cp --recusive a b"), (near.to_owned(), 1));
}

#[test]
fn a_word_that_is_near_none_is_answered_with_all() {
    let all = "ferry: 'zork' is not a command; choose one of cp, sync, verify, plan, lab, trace, tune, completions, man";
    assert_eq!(refused("ferry zork"), (all.to_owned(), 2));
    assert_eq!(refused("ferry sync --zork"), ("ferry sync: unrecognized option '--zork'".to_owned(), 2));
    assert!(
        refused("ferry trace play")
            .0
            .starts_with("ferry trace: 'play' is not a command; choose one of record")
    );
}

#[test]
fn under_the_name_cp_errors_are_those_of_gnu_cp() {
    let table = [
        ("cp --recusive a b", "cp: unrecognized option '--recusive'"),
        ("/usr/bin/cp --recusive a b", "cp: unrecognized option '--recusive'"),
        ("cp -h", "cp: invalid option -- 'h'"),
    ];
    for (line, expected) in table {
        assert_eq!(refused(line), (expected.to_owned(), 1), "{line}");
    }
}

#[test]
fn the_letter_prints_the_short_help_and_the_word_the_long_one() {
    let table = [
        ("ferry -h", Text::ShortHelp, "ferry"),
        ("ferry --help", Text::Help, "ferry"),
        ("ferry help", Text::Help, "ferry"),
        ("ferry help trace show", Text::Help, "ferry trace show"),
        ("ferry -h sync", Text::ShortHelp, "ferry sync"),
        ("ferry cp -h", Text::ShortHelp, "ferry cp"),
        ("ferry cp -rh a b", Text::ShortHelp, "ferry cp"),
        ("ferry cp --help", Text::Help, "ferry cp"),
        ("cp --help", Text::Help, "ferry cp"),
        ("ferry sync -h", Text::ShortHelp, "ferry sync"),
        ("ferry verify -h", Text::ShortHelp, "ferry verify"),
        ("ferry tune --help", Text::Help, "ferry tune"),
        ("ferry lab -h", Text::ShortHelp, "ferry lab"),
        ("ferry lab help", Text::Help, "ferry lab"),
        ("ferry lab copy -h", Text::ShortHelp, "ferry lab copy"),
        ("ferry lab report --help", Text::Help, "ferry lab report"),
        ("ferry trace --help", Text::Help, "ferry trace"),
        ("ferry trace record -h", Text::ShortHelp, "ferry trace record"),
        ("ferry completions -h", Text::ShortHelp, "ferry completions"),
        ("ferry man --help", Text::Help, "ferry man"),
        ("ferry -V", Text::Version, "ferry"),
        ("ferry", Text::Missing, "ferry"),
        ("ferry lab", Text::Missing, "ferry lab"),
        ("ferry trace", Text::Missing, "ferry trace"),
    ];
    for (line, text, name) in table {
        assert_eq!(printed(line), (text, name.to_owned()), "{line}");
    }
}

#[test]
fn the_help_of_cp_names_the_program_as_it_was_called() {
    let help = |line: &str| match parse(&words(line)) {
        Ok(Command::Print(_, command)) => help::long(*command).term_width(80).render_help().to_string(),
        Ok(_) | Err(_) => panic!("{line} prints nothing"),
    };
    let (own, gnu) = (help("ferry cp --help"), help("cp --help"));
    for part in
        ["\nUsage: ferry cp [OPTION]", "\n       ferry cp [OPTION]", "\n  ferry cp -a", "\n  -h, --help\n"]
    {
        assert!(own.contains(part), "{part} is not in {own}");
    }
    for part in ["\nUsage: cp [OPTION]", "\n       cp [OPTION]", "\n  cp -a", "\n      --help\n"] {
        assert!(gnu.contains(part), "{part} is not in {gnu}");
    }
    let before_options = gnu.split("\nOptions:\n").next().unwrap_or_default();
    assert!(!before_options.contains("ferry cp"), "{gnu}");
}

/// Splits a line as a shell does that knows only single quotes and `>`.
fn shell_words(line: &str) -> Vec<OsString> {
    let command = line.split(" > ").next().unwrap_or_default();
    let mut words = Vec::new();
    for (index, part) in command.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.into());
        } else {
            words.extend(part.split_whitespace().map(OsString::from));
        }
    }
    words
}

/// Checks the examples of a command and of its subcommands.
fn check_examples(name: &str, command: &Clap) {
    let examples = help::examples(command);
    assert!(examples.len() >= 3, "{name} has only {examples:?}");
    assert!(examples.iter().any(|(line, _)| line.starts_with(name)), "{name} is in none of {examples:?}");
    for (line, purpose) in &examples {
        assert!(line.len() <= 76 && purpose.len() <= 72, "{name}: a line is wider than 80 columns: {line}");
        for part in line.split(" | ").filter(|part| part.starts_with("ferry ")) {
            match parse(&shell_words(part)) {
                Ok(Command::Print(..)) => panic!("{name}: {line} prints a text"),
                Ok(_) => {}
                Err(error) => panic!("{name}: {line}: {}", error.usage.message),
            }
        }
    }
    for inner in command.get_subcommands() {
        check_examples(&format!("{name} {}", inner.get_name()), inner);
    }
}

#[test]
fn every_example_is_a_command_line_that_its_command_accepts() {
    check_examples("ferry", &overview());
}
