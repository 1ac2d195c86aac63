use std::ffi::OsString;

use ferry_copy::{Control, Dereference, Direct, Existing, Options, Preserve, Reflink, Sparse};
use ferry_io::{Backend, RingMode, RouteChoice};

use super::{Draft, Request};
use crate::arguments::{self, Dialect, Parsed};
use crate::cp::options::{OPTIONS, parse};
use crate::cp::stats::StatsFormat;
use crate::progress::When;

fn request(line: &str) -> Request {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    match parse(Dialect::Ferry, &arguments) {
        Ok(Parsed::Run(request)) => *request,
        Ok(Parsed::Print(text, _)) => panic!("{line}: prints {text:?}"),
        Err(usage) => panic!("{line}: {}", usage.message),
    }
}

fn options(line: &str) -> Options {
    request(line).options
}

fn refusal(line: &str) -> String {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    match parse(Dialect::Gnu, &arguments) {
        // Replaces the locale's quotation marks.
        Err(usage) => usage.message.replace(['‘', '’'], "'"),
        Ok(_) => panic!("{line}: accepted"),
    }
}

/// `m`ode, `M` (refused), `o`wnership, `t`imestamps, `l`inks, `x`attr, `X` (required).
fn letters(preserve: Preserve) -> String {
    let switches = [
        (preserve.mode, 'm'),
        (preserve.refuse_mode, 'M'),
        (preserve.ownership, 'o'),
        (preserve.timestamps, 't'),
        (preserve.links, 'l'),
        (preserve.xattr, 'x'),
        (preserve.xattr_required, 'X'),
    ];
    switches.into_iter().filter(|(on, _)| *on).map(|(_, letter)| letter).collect()
}

#[test]
fn attributes_are_kept_as_the_last_option_says() {
    let table = [
        ("", ""),
        ("-p", "mot"),
        ("-d", "l"),
        ("-a", "motlx"),
        ("--preserve", "mot"),
        ("--preserve=links", "l"),
        ("--preserve=m,t", "mt"),
        ("--preserve=all", "motlx"),
        ("--preserve=xattr", "xX"),
        ("-a --preserve=xattr", "motlxX"),
        ("--preserve=xattr -a", "motlxX"),
        ("--no-preserve=mode", "M"),
        ("-p --no-preserve=mode", "Mot"),
        ("--no-preserve=mode -p", "mot"),
        ("-p --no-preserve=mode -p", "mot"),
        ("--no-preserve=all -p", "mot"),
        ("-a --no-preserve=all", "M"),
        ("-a --no-preserve links", "motx"),
        ("--no-preserve=links -a", "motlx"),
        ("-a --no-preserve=context", "motlx"),
        ("--pr", "mot"),
    ];
    for (line, expected) in table {
        assert_eq!(letters(options(&format!("{line} a b")).preserve), expected, "{line}");
    }
}

#[test]
fn links_are_followed_as_the_last_option_says() {
    let table = [
        ("", Dereference::Always),
        ("-r", Dereference::Never),
        ("-rl", Dereference::Always),
        ("-rs", Dereference::Never),
        ("-P", Dereference::Never),
        ("-d", Dereference::Never),
        ("-a", Dereference::Never),
        ("-rH", Dereference::CommandLine),
        ("-rL", Dereference::Always),
        ("-aL", Dereference::Always),
        ("-La", Dereference::Never),
        ("-HLP", Dereference::Never),
        ("-PHL", Dereference::Always),
        ("-PLH", Dereference::CommandLine),
        ("-LHd", Dereference::Never),
        ("-L -P -L", Dereference::Always),
    ];
    for (line, expected) in table {
        assert_eq!(options(&format!("{line} a b")).dereference, expected, "{line}");
    }
}

