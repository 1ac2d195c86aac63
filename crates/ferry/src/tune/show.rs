//! `ferry tune --show`: lists profiles, their age, and whether copies use them.

use std::path::{Path, PathBuf};

use ferry_lab::units::{figure, size};
use ferry_lab::{Failure, machine};
use ferry_tune::measure::folder_of;
use ferry_tune::store;
use ferry_tune::{Place, Profile, age_seconds, kernel};

use crate::names::TUNE as NAME;
use crate::output::Output;
use crate::quote::quote;
use crate::units::counted;

/// Shows the profile of each path's filesystem, or all profiles; returns the exit code.
pub(super) fn show(paths: &[PathBuf], output: &Output) -> Result<u8, Failure> {
    let shown = if paths.is_empty() {
        all()
    } else {
        paths.iter().map(|path| of(path)).collect::<Result<Vec<_>, Failure>>()?
    };
    if shown.is_empty() {
        output.line("there are no profiles");
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
        Ok(profile) => Ok(text(&path, &profile, &mounted(&profile))),
        Err(why) => Err(refused(&path, &why)),
    };
    store::all(&store::folders()).into_iter().map(one).collect()
}

fn of(path: &Path) -> Result<Description, Failure> {
    let place = place_of(&folder_of(path)?)?;
    Ok(match store::find(&store::folders(), &place.identity) {
        Ok(Some(stored)) => Ok(text(&stored.path, &stored.profile, &is_in_force(&stored.profile, &place))),
        Ok(None) => {
            Err(format!("there is no profile of the filesystem with {}, {}", quote(path), place.identity))
        }
        Err((file, why)) => Err(refused(&file, &why)),
    })
}

pub(super) fn refused(file: &Path, why: &store::Refused) -> String {
    format!("profile {} is not used: {why}", quote(file))
}

pub(super) fn place_of(folder: &Path) -> Result<Place, Failure> {
    Place::of(folder).map_err(|error| Failure::file("open", folder, &error))
}

fn is_in_force(profile: &Profile, place: &Place) -> String {
    match profile.stale(place, &kernel()) {
        None => "in force".to_owned(),
        Some(why) => format!("not in force: {why}"),
    }
}

/// Status of a profile whose mount point is unknown: looks for where its filesystem is mounted.
fn mounted(profile: &Profile) -> String {
    let points = machine::mount_points(&profile.place.filesystem, &profile.place.source);
    let places = points.iter().filter_map(|point| Place::of(point).ok());
    match places.into_iter().find(|place| place.identity == profile.place.identity) {
        Some(place) => is_in_force(profile, &place),
        None => format!("not in force: its filesystem is not mounted from {}", profile.place.source),
    }
}

fn text(file: &Path, profile: &Profile, force: &str) -> String {
    let Profile { about, place, direct, .. } = profile;
    let age = age_seconds(&about.date).map_or_else(|| "on an unknown date".to_owned(), age);
    let quick = if about.quick { " --quick" } else { "" };
    let direct = match direct {
        Some(direct) => format!(
            "reads {}, writes {}, {} random reads of 4 KiB with {} in flight (enough), blocks of {}",
            figure(direct.sequential_read.median * 1e6, "B/s"),
            figure(direct.sequential_write.median * 1e6, "B/s"),
            figure(direct.random_read.median, "1/s"),
            direct.enough_depth,
            size(direct.best_block),
        ),
        None => "no direct I/O".to_owned(),
    };
    format!(
        "{}\n  {} on {} ({}), {}\n  measured {age} ({}) by {}{quick}, kernel {}\n  {force}\n  {direct}",
        quote(file),
        place.filesystem,
        place.source,
        place.device,
        place.identity,
        about.date,
        about.tool,
        about.kernel,
    )
}

/// Formats `3 hours ago`.
fn age(seconds: u64) -> String {
    let units = [(86_400, "day", "days"), (3600, "hour", "hours"), (60, "minute", "minutes")];
    let unit = units.into_iter().find(|(length, ..)| seconds >= *length);
    let (length, one, many) = unit.unwrap_or((1, "second", "seconds"));
    format!("{} ago", counted(seconds / length, one, many))
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn ages_are_told_in_their_largest_unit() {
        let ages =
            [(0, "0 seconds"), (59, "59 seconds"), (60, "1 minute"), (7300, "2 hours"), (172_800, "2 days")];
        for (seconds, words) in ages {
            assert_eq!(age(seconds), format!("{words} ago"));
        }
    }
}
