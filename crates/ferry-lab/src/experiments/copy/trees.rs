//! The trees that are copied: presets, with fewer levels if all runs would take longer than the limit.
//!
//! The estimate is measured: one copy by cp in each cache state, with all other work of a run. Leaving out a level
//! changes the number of files. Their sizes stay alike if all files of the preset are alike.

use std::path::Path;
use std::time::Instant;

use ferry_tree::workload::{Preset, Workload};

use crate::cache::sample::Sample;
use crate::cache::{self, State};
use crate::error::Failure;
use crate::experiments::copies::{self, Times};
use crate::experiments::tree;
use crate::needs::Need;
use crate::record::Value;
use crate::record::warning::{Warning, WarningKind};
use crate::session::Session;
use crate::settings::Settings;
use crate::units::{plain, real, real_count};
use crate::warnings::counted;

use super::limits;
use super::tools::Tool;

/// Fewer files than this say little but how long a program takes to start.
const LEAST_FILES: u64 = 100;

/// Name of the settled value: each tree's number of levels, in the order requested. The first session settles it.
const LEVELS: &str = "levels";

/// A tree and its name.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::experiments) struct Tree {
    pub(super) name: String,
    pub(super) workload: Workload,
}

impl Tree {
    /// Number of levels by which a tree with this many is smaller than its preset.
    pub(super) fn fewer_levels(name: &str, levels: u64) -> u64 {
        let preset = name.parse::<Preset>().map(|preset| preset.workload(0).depth);
        preset.map_or(0, |depth| depth.saturating_sub(levels))
    }

    fn less(&self) -> Option<Workload> {
        let less = Workload { depth: self.workload.depth.checked_sub(1)?, ..self.workload.clone() };
        (self.workload.fanout > 1 && less.file_count() >= LEAST_FILES).then_some(less)
    }
}

/// Those asked for.
pub(in crate::experiments) fn all(settings: &Settings, seed: u64) -> Result<Vec<Tree>, Failure> {
    let fewer = settings.number("fewer-levels");
    let tree = |name: &String| {
        let preset = name.parse::<Preset>().map_err(|error| Failure::Misuse(error.to_string()))?;
        let workload = preset.workload(seed);
        let depth = workload.depth.saturating_sub(fewer);
        let has_programs =
            settings.values().contains_key("programs") && settings.texts("programs") != ["none"];
        if workload.symlink_percent > 0 && has_programs {
            let why = "the documents' programs copy no links: add `--programs none`";
            return Err(Failure::Misuse(format!("'{name}' has symbolic links, and {why}")));
        }
        Ok(Tree { name: name.clone(), workload: Workload { depth, ..workload } })
    };
    settings.texts("trees").iter().map(tree).collect()
}

/// Returns the needs of the trees and cache states that were asked for.
pub(in crate::experiments) fn needs(settings: &Settings) -> Result<Vec<Need>, Failure> {
    let mut needs = Vec::new();
    for asked in all(settings, 0)? {
        let Need::Space { bytes, entries } = tree::space(&asked.workload) else { continue };
        // The source and a copy at least.
        needs.push(Need::Space { bytes: bytes.saturating_mul(2), entries: entries.saturating_mul(2) });
    }
    if settings.texts("states") == ["cold"] {
        needs.push(Need::DropCaches);
    }
    Ok(needs)
}

/// The trees with as many levels as fit into the time; as many as were settled where the record was begun already.
pub(in crate::experiments) fn fitting(
    session: &mut Session<'_>,
    asked: &[Tree],
    states: &[State],
    tools: &[Tool],
) -> Result<Vec<Tree>, Failure> {
    let mut trees = asked.to_vec();
    if let Some(Value::Numbers(levels)) = session.settled(LEVELS) {
        for (tree, levels) in trees.iter_mut().zip(levels) {
            tree.workload.depth = *levels;
        }
    } else if session.settings().number("minutes") > 0 {
        trees = tried(session, trees, states, tools)?;
    }
    // Before the first run: whatever it is interrupted in, all trees stay what they are.
    session.settle(LEVELS, Value::Numbers(trees.iter().map(|tree| tree.workload.depth).collect()));
    for (asked, tree) in asked.iter().zip(&trees).filter(|(asked, tree)| asked.workload != tree.workload) {
        let levels = asked.workload.depth.saturating_sub(tree.workload.depth);
        let [all, left] = [asked, tree].map(|tree| plain(real(tree.workload.file_count())));
        let levels = counted(usize::try_from(levels).unwrap_or(usize::MAX), "level");
        let message = format!(
            "'{}' has {levels} fewer ({left} of {all} files), because the whole tree would take too long",
            tree.name
        );
        session.warn(Warning::note(WarningKind::Experiment, message, "use --minutes 0 for the whole trees"));
    }
    Ok(trees)
}