#[test]
fn existing_targets_are_kept_rather_than_updated() {
    assert_eq!(options("a b").existing, Existing::Replace);
    assert_eq!(options("-n -i a b").existing, Existing::Ask);
    assert_eq!(options("-i -n a b").existing, Existing::Keep);
    // The results are those of GNU cp 9.7.
    for (line, expected) in [
        ("-u", (Existing::Replace, true)),
        ("--update=older", (Existing::Replace, true)),
        ("-u --update=all", (Existing::Replace, false)),
        ("--update=none --update=all", (Existing::Replace, false)),
        ("--update=none-fail -u", (Existing::Replace, true)),
        ("-u --update=none-fail", (Existing::Refuse, false)),
        ("-n -u", (Existing::Keep, true)),
        ("-u -n", (Existing::Keep, true)),
        ("-n --update=all", (Existing::Keep, false)),
        ("-n --update=none-fail", (Existing::Keep, false)),
        ("--update=none-fail -n", (Existing::Keep, false)),
        ("-i --update=none", (Existing::Keep, false)),
        ("--update=none-fail -i", (Existing::Refuse, false)),
        ("--update=older -i", (Existing::Ask, true)),
    ] {
        let options = options(&format!("{line} a b"));
        assert_eq!((options.existing, options.update), expected, "{line}");
    }
}

#[test]
fn backups_are_made_as_options_and_environment_say() {
    let settle = |line: &str, control: &str, suffix: &str| {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let mut draft = Draft::default();
        arguments::read(OPTIONS, &words, &mut draft).unwrap();
        let environment = |name: &str| match name {
            "VERSION_CONTROL" => Some(control.into()),
            _ => Some(suffix.into()),
        };
        match draft.backups.settle(environment) {
            Ok(backup) => backup.map(|made| (made.control, made.suffix.into_string().unwrap())),
            Err(usage) => panic!("{line}: {}", usage.message),
        }
    };
    let some = |control, suffix: &str| Some((control, suffix.to_owned()));
    assert_eq!(settle("a b", "t", ".q"), None);
    assert_eq!(settle("-b a b", "", ""), some(Control::Existing, "~"));
    assert_eq!(settle("-b a b", "t", ".q"), some(Control::Numbered, ".q"));
    assert_eq!(settle("--backup=nev -S .z a b", "t", ".q"), some(Control::Simple, ".z"));
    assert_eq!(settle("-S a/z a b", "", ".q"), some(Control::Existing, "~"));
    assert_eq!(settle("--backup=t -b a b", "none", ""), some(Control::Numbered, "~"));
    assert_eq!(settle("--backup=off -b a b", "t", ""), None);
}

#[test]
fn refusals_of_backups_are_worded_as_gnu_words_them() {
    let known = "Valid arguments are:\n  - 'none', 'off'\n  - 'simple', 'never'\n  - 'existing', 'nil'\n  - 'numbered', 't'";
    let table = [
        ("--backup=n a b", format!("ambiguous argument 'n' for 'backup type'\n{known}")),
        ("--backup=zork a b", format!("invalid argument 'zork' for 'backup type'\n{known}")),
        ("-bn a b", "--backup is mutually exclusive with -n or --update=none-fail".to_owned()),
        ("-b --update=none a b", "--backup is mutually exclusive with -n or --update=none-fail".to_owned()),
    ];
    for (line, expected) in table {
        assert_eq!(refusal(line), expected, "{line}");
    }
}

#[test]
fn special_files_are_recreated_only_when_recursive() {
    assert!(options("a b").copy_contents);
    assert!(!options("-r a b").copy_contents);
    assert!(options("-r --copy-contents a b").copy_contents);
}

#[test]
fn words_may_be_shortened() {
    assert_eq!(options("--sparse=al a b").sparse, Sparse::Always);
    assert_eq!(options("--sparse always --sparse=never a b").sparse, Sparse::Never);
    assert_eq!(options("--reflink a b").reflink, Reflink::Always);
    assert_eq!(options("--reflink=au a b").reflink, Reflink::Auto);
    assert_eq!(options("--direct a b").direct, Direct::Always);
    assert_eq!(options("--di=n a b").direct, Direct::Never);
    assert_eq!(options("a b").direct, Direct::Auto);
    assert!(options("--rec --verb --f --one a b").recursive);
    assert_eq!(request("-t=d a").operands.target_directory, Some("=d".into()));
    assert!(request("--st a b").operands.strip_trailing_slashes);
    assert_eq!(request("--target=d a").operands.target_directory, Some("d".into()));
}

