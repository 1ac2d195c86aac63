use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;

use super::Effect::{Optional, Print, Switch, Value};
use super::{Definition, Dialect, Effect, Manual, Read, Text, Usage, command, read, read_in};
use crate::{cp, help, sync, tune, verify};

type Log = Vec<String>;

const fn option(
    letters: &'static str,
    long: &'static str,
    effect: Effect<Log>,
    own: bool,
) -> Definition<Log> {
    Definition { letters, long, help: "", effect, own }
}

fn note(log: &mut Log, name: &str, value: &OsStr) -> Result<(), Usage> {
    log.push(format!("{name}={}", value.display()));
    Ok(())
}

const TABLE: &[Definition<Log>] = &[
    option("rR", "recursive", Switch(|log| log.push("r".to_owned())), false),
    option("v", "verbose", Switch(|log| log.push("v".to_owned())), false),
    option("t", "target", Value("DIR", |log, value| note(log, "t", value)), false),
    option("", "when", Optional("WHEN", "always", |log, value| note(log, "when", value)), false),
    option("", "stats", Switch(|log| log.push("stats".to_owned())), true),
    option("", "strip", Switch(|log| log.push("strip".to_owned())), false),
    option("", "help", Print(Text::Help), false),
];

fn outcome(dialect: Dialect, line: &str) -> String {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let mut log = Log::new();
    let read = match read_in(dialect, TABLE, &arguments, &mut log) {
        Ok(Read::Operands(operands)) => {
            operands.iter().map(|operand| operand.display().to_string()).collect::<Vec<_>>().join(" ")
        }
        Ok(Read::Print(text)) => format!("{text:?}"),
        Err(usage) => usage.message,
    };
    format!("{} | {read}", log.join(" "))
}

#[test]
fn arguments_are_read_as_getopt_reads_them() {
    let table = [
        ("", " | "),
        ("a -rv b", "r v | a b"),
        ("-rtx a", "r t=x | a"),
        ("-vt x a", "v t=x | a"),
        ("-t=x a", "t==x | a"),
        ("-t -r a", "t=-r | a"),
        ("--target=x=y a", "t=x=y | a"),
        ("--target x a", "t=x | a"),
        ("--when a", "when=always | a"),
        ("--when=never a", "when=never | a"),
        ("--when= a", "when= | a"),
        ("a -- -r --", " | a -r --"),
        ("- a", " | - a"),
        ("--rec --w=x", "r when=x | "),
        ("--st", "strip | "),
        ("--sta", "stats | "),
        ("-v --help --zork", "v | Help"),
        ("--zork --help", " | unrecognized option '--zork'"),
        ("--zork=1", " | unrecognized option '--zork=1'"),
        ("-rk", "r | invalid option -- 'k'"),
        ("--recursive=1", " | option '--recursive' doesn't allow an argument"),
        ("--help=1", " | option '--help' doesn't allow an argument"),
        ("-rt", "r | option requires an argument -- 't'"),
        ("--targ", " | option '--target' requires an argument"),
    ];
    for (line, expected) in table {
        for dialect in [Dialect::Ferry, Dialect::Gnu] {
            assert_eq!(outcome(dialect, line), expected, "{line}");
        }
    }
}

#[test]
fn ferry_helps_where_gnu_cp_does_not() {
    let table = [
        ("-vh a", "v | ShortHelp", "v | invalid option -- 'h'"),
        (
            "--strp",
            " | unrecognized option '--strp'; did you mean '--strip'?",
            " | unrecognized option '--strp'",
        ),
        (
            "--recrusive=1",
            " | unrecognized option '--recrusive=1'; did you mean '--recursive'?",
            " | unrecognized option '--recrusive=1'",
        ),
    ];
    for (line, by_ferry, by_gnu) in table {
        assert_eq!(outcome(Dialect::Ferry, line), by_ferry, "{line}");
        assert_eq!(outcome(Dialect::Gnu, line), by_gnu, "{line}");
    }
}

#[test]
fn bytes_that_are_not_text_are_operands_and_values() {
    let bytes = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let mut values: Vec<OsString> = Vec::new();
    let keep: Effect<Vec<OsString>> = Value("V", |values, value| {
        values.push(value.to_owned());
        Ok(())
    });
    let table = [Definition { letters: "t", long: "target", help: "", effect: keep, own: false }];
    let arguments = [bytes(b"a\xff"), bytes(b"-tb\xff"), bytes(b"--target=c\xff")];
    assert_eq!(read(&table, &arguments, &mut values), Ok(Read::Operands(vec![bytes(b"a\xff")])));
    assert_eq!(values, [bytes(b"b\xff"), bytes(b"c\xff")]);
    let refused = read(&table, &[bytes(b"-\xff")], &mut values);
    assert_eq!(refused, Err(Usage::with_hint("invalid option -- '\\u{ff}'")));
    let refused = read(&table, &[bytes(b"--\xff")], &mut values);
    assert_eq!(refused, Err(Usage::with_hint("unrecognized option '--'$'\\377'")));
}

/// In debug builds, clap panics if two options share a name.
#[test]
fn the_tables_make_sound_commands() {
    fn check<D>(manual: &Manual, table: &[Definition<D>]) {
        let mut command = command(manual, table);
        command.build();
        let help = help::long(command.clone()).render_help().to_string();
        assert!(help.contains("Exit status"));
        for definition in table {
            assert!(help.contains(&format!("--{}", definition.long)), "{}", definition.long);
        }
        for name in manual.usual {
            assert!(table.iter().any(|definition| definition.long == *name), "{name} is no option");
        }
        command.debug_assert();
    }
    check(&cp::MANUAL, cp::OPTIONS);
    check(&sync::MANUAL, sync::OPTIONS);
    check(&tune::MANUAL, tune::OPTIONS);
    check(&verify::MANUAL, verify::OPTIONS);
}
