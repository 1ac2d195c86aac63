//! `ferry tune --show`: lists profiles: their effect on copies first, then their figures and age.

use std::path::{Path, PathBuf};

use ferry_lab::units::{figure, size};
use ferry_lab::{Failure, machine};
use ferry_tune::measure::folder_of;
use ferry_tune::store::{self, Stored};
use ferry_tune::{Place, Profile, age_seconds, kernel};

use super::curve::{enough, random_read, sequential_read};
use super::effect::Effect;
use super::page::Page;
use crate::layout;
use crate::names::TUNE as NAME;
use crate::output::Output;
use crate::quote::quote;
use crate::units::counted;

#[cfg(test)]
mod tests;

/// Shows the profile of each path's filesystem, or all profiles; returns the exit code.
pub(super) fn show(paths: &[PathBuf], output: &Output) -> Result<u8, Failure> {
    let shown = if paths.is_empty() {
        all()
    } else {
        paths.iter().map(|path| of(path)).collect::<Result<Vec<_>, Failure>>()?
    };
    if shown.is_empty() {
        output.line("There are no profiles. `ferry tune PATH` makes one.");
    }
    for one in &shown {
        match one {
            Ok(text) => output.line(text),
            Err(why) => output.error(&format!("{NAME}: {why}")),
        }
    }
    Ok(u8::from(shown.iter().any(Result::is_err)))
}

/// Description of a profile, or the reason why it can't be used.
type Description = Result<String, String>;

fn all() -> Vec<Description> {
    let one = |(path, read): (PathBuf, Result<Profile, store::Refused>)| match read {
        Ok(profile) => Ok(here(&path, &profile, unused(&profile).as_deref())),
        Err(why) => Err(refused(&path, &why)),
    };
    store::all(&store::folders()).into_iter().map(one).collect()
}

fn of(path: &Path) -> Result<Description, Failure> {
    let place = place_of(&folder_of(path)?)?;
    Ok(match store::find(&store::folders(), &place.identity) {
        Ok(Some(Stored { path, profile })) => {
            Ok(here(&path, &profile, profile.stale(&place, &kernel()).as_deref()))
        }
        Ok(None) => Err(none(path, &place)),
        Err((file, why)) => Err(refused(&file, &why)),
    })
}

/// Says that a filesystem has no profile, and how to make one.
pub(super) fn none(path: &Path, place: &Place) -> String {
    let (path, identity) = (quote(path), &place.identity);
    format!("there is no profile of the filesystem with {path}, {identity}; `ferry tune {path}` measures it")
}

pub(super) fn refused(file: &Path, why: &store::Refused) -> String {
    format!("profile {} is not used: {why}", quote(file))
}

pub(super) fn place_of(folder: &Path) -> Result<Place, Failure> {
    Place::of(folder).map_err(|error| Failure::file("open", folder, &error))
}

/// Returns the reason why copies do not use a profile. Looks for where its filesystem is mounted.
fn unused(profile: &Profile) -> Option<String> {
    let points = machine::mount_points(&profile.place.filesystem, &profile.place.source);
    let places = points.iter().filter_map(|point| Place::of(point).ok());
    match places.into_iter().find(|place| place.identity == profile.place.identity) {
        Some(place) => profile.stale(&place, &kernel()),
        None => Some(format!("its filesystem is not mounted from {}", profile.place.source)),
    }
}

fn here(file: &Path, profile: &Profile, unused: Option<&str>) -> String {
    let age = age_seconds(&profile.about.date).map_or_else(|| "on an unknown date".to_owned(), age);
    text(file, profile, &age, unused, &Effect::here(profile), Page::of_standard_output())
}

/// Formats a profile: its effect on copies, or the reason why they do not use it, then its figures and origin.
fn text(
    file: &Path,
    profile: &Profile,
    age: &str,
    unused: Option<&str>,
    effect: &Effect,
    page: Page,
) -> String {
    let Profile { about, place, direct, .. } = profile;
    let copies = format!("Copies from {} on {}", place.filesystem, place.source);
    let answer = match unused {
        None => format!("{copies} {}.", effect.words()),
        Some(why) => format!("{copies} do not use the profile: {why}."),
    };
    let quick = if about.quick { " --quick" } else { "" };
    let mut lines = Vec::new();
    match direct {
        Some(direct) => lines.extend([
            format!(
                "reads {}, writes {}, blocks of {}, {} random reads of 4 KiB",
                figure(sequential_read(direct), "B/s"),
                figure(direct.sequential_write.median * 1e6, "B/s"),
                size(direct.best_block),
                figure(random_read(direct), "1/s"),
            ),
            format!("a depth of {}", enough(direct)),
        ]),
        None => lines.push("no direct I/O".to_owned()),
    }
    lines.push(format!("measured {age} ({}) by {}{quick}, kernel {}", about.date, about.tool, about.kernel));
    lines.push(format!("{}, {}", place.device, place.identity));
    let mut out = page.wrapped(&answer, 2);
    for line in lines {
        out += &format!("\n{}", layout::wrapped(" ", &line, 4, page.columns));
    }
    // A path is not broken.
    out + &format!("\n  kept in {}", quote(file))
}

/// Formats `3 hours ago`.
fn age(seconds: u64) -> String {
    let units = [(86_400, "day", "days"), (3600, "hour", "hours"), (60, "minute", "minutes")];
    let unit = units.into_iter().find(|(length, ..)| seconds >= *length);
    let (length, one, many) = unit.unwrap_or((1, "second", "seconds"));
    format!("{} ago", counted(seconds / length, one, many))
}