#[test]
fn options_stand_anywhere_up_to_two_dashes() {
    let request = request("a -r b -v -- -x --zork -");
    assert!(request.options.recursive && request.options.verbose && !request.options.one_file_system);
    let names = ["a", "b", "-x", "--zork", "-"];
    assert_eq!(request.operands.paths, names.map(std::path::PathBuf::from));
}

#[test]
fn own_options_reach_the_runtime() {
    let request = request(
        "--backend=posix --route ring --ring-mode coop --workers 3 --queue-depth 64 --block-size 1M --progress \
         --stats=json --errors e --trace t a b",
    );
    let io = request.io;
    assert_eq!((io.backend, io.route, io.ring_mode), (Backend::Posix, RouteChoice::Ring, RingMode::Coop));
    assert_eq!((io.workers.get(), io.queue_depth, io.block_size), (3, 64, 1 << 20));
    assert_eq!((request.progress, request.stats), (Some(When::Always), Some(StatsFormat::Json)));
    assert_eq!((request.errors, request.trace), (Some("e".into()), Some("t".into())));
}

#[test]
fn wrong_options_are_told_in_one_line() {
    let table = [
        ("--zork a b", "unrecognized option '--zork'"),
        ("-k a b", "invalid option -- 'k'"),
        ("-rk a b", "invalid option -- 'k'"),
        ("-h a b", "invalid option -- 'h'"),
        ("-q a b", "invalid option -- 'q'"),
        ("--recursive=yes a b", "option '--recursive' doesn't allow an argument"),
        ("a b -rt", "option requires an argument -- 't'"),
        ("--zork=1 a b", "unrecognized option '--zork=1'"),
        (
            "--no a b",
            "option '--no' is ambiguous; possibilities: '--no-clobber' '--no-dereference' '--no-preserve' '--no-target-directory'",
        ),
        ("--bl=x a b", "invalid size 'x' for '--block-size': a number of bytes, or one with K or M"),
        ("a b --sparse", "option '--sparse' requires an argument"),
        ("-ls a b", "cannot make both hard and symbolic links"),
        ("--reflink --sparse=always a b", "--reflink can be used only with --sparse=auto"),
        ("-t a -t b c", "multiple target directories specified"),
        ("--preserve=context a b", "cannot preserve security context without an SELinux-enabled kernel"),
        (
            "--sparse=a a b",
            "ambiguous argument 'a' for '--sparse'\nValid arguments are:\n  - 'never'\n  - 'auto'\n  - 'always'",
        ),
        (
            "--reflink=x a b",
            "invalid argument 'x' for '--reflink'\nValid arguments are:\n  - 'auto'\n  - 'always'\n  - 'never'",
        ),
        (
            "--preserve= a b",
            "ambiguous argument '' for '--preserve'\nValid arguments are:\n  - 'mode'\n  - 'timestamps'\n  - 'ownership'\n  - 'links'\n  - 'context'\n  - 'xattr'\n  - 'all'",
        ),
        (
            "--re a b",
            "option '--re' is ambiguous; possibilities: '--recursive' '--remove-destination' '--reflink'",
        ),
        ("--d a b", "option '--d' is ambiguous; possibilities: '--debug' '--dereference'"),
        (
            "--direct=x a b",
            "invalid argument 'x' for '--direct'\nValid arguments are:\n  - 'auto'\n  - 'always'\n  - 'never'",
        ),
        (
            "--block-size 3X a b",
            "invalid size '3X' for '--block-size': a number of bytes, or one with K or M",
        ),
        ("--queue-depth 3 a b", "queue depth 3 is not allowed: it must be a power of two from 1 to 32768"),
    ];
    for (line, expected) in table {
        assert_eq!(refusal(line), expected, "{line}");
    }
}
