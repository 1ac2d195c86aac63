//! `ferry completions`: prints completion scripts for shells.

mod bash;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ValueHint};
use clap_complete::Shell;

use crate::arguments::Effect::Print;
use crate::arguments::{self, CommandError, Definition, Manual, Parsed, Read, Text, Usage, command, option};
use crate::quote::quote;
use crate::values::choice;
use crate::{cp, plan, sync, trace, verify};

pub(crate) const NAME: &str = "completions";

pub(crate) const MANUAL: Manual = Manual {
    name: "ferry completions",
    about: "Print the completion script for a shell",
    usage: "ferry completions SHELL",
    examples: &[
        (
            "ferry completions bash > ~/.local/share/bash-completion/completions/ferry",
            "Install the completions of bash for the current user",
        ),
        ("ferry completions zsh > ~/.zsh/_ferry", "Install those of zsh, if $fpath has ~/.zsh"),
        ("ferry completions fish > ~/.config/fish/completions/ferry.fish", "Install those of fish"),
    ],
    usual: &[],
    after: "\
SHELL is bash, zsh or fish. Install the script under one of these names:
  bash  /usr/share/bash-completion/completions/ferry, or ~/.local/share/bash-completion/completions/ferry
  zsh   _ferry, in a directory of $fpath
  fish  /usr/share/fish/vendor_completions.d/ferry.fish, or ~/.config/fish/completions/ferry.fish

Exit status:
  0  the script was printed
  1  standard output can't be written
  2  the command line is wrong",
};

pub(crate) const OPTIONS: &[Definition<()>] = &[option("help", "Print this help", Print(Text::Help))];

const SHELLS: [(&str, Shell); 3] = [("bash", Shell::Bash), ("zsh", Shell::Zsh), ("fish", Shell::Fish)];

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

/// Prints the script for a shell.
///
/// # Errors
/// Standard output can't be written.
pub(crate) fn run(shell: Shell, overview: clap::Command) -> Result<ExitCode, CommandError> {
    let written = std::io::stdout().write_all(&script(shell, overview));
    written.map(|()| ExitCode::SUCCESS).map_err(|error| CommandError {
        program: MANUAL.name,
        usage: Usage::plain(format!("write error: {error}")),
        code: 1,
    })
}

fn script(shell: Shell, overview: clap::Command) -> Vec<u8> {
    let mut command = with_operands(overview);
    command = command.mut_subcommand("cp", |cp| {
        let backups = PossibleValuesParser::new(cp::backup_words());
        with_words(cp, cp::OPTIONS).mut_arg("backup", |option| option.value_parser(backups))
    });
    command = command.mut_subcommand("sync", |sync| with_words(sync, sync::OPTIONS));
    command = command.mut_subcommand("verify", |verify| with_words(verify, verify::OPTIONS));
    command = command.mut_subcommand("plan", |plan| with_words(plan, plan::OPTIONS));
    command = command.mut_subcommand("trace", |trace| {
        trace.mut_subcommand("export", |export| with_words(export, trace::EXPORT_OPTIONS))
    });
    command.build();
    if shell == Shell::Bash {
        // clap's script for bash offers options where a file is expected.
        return bash::script(&command).into_bytes();
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "ferry", &mut script);
    if shell == Shell::Fish {
        // clap's script for fish offers files where only some words are accepted.
        let shells = SHELLS.map(|(name, _)| name).join(" ");
        let line = format!("complete -c ferry -n '__fish_ferry_using_subcommand {NAME}' -f -a '{shells}'\n");
        script.extend_from_slice(line.as_bytes());
    }
    // With two colons, zsh's _arguments offers no options after an operand.
    String::from_utf8_lossy(&script).replace("'*::FILE:", "'*:FILE:").into_bytes()
}

/// Adds the accepted words to the options of a command.
fn with_words<D: Default>(command: clap::Command, table: &[Definition<D>]) -> clap::Command {
    let known = table.iter().map(|definition| (definition.long, definition.words()));
    known.filter(|(_, words)| !words.is_empty()).fold(command, |command, (long, words)| {
        command.mut_arg(long, |option| option.value_parser(PossibleValuesParser::new(words)))
    })
}

/// Adds operands, which are only part of the usage lines.
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
