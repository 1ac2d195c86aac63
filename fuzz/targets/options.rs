//! Command lines: each is accepted, or refused with a message and the documented exit code.
#![no_main]

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use ferry::fuzzing::{Outcome, understand};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|data: &[u8]| -> Corpus {
    // Arguments end at a NUL, as those of execve(2) do.
    let mut arguments: Vec<OsString> =
        data.split(|byte| *byte == 0).map(|argument| OsString::from_vec(argument.to_vec())).collect();
    match understand(&arguments) {
        Outcome::Copy { mut operands, options } => {
            assert!(operands.iter().all(|operand| arguments.contains(operand)), "{operands:?}");
            // An argument after `--` is an operand, and changes nothing else.
            if !arguments.contains(&"--".into()) {
                arguments.extend(["--", "-r"].map(OsString::from));
                operands.push("-r".into());
                assert_eq!(understand(&arguments), Outcome::Copy { operands, options }, "{arguments:?}");
            }
            Corpus::Keep
        }
        // Rendering the help of all experiments takes a thousand times as long as reading an option.
        Outcome::Text => Corpus::Reject,
        Outcome::Other => Corpus::Keep,
        Outcome::Misuse { message, code } => {
            assert_eq!(code, if is_cp(&arguments) { 1 } else { 2 }, "{message}");
            // An unknown word is followed by the valid ones, as in GNU cp.
            let (fault, known) =
                message.split_once("\nValid arguments are:\n").unwrap_or((&message, "  - none"));
            assert!(!fault.is_empty() && !fault.contains(char::is_control), "{message:?}");
            let is_word = |line: &str| line.starts_with("  - ") && !line.contains(char::is_control);
            assert!(known.lines().all(is_word), "{message:?}");
            Corpus::Keep
        }
    }
});

/// Returns true where cp's exit codes apply: invoked as `cp` or as `ferry cp`.
fn is_cp(arguments: &[OsString]) -> bool {
    let name = arguments.first().and_then(|name| Path::new(name).file_name());
    name == Some(OsStr::new("cp")) || arguments.get(1).is_some_and(|command| command == "cp")
}
