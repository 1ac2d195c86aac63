//! `ferry lab strategy`: copies with one program, strategy or limit program in its own process, so that the lab can
//! time it.
//!
//! The help does not list this command.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ferry_io::{RouteChoice, Stats};
use ferry_lab::limits::{self, Limit};
use ferry_lab::programs::{self, Program, ProgramOptions};
use ferry_lab::strategies;

use crate::arguments::Effect::{Switch, Value};
use crate::arguments::{self, Definition, Read, Usage, option};
use crate::names::LAB;
use crate::output::Output;
use crate::quote::quote;
use crate::values::{choice, number, size};

pub(super) const NAME: &str = "strategy";

pub(crate) struct Strategy {
    method: Method,
    source: PathBuf,
    target: PathBuf,
}

enum Method {
    Program(ProgramOptions),
    Bytes(strategies::StrategyOptions),
    Limit(Limit),
}

struct Draft {
    block_bytes: usize,
    depth: usize,
    max_fibers: Option<usize>,
    route: RouteChoice,
    preserves: bool,
    prints_counters: bool,
}

const OPTIONS: &[Definition<Draft>] = &[
    option(
        "block-size",
        "Set the size of a block",
        Value("SIZE", |d, text| {
            d.block_bytes = size("--block-size", text)?;
            Ok(())
        }),
    ),
    option(
        "depth",
        "Limit the number of requests in flight",
        Value("N", |d, text| {
            d.depth = number::<std::num::NonZeroUsize>("--depth", text)?.get();
            Ok(())
        }),
    ),
    option(
        "max-fibers",
        "Limit the number of fibers",
        Value("N", |d, text| {
            d.max_fibers = Some(number::<std::num::NonZeroUsize>("--max-fibers", text)?.get());
            Ok(())
        }),
    ),
    option(
        "route",
        "Select where operations run",
        Value("ROUTE", |d, text| {
            d.route = choice("--route", text, &[("ring", RouteChoice::Ring), ("auto", RouteChoice::Auto)])?;
            Ok(())
        }),
    ),
    option("preserve", "Keep attributes (limit programs)", Switch(|d| d.preserves = true)),
    option(
        "stats",
        "Print the counters as JSON (the documents' programs)",
        Switch(|d| d.prints_counters = true),
    ),
];

pub(super) fn parse(rest: &[OsString]) -> Result<Strategy, Usage> {
    let mut draft = Draft {
        block_bytes: 4096,
        depth: 1,
        max_fibers: None,
        route: RouteChoice::Ring,
        preserves: false,
        prints_counters: false,
    };
    let operands = match arguments::read(OPTIONS, rest, &mut draft)? {
        Read::Operands(operands) => operands,
        Read::Print(_) => Vec::new(),
    };
    let [name, source, target] = <[OsString; 3]>::try_from(operands)
        .map_err(|_| Usage::plain("a strategy takes a name, a source and a target".to_owned()))?;
    let known = name.to_str().and_then(|name| draft.named(name));
    let method = known.ok_or_else(|| Usage::plain(format!("{} is not a strategy", quote(&name))))?;
    Ok(Strategy { method, source: source.into(), target: target.into() })
}

impl Draft {
    fn named(&self, name: &str) -> Option<Method> {
        if let Some(strategy) = strategies::Strategy::named(name) {
            let Self { block_bytes, depth, .. } = *self;
            return Some(Method::Bytes(strategies::StrategyOptions { strategy, block_bytes, depth }));
        }
        if let Some(limit) = Limit::named(name) {
            return Some(Method::Limit(Limit { preserves: self.preserves, ..limit }));
        }
        Program::named(name).map(|program| {
            Method::Program(ProgramOptions {
                program,
                block_bytes: self.block_bytes,
                max_fibers: self.max_fibers.unwrap_or(program.usual_fibers()),
                route: self.route,
                observe: self.prints_counters,
            })
        })
    }
}

impl Strategy {
    pub(super) fn run(&self) -> ExitCode {
        let (source, target) = (&self.source, &self.target);
        let copied = match &self.method {
            Method::Program(how) => {
                let copied = programs::copy(how, source, target).map_err(|failure| failure.to_string());
                copied.and_then(|stats| if how.observe { print(&stats) } else { Ok(()) })
            }
            Method::Bytes(how) => {
                strategies::copy(how, source, target).map_err(|failure| failure.to_string())
            }
            Method::Limit(how) => limits::copy(how, source, target).map_err(|failure| failure.to_string()),
        };
        match copied {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                Output::new().error(&format!("{LAB}: {why}"));
                ExitCode::FAILURE
            }
        }
    }
}

/// Prints the counters by their names in `ferry cp --stats=json`, in one line.
fn print(stats: &Stats) -> Result<(), String> {
    let counters = stats.named().into_iter().map(|(name, count)| (name, count.into()));
    let output = Output::new();
    output.line(&serde_json::Value::Object(counters.collect()).to_string());
    output.finish().map_err(|error| format!("write error: {error}"))
}
