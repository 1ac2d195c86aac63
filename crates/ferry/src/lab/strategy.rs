//! `ferry lab strategy`: one of the documents' programs, or one way of copying bytes, in a process of its own, for the
//! lab to time as a stranger. It is not in the help.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ferry_io::RouteChoice;
use ferry_lab::programs::{self, How, Program};
use ferry_lab::strategies;

use super::NAME as LAB;
use crate::arguments::Effect::Value;
use crate::arguments::{self, Definition, Read, Usage};
use crate::quote::quote;
use crate::values::{choice, number, size};

/// The command's name.
pub(super) const NAME: &str = "strategy";

/// What runs, how, and what it copies.
pub(crate) struct Strategy {
    how: Kind,
    source: PathBuf,
    target: PathBuf,
}

enum Kind {
    Program(How),
    Bytes(strategies::How),
}

struct Draft {
    block_bytes: usize,
    depth: usize,
    max_fibers: Option<usize>,
    route: RouteChoice,
}

const OPTIONS: &[Definition<Draft>] = &[
    Definition {
        letters: "",
        long: "block-size",
        help: "Bytes a block",
        effect: Value("SIZE", |d, text| {
            d.block_bytes = size("--block-size", text)?;
            Ok(())
        }),
        own: true,
    },
    Definition {
        letters: "",
        long: "depth",
        help: "Requests in flight at most",
        effect: Value("N", |d, text| {
            d.depth = number::<std::num::NonZeroUsize>("--depth", text)?.get();
            Ok(())
        }),
        own: true,
    },
    Definition {
        letters: "",
        long: "max-fibers",
        help: "Fibers at most",
        effect: Value("N", |d, text| {
            d.max_fibers = Some(number::<std::num::NonZeroUsize>("--max-fibers", text)?.get());
            Ok(())
        }),
        own: true,
    },
    Definition {
        letters: "",
        long: "route",
        help: "Where operations run",
        effect: Value("ROUTE", |d, text| {
            d.route = choice("--route", text, &[("ring", RouteChoice::Ring), ("auto", RouteChoice::Auto)])?;
            Ok(())
        }),
        own: true,
    },
];

/// Reads the arguments after `strategy`.
pub(super) fn parse(rest: &[OsString]) -> Result<Strategy, Usage> {
    let mut draft = Draft { block_bytes: 4096, depth: 1, max_fibers: None, route: RouteChoice::Ring };
    let operands = match arguments::read(OPTIONS, rest, &mut draft)? {
        Read::Operands(operands) => operands,
        Read::Print(_) => Vec::new(),
    };
    let [name, source, target] = <[OsString; 3]>::try_from(operands)
        .map_err(|_| Usage::plain("a strategy takes a name, a source and a target".to_owned()))?;
    let known = name.to_str().and_then(|name| draft.named(name));
    let how = known.ok_or_else(|| Usage::plain(format!("{} is not a strategy", quote(&name))))?;
    Ok(Strategy { how, source: source.into(), target: target.into() })
}

impl Draft {
    /// The program or the way of that name, with the options.
    fn named(&self, name: &str) -> Option<Kind> {
        if let Some(strategy) = strategies::Strategy::named(name) {
            let Self { block_bytes, depth, .. } = *self;
            return Some(Kind::Bytes(strategies::How { strategy, block_bytes, depth }));
        }
        Program::named(name).map(|program| {
            Kind::Program(How {
                program,
                block_bytes: self.block_bytes,
                max_fibers: self.max_fibers.unwrap_or(program.usual_fibers()),
                route: self.route,
            })
        })
    }
}

impl Strategy {
    /// Copies.
    pub(super) fn run(&self) -> ExitCode {
        let (source, target) = (&self.source, &self.target);
        let copied = match &self.how {
            Kind::Program(how) => programs::copy(how, source, target).map_err(|failure| failure.to_string()),
            Kind::Bytes(how) => strategies::copy(how, source, target).map_err(|failure| failure.to_string()),
        };
        match copied {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                crate::output::Output::new().error(&format!("{LAB}: {why}"));
                ExitCode::FAILURE
            }
        }
    }
}
