use clap::Command;

use super::{brief, examples, long, short};
use crate::arguments::Effect::{Optional, Print, Switch, Value};
use crate::arguments::{Definition, Manual, Text, command, option};
use crate::cli;

const MANUAL: Manual = Manual {
    name: "ferry row",
    about: "Row PASSENGERs across",
    usage: "ferry row [OPTION]... PASSENGER...",
    examples: &[
        ("ferry row goat", "Row one passenger"),
        ("ferry row --boats 2 wolf goat", "Row two at once"),
        ("ferry row --slowly cabbage", "Row with care"),
        ("ferry row --song=shanty wolf", "Row and sing"),
    ],
    usual: &["boats", "slowly", "help"],
    after: "A goat is not left alone with a wolf, and a cabbage is not left alone with a goat. The boat holds two.",
};

const OPTIONS: &[Definition<()>] = &[
    option("boats", "Use this many boats: one, or as many as the river holds", Value("N", |_, _| Ok(()))),
    option("slowly", "Row slowly", Switch(|_| ())),
    option("song", "Sing while rowing", Optional("TITLE", "any", |_, _| Ok(()))),
    option("help", "Print this help", Print(Text::Help)),
];

fn shown(prepare: fn(Command) -> Command, columns: usize) -> String {
    prepare(command(&MANUAL, OPTIONS)).term_width(columns).render_help().to_string()
}

#[test]
fn the_short_help_has_examples_and_a_line_for_each_usual_option() {
    let expected = "\
Row PASSENGERs across

Usage: ferry row [OPTION]... PASSENGER...

Examples:
  ferry row goat
      Row one passenger
  ferry row --boats 2 wolf goat
      Row two at once
  ferry row --slowly cabbage
      Row with care

Options:
      --boats <N>  Use this many boats: one, or as many as the river holds
      --slowly     Row slowly
  -h, --help       Print this help

Run `ferry row --help` for all options and details.
";
    assert_eq!(shown(short, 80), expected);
}

#[test]
fn the_long_help_has_the_same_examples_and_everything_else() {
    let expected = "\
Row PASSENGERs across

Usage: ferry row [OPTION]... PASSENGER...

Examples:
  ferry row goat
      Row one passenger
  ferry row --boats 2 wolf goat
      Row two at once
  ferry row --slowly cabbage
      Row with care

Options:
      --boats <N>       Use this many boats: one, or as many as the river holds
      --slowly          Row slowly
      --song[=<TITLE>]  Sing while rowing
  -h, --help            Print this help

A goat is not left alone with a wolf, and a cabbage is not left alone with a
goat. The boat holds two.
";
    assert_eq!(shown(long, 80), expected);
}

#[test]
fn a_narrow_help_is_folded() {
    let text = shown(long, 40);
    let folded = "\
      --boats <N>
          Use this many boats: one, or
          as many as the river holds
      --slowly
          Row slowly
";
    assert!(text.contains(folded), "{text}");
    assert!(text.ends_with("\ngoat. The boat holds two.\n"), "{text}");
}

#[test]
fn the_manual_page_gets_all_examples() {
    let all = examples(&command(&MANUAL, OPTIONS));
    let expected = MANUAL.examples.iter().map(|(line, purpose)| ((*line).to_owned(), (*purpose).to_owned()));
    assert_eq!(all, expected.collect::<Vec<_>>());
}

#[test]
fn a_long_help_is_cut_where_details_begin() {
    let table = [
        ("Row slowly", "Row slowly"),
        ("Show progress: auto (on a terminal), always or never", "Show progress"),
        ("Write each failure to FILE [default: standard error]", "Write each failure to FILE"),
        ("Row slowly; a song about the river is sung meanwhile", "Row slowly"),
        ("Row with care, song, and all of the passengers at once", "Row with care, song"),
        ("Row all the passengers that wait on either side now", "Row all the passengers ..."),
        (
            "Rowallthepassengersthatwaitoneithersideoftheriver",
            "Rowallthepassengersthatwaitoneithersideoftheriver",
        ),
    ];
    for (help, expected) in table {
        assert_eq!(brief(help, 27), expected, "{help}");
    }
}

/// Calls `check` with the name and the clap command of each command.
fn for_each(command: &Command, name: &str, check: &mut dyn FnMut(&str, &Command)) {
    check(name, command);
    for inner in command.get_subcommands() {
        for_each(inner, &format!("{name} {}", inner.get_name()), check);
    }
}

#[test]
fn every_help_fits_its_columns() {
    let short: fn(Command) -> Command = short;
    let forms = [(short, 80), (long, 80), (short, 40), (long, 40)];
    for_each(&cli::overview(), "ferry", &mut |name, command| {
        for (prepare, columns) in forms {
            let text = prepare(command.clone()).term_width(columns).render_help().to_string();
            let (usage, rest) = text.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{name}: {text}"));
            let is_wide = |line: &&str| line.chars().count() > columns;
            // A word is not broken, nor is the usage.
            let is_breakable = |line: &&str| columns == 80 || line.split_whitespace().count() > 1;
            assert_eq!(rest.lines().filter(is_breakable).find(is_wide), None, "{name}");
            assert!(columns < 80 || usage.lines().all(|line| !is_wide(&line)), "{name}: {usage}");
        }
    });
}

#[test]
fn each_option_of_a_short_help_takes_one_line() {
    for_each(&cli::overview(), "ferry", &mut |name, command| {
        let shown = command.get_arguments().filter(|option| !option.is_hide_short_help_set()).count();
        let text = short(command.clone()).term_width(80).render_help().to_string();
        let (_, options) = text.split_once("ptions:\n").unwrap_or_else(|| panic!("{name}: {text}"));
        let names = options.lines().filter(|line| line.trim_start().starts_with('-')).count();
        let lines = options.lines().filter(|line| line.starts_with("  ")).count();
        assert_eq!((names, lines), (shown, shown), "{name}: {text}");
    });
}