/// Tries each tree, and takes levels from those that take too long.
fn tried(
    session: &Session<'_>,
    trees: Vec<Tree>,
    states: &[State],
    tools: &[Tool],
) -> Result<Vec<Tree>, Failure> {
    let mut timed = Vec::new();
    for tree in trees {
        let seconds = seconds(session, &tree, states, tools)?;
        timed.push((tree, seconds));
    }
    let sum = |timed: &[(Tree, f64)]| timed.iter().map(|(_, seconds)| seconds).sum::<f64>();
    let whole = sum(&timed);
    shrink(&mut timed, real(session.settings().number("minutes")) * 60.0);
    let fitted = sum(&timed);
    let rest = if fitted < whole {
        format!("; the whole trees would take {}", duration(whole))
    } else {
        String::new()
    };
    session.note(&format!("copying will take about {}{rest}", duration(fitted)));
    Ok(timed.into_iter().map(|(tree, _)| tree).collect())
}

/// Takes levels from the tree that takes longest until all fit, or none can have less.
pub(super) fn shrink(trees: &mut [(Tree, f64)], budget: f64) {
    while trees.iter().map(|(_, seconds)| seconds).sum::<f64>() > budget {
        let can_shrink = trees.iter_mut().filter(|(tree, _)| tree.less().is_some());
        let Some((tree, seconds)) = can_shrink.max_by(|one, other| one.1.total_cmp(&other.1)) else { return };
        let Some(less) = tree.less() else { return };
        *seconds *= real(less.file_count()) / real(tree.workload.file_count());
        tree.workload = less;
    }
}

/// Estimates the seconds that all runs of a tree take, from one run of cp in each state.
fn seconds(session: &Session<'_>, tree: &Tree, states: &[State], tools: &[Tool]) -> Result<f64, Failure> {
    session.step(&format!("trying the tree {}", tree.name));
    let Some(cp) = tools.iter().find(|tool| tool.name == "cp") else { return Ok(0.0) };
    let (source, target) = (session.work().join("tried"), session.work().join("tried-copy"));
    tree::make(&tree.workload, &source, tree::threads(), session.stop())?;
    let sample = Sample::of(&source, session.seed())?;
    let suited = tools.iter().filter(|tool| tool.suits(&tree.workload)).count();
    let mut sum = 0.0;
    for state in states.iter().filter(|state| copies::no_cache(session, **state).is_none()) {
        let runs = session.record().runs + if *state == State::Cold { 0 } else { session.record().warm_ups };
        let (limits, tried) = limits::count(session.settings(), &tree.workload, *state)?;
        let all = real_count(suited + limits) * real(runs) + real_count(tried);
        sum += once(&source, &target, *state, &sample, cp, session)? * all;
    }
    ferry_tree::remove::remove(&source)?;
    Ok(sum)
}

/// One run with all that belongs to it: bringing the cache into its state, copying, comparing, removing.
fn once(
    source: &Path,
    target: &Path,
    state: State,
    sample: &Sample,
    cp: &Tool,
    session: &Session<'_>,
) -> Result<f64, Failure> {
    let start = Instant::now();
    cache::prepare(state, sample, &[])?;
    Times::take(&cp.command, source, target, session.stop())?;
    copies::same(source, target)?;
    if state == State::Cold {
        // Copies are removed after others' caches were dropped, theirs with them.
        cache::drop_caches()?;
    }
    ferry_tree::remove::remove(target)?;
    Ok(start.elapsed().as_secs_f64())
}

/// `50 s`, `4 minutes`.
fn duration(seconds: f64) -> String {
    if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.0} minutes", (seconds / 60.0).ceil()) }
}
