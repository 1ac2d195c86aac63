//! The completion script for bash.

use std::fmt::Write;

use clap::{Arg, Command, ValueHint};

const HEAD: &str = r#"_ferry() {
    local cur=$2 prev=$3 command=ferry value='' words='' word
    COMPREPLY=()
    # bash cuts words at `=`.
    if [[ $cur == = || ${COMP_WORDS[COMP_CWORD]} == = ]]; then
        cur='' value=yes
    elif [[ $prev == = && COMP_CWORD -ge 2 ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]} value=yes
    fi
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$command $word" in
"#;

const MIDDLE: &str = r#"                command+=" $word"
                ;;
        esac
    done
    case "$command $prev" in
"#;

const TAIL: &str = r#"    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}

complete -F _ferry -o bashdefault -o default ferry
"#;

/// Builds the script. Where it offers nothing, bash completes file names.
pub(super) fn script(command: &Command) -> String {
    let mut commands = Vec::new();
    flatten("ferry", command, &mut commands);
    let names: Vec<String> = commands.iter().skip(1).map(|(name, _)| format!("'{name}'")).collect();
    let mut script = HEAD.to_owned();
    line(&mut script, &format!("            {})", names.join(" | ")));
    script += MIDDLE;
    for (name, command) in &commands {
        values(&mut script, name, command);
    }
    script += "    esac\n    case $command in\n";
    for (name, command) in &commands {
        words(&mut script, name, command);
    }
    script + TAIL
}

/// Lists all commands with their full names, outermost first.
fn flatten<'a>(name: &str, command: &'a Command, commands: &mut Vec<(String, &'a Command)>) {
    commands.push((name.to_owned(), command));
    for inner in command.get_subcommands() {
        flatten(&format!("{name} {}", inner.get_name()), inner, commands);
    }
}

/// Writes the completions of option values: words, files, directories or none.
fn values(script: &mut String, name: &str, command: &Command) {
    const NOTHING: &str = "compopt +o default +o bashdefault && return";
    for option in command.get_opts().filter(|option| is_choice(option)) {
        let words: Vec<String> =
            option.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        let offer = format!("COMPREPLY=($(compgen -W '{}' -- \"$cur\")) && return", words.join(" "));
        let offer = if option.is_require_equals_set() { format!("[[ $value ]] && {offer}") } else { offer };
        case(script, name, &offer, std::iter::once(option));
    }
    let needs_equals = |option: &&Arg| option.is_require_equals_set();
    let hinted = |hint: ValueHint| {
        let options = command.get_opts().filter(move |option| !needs_equals(option) && !is_choice(option));
        options.filter(move |option| option.get_value_hint() == hint)
    };
    case(script, name, "return", hinted(ValueHint::FilePath));
    case(script, name, "compopt +o default -o dirnames && return", hinted(ValueHint::DirPath));
    case(script, name, NOTHING, hinted(ValueHint::Other));
    // Without `=`, the next word is an operand or an option.
    let optional = format!("[[ $value ]] && {NOTHING}");
    case(
        script,
        name,
        &optional,
        command.get_opts().filter(|option| needs_equals(option) && !is_choice(option)),
    );
}

fn is_choice(option: &Arg) -> bool {
    option.get_action().takes_values() && !option.get_possible_values().is_empty()
}

/// Writes `action` as the completion after each of these options.
fn case<'a>(script: &mut String, command: &str, action: &str, options: impl Iterator<Item = &'a Arg>) {
    let names: Vec<String> = options.flat_map(names).map(|option| format!("'{command} {option}'")).collect();
    if !names.is_empty() {
        line(script, &format!("        {}) {action} ;;", names.join(" | ")));
    }
}

/// Names of an option, such as `-r`, `-R` and `--recursive`.
fn names(option: &Arg) -> Vec<String> {
    let letters = option.get_short_and_visible_aliases().unwrap_or_default();
    let letters = letters.into_iter().map(|letter| format!("-{letter}"));
    letters.chain(option.get_long().map(|long| format!("--{long}"))).collect()
}

/// Writes the options (after a dash) and the words and commands (otherwise) of a command.
fn words(script: &mut String, name: &str, command: &Command) {
    let options: Vec<String> =
        command.get_arguments().filter(|argument| !argument.is_positional()).flat_map(names).collect();
    let choices = command.get_positionals().flat_map(Arg::get_possible_values);
    let mut others: Vec<String> = choices.map(|value| value.get_name().to_owned()).collect();
    others.extend(command.get_subcommands().map(|inner| inner.get_name().to_owned()));
    let (options, others) = (options.join(" "), others.join(" "));
    line(script, &format!("        '{name}')"));
    line(script, &format!("            [[ $cur == -* ]] && words='{options}' || words='{others}'"));
    line(script, "            ;;");
}

fn line(script: &mut String, text: &str) {
    writeln!(script, "{text}").ok();
}
