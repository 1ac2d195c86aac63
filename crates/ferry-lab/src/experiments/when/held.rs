//! Resources outside the work folder (mounts, loop devices, cgroups) that must not outlive the lab.
//!
//! A shell creates the resource, waits for the end of its input, and then removes it. The input ends with the lab,
//! however the lab ends, so even after SIGKILL nothing stays. The shell has its own process group, ignores Ctrl-C, and
//! continues if its output is no longer read.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::error::Failure;
use crate::message::reason;

const MADE: &str = "made\n";

/// A resource that is removed on drop or at the end of this process.
#[derive(Debug)]
pub(in crate::experiments) struct Held {
    what: &'static str,
    shell: Option<Child>,
}

impl Held {
    /// Runs the shell commands `make` now, and `undo` at the end or after a failure; `$1` and on are the arguments.
    ///
    /// # Errors
    /// [`Failure::Run`] with the shell's first line of output.
    pub(in crate::experiments) fn make<S: AsRef<OsStr>>(
        what: &'static str,
        make: &str,
        undo: &str,
        arguments: &[S],
    ) -> Result<Self, Failure> {
        let failed = |why: &str| Failure::Run(format!("cannot make {what}: {why}"));
        let script = format!(
            "trap '' INT TERM HUP PIPE; if {make}; then echo made; cat > /dev/null; {undo}; else {undo} 2> \
            /dev/null; exit 1; fi"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut shell = command.spawn().map_err(|error| failed(&reason(&error)))?;
        let mut said = String::new();
        if let Some(output) = shell.stdout.take() {
            // An unreadable answer counts as an empty one.
            BufReader::new(output).read_line(&mut said).ok();
        }
        if said == MADE {
            return Ok(Self { what, shell: Some(shell) });
        }
        let words = words_of(&mut shell);
        drop(Self { what, shell: Some(shell) });
        Err(failed(words.lines().next().unwrap_or("no reason was given")))
    }

    /// Removes the resource.
    ///
    /// # Errors
    /// [`Failure::Run`] with the shell's output.
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

/// Returns the error output of a shell that ends.
fn words_of(shell: &mut Child) -> String {
    let mut words = String::new();
    if let Some(mut said) = shell.stderr.take() {
        // An unreadable output counts as an empty one.
        said.read_to_string(&mut words).ok();
    }
    words
}

impl Drop for Held {
    /// The first error is reported, not this one. The end of its input makes the shell undo.
    fn drop(&mut self) {
        if let Some(mut shell) = self.shell.take() {
            drop(shell.stdin.take());
            shell.wait().ok();
        }
    }
}
