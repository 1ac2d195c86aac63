//! Limit programs beside the copiers: those that were asked for, or the best ones of a pilot.
//!
//! A pilot runs each likely program once and keeps two, because one run says little about programs that are equally
//! fast. They then take part in all rounds like the copiers, and the faster one by median is the limit.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::Path;

use ferry_tree::workload::Workload;

use super::extent::Extent;
use super::tools::{Tool, largest_file};
use crate::cache::sample::Sample;
use crate::cache::{self, State};
use crate::command::Stranger;
use crate::error::Failure;
use crate::experiments::copies::Times;
use crate::limits::{Calls, Kind, Limit};
use crate::memory;
use crate::message::quoted;
use crate::record::Value;
use crate::session::Session;
use crate::settings::Settings;

/// Name of the option.
pub(in crate::experiments) const OPTION: &str = "limits";
/// Number of programs that a pilot keeps.
const KEPT: usize = 2;

/// Limit programs that were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    /// The best of a pilot.
    Auto,
    /// All worth trying.
    All,
    These(Vec<Limit>),
}

fn wanted(settings: &Settings) -> Result<Wanted, Failure> {
    let names = settings.texts(OPTION);
    let named = |name: &String| {
        Limit::named(name).ok_or_else(|| {
            let name = quoted(name.as_ref());
            let why = "it must be auto, all, none, or names like limit-read-write-2x64K (see `ferry lab limits --help`)";
            Failure::Misuse(format!("invalid value {name} for '--{OPTION}'; {why}"))
        })
    };
    match names.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["auto"] => Ok(Wanted::Auto),
        ["all"] => Ok(Wanted::All),
        ["none"] => Ok(Wanted::These(Vec::new())),
        _ => names.iter().map(named).collect::<Result<_, _>>().map(distinct).map(Wanted::These),
    }
}

/// Removes repetitions: a program has several names, as its usual block size may be left out.
fn distinct(limits: Vec<Limit>) -> Vec<Limit> {
    let mut names = HashSet::new();
    limits.into_iter().filter(|limit| names.insert(limit.name())).collect()
}

/// Checks the option's value.
pub(in crate::experiments) fn check(settings: &Settings) -> Result<(), Failure> {
    wanted(settings).map(drop)
}

fn kind(workload: &Workload) -> Kind {
    Kind::of(workload.file_count(), largest_file(workload))
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

fn likely(workload: &Workload, state: State) -> Vec<Limit> {
    Limit::likely(kind(workload), state == State::Cold, processors())
}

/// Returns the number of programs in all rounds, and of those that run once in a pilot.
pub(super) fn count(
    settings: &Settings,
    workload: &Workload,
    state: State,
) -> Result<(usize, usize), Failure> {
    Ok(match wanted(settings)? {
        Wanted::Auto => (KEPT, likely(workload, state).len()),
        Wanted::All => (Limit::all(kind(workload), state == State::Cold, processors()).len(), 0),
        Wanted::These(limits) => (limits.len(), 0),
    })
}

/// Key of the settled value: the programs that a pilot has kept.
fn key(tree: &str, state: State) -> String {
    format!("{OPTION}/{tree}/{}", state.name())
}

/// Returns the programs for a tree in a cache state, or `None` if they need a pilot.
pub(super) fn known(
    session: &Session<'_>,
    tree: &str,
    workload: &Workload,
    state: State,
) -> Result<Option<Vec<Limit>>, Failure> {
    Ok(match wanted(session.settings())? {
        Wanted::These(limits) => Some(limits),
        Wanted::All => Some(Limit::all(kind(workload), state == State::Cold, processors())),
        Wanted::Auto => match session.settled(&key(tree, state)) {
            Some(Value::Texts(names)) => Some(names.iter().filter_map(|name| Limit::named(name)).collect()),
            Some(Value::Flag(_) | Value::Number(_) | Value::Text(_) | Value::Numbers(_)) | None => None,
        },
    })
}

/// Runs each likely program once and settles the fastest. A program that fails is noted and left out. If all fail, nothing is
/// settled, so that a resumed run tries again.
pub(super) fn pilot(
    session: &mut Session<'_>,
    (tree, workload): (&str, &Workload),
    (source, sample, bytes): (&Path, &Sample, u64),
    state: State,
    shares_blocks: bool,
) -> Result<Vec<Limit>, Failure> {
    let ferry = session.ferry().to_owned();
    let mut timed = Vec::new();
    let usable = |limit: &Limit| !(shares_blocks && limit.calls == Calls::CopyRange);
    for limit in likely(workload, state).into_iter().filter(usable) {
        session.step(&format!("{tree}, {}: trying {}", state.name(), limit.name()));
        let target = session.work().join("pilot");
        cache::prepare(state, sample, std::slice::from_ref(&ferry))?;
        memory::claim(2 * bytes, session.stop());
        let times = Times::take(&command(session, &limit), source, &target, session.stop());
        if target.symlink_metadata().is_ok() {
            ferry_tree::remove::remove(&target)?;
        }
        match times {
            Ok(times) => timed.push((limit, times.returned)),
            Err(Failure::Run(why)) => session.note(&format!("{} is left out: {why}", limit.name())),
            Err(failure) => return Err(failure),
        }
    }
    timed.sort_by(|one, other| one.1.total_cmp(&other.1));
    timed.truncate(KEPT);
    let kept: Vec<Limit> = timed.into_iter().map(|(limit, _)| limit).collect();
    let names = kept.iter().map(Limit::name).collect();
    if !kept.is_empty() {
        session.settle(&key(tree, state), Value::Texts(names));
    }
    Ok(kept)
}

fn command(session: &Session<'_>, limit: &Limit) -> Stranger {
    let name = limit.name();
    let mut words = vec!["lab", "strategy", name.as_str(), "{source}", "{target}"];
    if Extent::of(session.settings()) == Extent::Archive {
        words.push("--preserve");
    }
    Stranger::new(session.ferry(), &words)
}

/// A limit program as one of the copiers.
pub(super) fn tool(session: &Session<'_>, limit: &Limit) -> Tool {
    Tool {
        limit: Some(*limit),
        version_counts: false,
        parameters: vec![("limit", limit.name().as_str().into())],
        ..Tool::plain(&limit.name(), command(session, limit))
    }
}
