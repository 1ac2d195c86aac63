//! `ferry completions`: what a shell needs to complete ferry's commands and options.

mod bash;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ValueHint};
use clap_complete::Shell;

use crate::arguments::Effect::Print;
use crate::arguments::{self, Definition, Manual, Read, Text, Usage, command};
use crate::cli::{Misuse, Parsed, overview};
use crate::quote::quote;
use crate::values::choice;
use crate::{cp, trace, verify};

/// The command's name.
pub(crate) const NAME: &str = "completions";

/// What stands around the options in the help.
pub(crate) const MANUAL: Manual = Manual {
    name: "ferry completions",
    about: "Print what a shell needs to complete ferry's commands and options",
    usage: "ferry completions SHELL",
    after: "\
SHELL is bash, zsh or fish. The shells read it from a file of these names:
  bash  /usr/share/bash-completion/completions/ferry, or ~/.local/share/bash-completion/completions/ferry
  zsh   _ferry, in a folder of $fpath
  fish  /usr/share/fish/vendor_completions.d/ferry.fish, or ~/.config/fish/completions/ferry.fish

Exit status:
  0  it was printed
  1  it could not be written
  2  the command line is wrong",
};

/// Every option.
pub(crate) const OPTIONS: &[Definition<()>] = &[Definition {
    letters: "",
    long: "help",
    help: "Print this help",
    effect: Print(Text::Help),
    own: false,
}];

const SHELLS: [(&str, Shell); 3] = [("bash", Shell::Bash), ("zsh", Shell::Zsh), ("fish", Shell::Fish)];

/// Reads the arguments after the command's name.
pub(crate) fn parse(rest: &[OsString]) -> Result<Parsed<Shell>, Usage> {
    match arguments::read(OPTIONS, rest, &mut ())? {
        Read::Print(text) => Ok(Parsed::Print(text, Box::new(command(&MANUAL, OPTIONS)))),
        Read::Operands(operands) => match operands.as_slice() {
            [shell] => choice("SHELL", shell, &SHELLS).map(|shell| Parsed::Run(Box::new(shell))),
            [] => Err(Usage::with_hint("missing shell")),
            [_, more, ..] => Err(Usage::with_hint(format!("extra operand {}", quote(more)))),
        },
    }
}

/// Prints them.
///
/// # Errors
/// Standard output can't be written.
pub(crate) fn run(shell: Shell) -> Result<ExitCode, Misuse> {
    let written = std::io::stdout().write_all(&script(shell));
    written.map(|()| ExitCode::SUCCESS).map_err(|error| Misuse {
        program: MANUAL.name,
        usage: Usage::plain(format!("write error: {error}")),
        code: 1,
    })
}

/// What the shell is to read.
fn script(shell: Shell) -> Vec<u8> {
    let mut command = with_operands(overview());
    command = command.mut_subcommand("cp", |cp| {
        let backups = PossibleValuesParser::new(cp::backup_words());
        with_words(cp, cp::OPTIONS).mut_arg("backup", |option| option.value_parser(backups))
    });
    command = command.mut_subcommand("verify", |verify| with_words(verify, verify::OPTIONS));
    command = command.mut_subcommand("trace", |trace| {
        trace.mut_subcommand("export", |export| with_words(export, trace::EXPORT_OPTIONS))
    });
    command.build();
    if shell == Shell::Bash {
        // clap's offers options where files are meant: after `ferry cp`, and after `ferry cp SOURCE`.
        return bash::script(&command).into_bytes();
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "ferry", &mut script);
    if shell == Shell::Fish {
        // clap's offers files where an operand is one of some words.
        let shells = SHELLS.map(|(name, _)| name).join(" ");
        let line = format!("complete -c ferry -n '__fish_ferry_using_subcommand {NAME}' -f -a '{shells}'\n");
        script.extend_from_slice(line.as_bytes());
    }
    // With two colons zsh's _arguments forgets what went before, and offers no options after an operand.
    String::from_utf8_lossy(&script).replace("'*::FILE:", "'*:FILE:").into_bytes()
}

/// The options of a command with the words that their values may be.
fn with_words<D: Default>(command: clap::Command, table: &[Definition<D>]) -> clap::Command {
    let known = table.iter().map(|definition| (definition.long, definition.words()));
    known.filter(|(_, words)| !words.is_empty()).fold(command, |command, (long, words)| {
        command.mut_arg(long, |option| option.value_parser(PossibleValuesParser::new(words)))
    })
}

/// The commands with their operands, which the help has in its usage lines only.
fn with_operands(command: clap::Command) -> clap::Command {
    if command.has_subcommands() {
        return command.mut_subcommands(with_operands);
    }
    let operand = match command.get_name() {
        NAME => Arg::new("SHELL").value_parser(SHELLS.map(|(name, _)| name)),
        _ => Arg::new("FILE").num_args(0..).value_hint(ValueHint::AnyPath),
    };
    command.arg(operand)
}
