//! Things outside of the work folder (mounts, loop devices, cgroups) that must not outlive the lab.
//!
//! Each is made by a shell that then waits for the end of its input and undoes it. The input ends with the lab, however
//! that ends: so nothing is left even when it is killed. The shell has a process group of its own, is not stopped by
//! Ctrl-C, and goes on when nobody reads any more that it has made something.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::error::{Failure, reason};

const MADE: &str = "made\n";

/// Something that is undone when it is dropped, or when this process ends.
#[derive(Debug)]
pub(in crate::experiments) struct Held {
    what: &'static str,
    shell: Option<Child>,
}

impl Held {
    /// Runs the shell commands `make`, and `undo` at the end or if they fail; `$1` and on are the arguments.
    ///
    /// # Errors
    /// [`Failure::Run`] with the shell's first words.
    pub(in crate::experiments) fn make<S: AsRef<OsStr>>(
        what: &'static str,
        make: &str,
        undo: &str,
        arguments: &[S],
    ) -> Result<Self, Failure> {
        let failed = |why: &str| Failure::Run(format!("{what} can't be made: {why}"));
        let script = format!(
            "trap '' INT TERM HUP PIPE; if {make}; then echo made; cat > /dev/null; {undo}; else {undo} 2> /dev/null; exit 1; fi"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut shell = command.spawn().map_err(|error| failed(&reason(&error)))?;
        let mut said = String::new();
        if let Some(output) = shell.stdout.take() {
            // What can't be read was not said.
            BufReader::new(output).read_line(&mut said).ok();
        }
        if said == MADE {
            return Ok(Self { what, shell: Some(shell) });
        }
        let words = words_of(&mut shell);
        drop(Self { what, shell: Some(shell) });
        Err(failed(words.lines().next().unwrap_or("no reason was given")))
    }

    /// Undoes it, and says so if that fails.
    ///
    /// # Errors
    /// [`Failure::Run`] with the shell's words.
    pub(in crate::experiments) fn undo(mut self) -> Result<(), Failure> {
        let Some(mut shell) = self.shell.take() else { return Ok(()) };
        drop(shell.stdin.take());
        let words = words_of(&mut shell);
        match shell.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(_) | Err(_) => Err(Failure::Run(format!("{} can't be removed: {}", self.what, words.trim()))),
        }
    }
}

/// What a shell that ends has said.
fn words_of(shell: &mut Child) -> String {
    let mut words = String::new();
    if let Some(mut said) = shell.stderr.take() {
        // What can't be read was not said.
        said.read_to_string(&mut words).ok();
    }
    words
}

impl Drop for Held {
    /// After an error the error is what is told. The end of its input is the shell's sign to undo.
    fn drop(&mut self) {
        if let Some(mut shell) = self.shell.take() {
            drop(shell.stdin.take());
            shell.wait().ok();
        }
    }
}
