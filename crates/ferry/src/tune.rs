//! `ferry tune`: measures mounts, keeps the figures as profiles, and shows and checks profiles.

mod check;
mod curve;
mod effect;
mod options;
mod page;
#[cfg(test)]
mod sample;
mod show;
mod text;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ferry_lab::Failure;
use ferry_lab::record::store::{place_of, write_atomically};
use ferry_lab::stop::Stop;
use ferry_tune::measure::{Scale, folder_of, measure};
use ferry_tune::store::{NotKept, may_write, write};
use ferry_tune::{Place, Profile};
use rustix::fs::Mode;

use self::effect::Effect;
pub(crate) use self::options::{MANUAL, OPTIONS, Request, parse};
use self::page::Page;
use crate::lab::ProgressLine;
use crate::names::TUNE as NAME;
use crate::output::Output;
use crate::quote::quote;

/// Exit code if the figures contradict each other and are not kept.
const DISTRUSTED: u8 = 3;

/// Measures each path's mount, or shows or checks its profile. A failure does not end the run.
pub(crate) fn run(request: &Request) -> ExitCode {
    let output = Output::new();
    let fail = |text: &str, code: u8| {
        output.error(&format!("{NAME}: {text}"));
        code
    };
    let stop = match Stop::on_signals() {
        Ok(stop) => stop,
        Err(failure) => return ExitCode::from(fail(&failure.to_string(), failure.exit_code())),
    };
    if request.show {
        let shown = show::show(&request.paths, &output);
        let code = shown.unwrap_or_else(|failure| fail(&failure.to_string(), failure.exit_code()));
        return finish(&output, code);
    }
    let mut code = 0;
    let mut so_far = match request.output.as_deref().map(place_of).transpose() {
        Ok(file) => SoFar { known: Vec::new(), file, text: String::new() },
        Err(failure) => return ExitCode::from(fail(&failure.to_string(), failure.exit_code())),
    };
    for path in &request.paths {
        let taken = if request.check {
            check::check(path, request.quick, &output, &stop)
        } else {
            measured(path, request, &mut so_far, &output, &stop)
        };
        let now = match taken {
            Ok(code) => code,
            Err(failure) => fail(&failure.to_string(), failure.exit_code()),
        };
        // A failure takes precedence over an untrusted figure.
        code = if code == 0 || now == 1 { now } else { code };
        if stop.is_set() {
            code = Failure::Interrupted.exit_code();
            break;
        }
    }
    finish(&output, code)
}

fn finish(output: &Output, code: u8) -> ExitCode {
    match output.finish() {
        Ok(()) => ExitCode::from(code),
        Err(error) => {
            output.error(&format!("{NAME}: write error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Mounts that were measured.
struct SoFar {
    /// Filesystem and path of each.
    known: Vec<(String, PathBuf)>,
    /// File of `--output`.
    file: Option<PathBuf>,
    /// Text of that file.
    text: String,
}

impl SoFar {
    /// Prints the figures of one more mount, or adds them to the file.
    fn tell(&mut self, figures: &str, output: &Output) -> Result<(), Failure> {
        let Some(file) = &self.file else {
            output.line(figures);
            return Ok(());
        };
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text += &format!("{gap}{figures}\n");
        write_atomically(file, self.text.as_bytes(), false)
    }
}

/// Measures one mount, prints the figures and keeps them; returns the exit code.
fn measured(
    path: &Path,
    request: &Request,
    so_far: &mut SoFar,
    output: &Output,
    stop: &Stop,
) -> Result<u8, Failure> {
    let folder = folder_of(path)?;
    let place = Place::of(&folder).map_err(|error| Failure::file("open", &folder, &error))?;
    if let Some((_, earlier)) = so_far.known.iter().find(|(identity, _)| *identity == place.identity) {
        let (path, earlier) = (quote(path), quote(earlier));
        output.error(&format!("{NAME}: skipping {path}: it is on the same filesystem as {earlier}"));
        return Ok(0);
    }
    // Other users must be able to read what root keeps, and the work directory must be accessible.
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    may_write().map_err(|why| Failure::Run(why.to_string()))?;
    let shown = ProgressLine::new(output);
    let outcome = measure(&folder, if request.quick { &Scale::QUICK } else { &Scale::FULL }, &shown, stop);
    shown.end();
    let profile = outcome?;
    so_far.known.push((place.identity, path.to_owned()));
    let figures = if request.json {
        let json = serde_json::to_string_pretty(&profile);
        json.map_err(|error| Failure::Run(format!("cannot format the profile as JSON: {error}")))?
    } else {
        let page = if so_far.file.is_some() { Page::of_file() } else { Page::of_standard_output() };
        text::tables(&folder, &profile, page).trim_end().to_owned()
    };
    let told = so_far.tell(&figures, output);
    let code = keep(&profile, request, output)?;
    told.map(|()| code)
}

/// Keeps the profile where copies look for it, and prints its path and its effect on copies.
fn keep(profile: &Profile, request: &Request, output: &Output) -> Result<u8, Failure> {
    // With --json, standard output is for programs, and with --output it stays empty.
    let is_aside = request.json || request.output.is_some();
    let tell = |line: &str| if is_aside { output.error(line) } else { output.line(line) };
    let copies = |words: &str| {
        let sentence = format!("Copies from this filesystem will {words}.");
        tell(&Page::of_standard_output().wrapped(&sentence, 0));
    };
    match write(profile) {
        Ok(path) => {
            tell(&format!("kept in {}", quote(&path)));
            copies(&format!("now {}", Effect::here(profile).words()));
            Ok(0)
        }
        Err(NotKept::Implausible(why)) => {
            output.error(&format!(
                "{NAME}: the profile is not kept, because its figures are implausible: {why}"
            ));
            copies("run as before");
            Ok(DISTRUSTED)
        }
        Err(why) => Err(Failure::Run(why.to_string())),
    }
}
