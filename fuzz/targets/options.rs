//! Command lines: whatever they are, they are understood, or refused in so many words with the documented exit code.
#![no_main]

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use ferry::fuzzing::{Outcome, understand};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|data: &[u8]| -> Corpus {
    // An argument ends at a NUL, as the kernel has it.
    let mut arguments: Vec<OsString> =
        data.split(|byte| *byte == 0).map(|argument| OsString::from_vec(argument.to_vec())).collect();
    match understand(&arguments) {
        Outcome::Copy { mut operands, options } => {
            assert!(operands.iter().all(|operand| arguments.contains(operand)), "{operands:?}");
            // What follows `--` is an operand, and changes nothing else.
            if !arguments.contains(&"--".into()) {
                arguments.extend(["--", "-r"].map(OsString::from));
                operands.push("-r".into());
                assert_eq!(understand(&arguments), Outcome::Copy { operands, options }, "{arguments:?}");
            }
            Corpus::Keep
        }
        // Making a help of all experiments takes a thousand times as long as reading an option.
        Outcome::Text => Corpus::Reject,
        Outcome::Other => Corpus::Keep,
        Outcome::Misuse { message, code } => {
            assert_eq!(code, if is_cp(&arguments) { 1 } else { 2 }, "{message}");
            // As GNU cp's, a word that is not known is followed by those that are.
            let (told, known) =
                message.split_once("\nValid arguments are:\n").unwrap_or((&message, "  - none"));
            assert!(!told.is_empty() && !told.contains(char::is_control), "{message:?}");
            let is_word = |line: &str| line.starts_with("  - ") && !line.contains(char::is_control);
            assert!(known.lines().all(is_word), "{message:?}");
            Corpus::Keep
        }
    }
});

/// Whether cp's exit codes hold: called as cp, or by `ferry cp`.
fn is_cp(arguments: &[OsString]) -> bool {
    let name = arguments.first().and_then(|name| Path::new(name).file_name());
    name == Some(OsStr::new("cp")) || arguments.get(1).is_some_and(|command| command == "cp")
}
