//! `ferry lab strategy`: one of the documents' programs in a process of its own, for the lab to time as a stranger.
//! It is not in the help.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ferry_io::RouteChoice;
use ferry_lab::programs::{self, How, Program};

use super::NAME as LAB;
use crate::arguments::Effect::Value;
use crate::arguments::{self, Definition, Read, Usage};
use crate::quote::quote;
use crate::values::{choice, number, size};

/// The command's name.
pub(super) const NAME: &str = "strategy";

/// A program, how it runs, and what it copies.
pub(crate) struct Strategy {
    how: How,
    source: PathBuf,
    target: PathBuf,
}

struct Draft {
    block_bytes: usize,
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
    let mut draft = Draft { block_bytes: 4096, max_fibers: None, route: RouteChoice::Ring };
    let operands = match arguments::read(OPTIONS, rest, &mut draft)? {
        Read::Operands(operands) => operands,
        Read::Print(_) => Vec::new(),
    };
    let [name, source, target] = <[OsString; 3]>::try_from(operands)
        .map_err(|_| Usage::plain("a strategy takes a name, a source and a target".to_owned()))?;
    let program = name.to_str().and_then(Program::named);
    let program = program.ok_or_else(|| Usage::plain(format!("{} is not a strategy", quote(&name))))?;
    let how = How {
        program,
        block_bytes: draft.block_bytes,
        max_fibers: draft.max_fibers.unwrap_or(program.usual_fibers()),
        route: draft.route,
    };
    Ok(Strategy { how, source: source.into(), target: target.into() })
}

impl Strategy {
    /// Copies.
    pub(super) fn run(&self) -> ExitCode {
        match programs::copy(&self.how, &self.source, &self.target) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                crate::output::Output::new().error(&format!("{LAB}: {failure}"));
                ExitCode::FAILURE
            }
        }
    }
}
