//! Options of the experiments: common ones, and an experiment's own from the registry.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use ferry_lab::conduct::Request;
use ferry_lab::experiment::Experiment;
use ferry_lab::experiments;
use ferry_lab::record::Scale;
use ferry_lab::settings::{Parameter, ParameterKind};

use super::files::{EXTENSIONS, FileFormat, ViewFile};
use super::show::ResultFormat;
use super::{Conduct, Lab};
use super::{comparison, examples, report, speeds, strategy};
use crate::arguments::Effect::{Keyed, KeyedSwitch, Print, Switch, Value};
use crate::arguments::{self, Definition, Manual, Parsed, Read, Text, Usage, option};
use crate::names::LAB as NAME;
use crate::quote::quote;
use crate::values::{by_extension, number};

#[cfg(test)]
mod tests;

const MANUAL: Manual = Manual {
    name: NAME,
    about: "Repeat published experiments on this machine",
    usage: "ferry lab EXPERIMENT [OPTION]...",
    examples: &[
        ("ferry lab copy --quick", "See in seconds how an experiment works"),
        ("ferry lab copy -o copy.json", "Time copiers beside cp, and keep the record"),
        ("ferry lab report copy.json -o report.html", "Make a page of records"),
    ],
    usual: &[],
    after: "`ferry lab EXPERIMENT -h` prints a short help, `ferry lab EXPERIMENT --help` a complete one.",
};

const OPTIONS: &[Definition<()>] = &[option("help", "Print this help", Print(Text::Help))];

/// Help after the options of every experiment.
const AFTER: &str = "\
Exit status:
  0    measured
  1    failed, or a requirement is missing; nothing is left behind
  2    the command line is wrong
  3    measured, but a warning says why the figures should not be trusted
  130  interrupted by SIGINT; the finished runs are kept, and --resume continues

The result is printed to standard output, progress and warnings to standard error.";

/// Its last sentence, for experiments that make files.
const FILES: &str = " All files are created in one directory below --work-dir, which is removed at the end.";

#[derive(Default)]
pub(crate) struct Draft {
    request: Request,
    format: ResultFormat,
    current_bench: Option<PathBuf>,
    views: Vec<ViewFile>,
    trace: Option<PathBuf>,
}

pub(crate) fn parse(rest: &[OsString]) -> Result<Parsed<Lab>, Usage> {
    let Some((name, rest)) = rest.split_first() else {
        return Ok(Parsed::Print(Text::Missing, Box::new(overview())));
    };
    match name.to_str() {
        Some("help") => Ok(Parsed::Print(Text::Help, Box::new(overview()))),
        Some(strategy::NAME) => Ok(Parsed::Run(Box::new(Lab::Strategy(strategy::parse(rest)?)))),
        Some(speeds::NAME) => Ok(Parsed::Run(Box::new(Lab::Speeds(speeds::parse(rest)?)))),
        Some(report::NAME) => Ok(match report::parse(rest)? {
            Parsed::Run(report) => Parsed::Run(Box::new(Lab::Report(*report))),
            Parsed::Print(text, command) => Parsed::Print(text, command),
        }),
        text => match text.and_then(experiments::named) {
            Some(experiment) => of_experiment(experiment, rest),
            None => match arguments::leading(OPTIONS, name)? {
                Some(text) => Ok(Parsed::Print(text, Box::new(overview()))),
                None => Err(arguments::unknown(name, "an experiment", &names())),
            },
        },
    }
}

/// Name that prefixes messages about these arguments: that of the experiment whose help lists the options.
pub(crate) fn program(rest: &[OsString]) -> &'static str {
    let name = rest.first().and_then(|name| name.to_str());
    let known = name.and_then(|name| names().into_iter().find(|known| *known == name));
    // Kept until the process ends, and made once.
    known.map_or(NAME, |name| format!("{NAME} {name}").leak())
}

/// Names of the commands in the help.
fn names() -> Vec<&'static str> {
    let experiments = experiments::ALL.iter().map(|experiment| experiment.spec().name);
    experiments.chain([report::NAME]).collect()
}

fn of_experiment(experiment: &'static dyn Experiment, rest: &[OsString]) -> Result<Parsed<Lab>, Usage> {
    let mut draft =
        Draft { request: Request { work_dir: ".".into(), ..Request::default() }, ..Draft::default() };
    let (rest, commands) =
        if comparison::is_it(experiment) { comparison::split(rest) } else { (rest, &[][..]) };
    let operands = match arguments::read(&table(experiment), rest, &mut draft)? {
        Read::Print(text) => return Ok(Parsed::Print(text, Box::new(command(experiment)))),
        Read::Operands(operands) => operands,
    };
    let Draft { mut request, format, current_bench, views, trace } = draft;
    let names = experiment.spec().operands;
    if comparison::is_it(experiment) {
        comparison::add(&mut request, names, &operands, commands)?;
    } else if operands.is_empty() && !names.is_empty() {
        return Err(Usage::with_hint("missing operand"));
    } else {
        add(&mut request, names, &operands)?;
    }
    Ok(Parsed::Run(Box::new(Lab::Conduct(Box::new(Conduct {
        experiment,
        request,
        format,
        current_bench,
        views,
        trace,
    })))))
}

/// Adds operands to the parameters of a request. Missing ones are the first: `lab tree TARGET`.
fn add(request: &mut Request, names: &[&str], operands: &[OsString]) -> Result<(), Usage> {
    let skipped = names.len().checked_sub(operands.len()).ok_or_else(|| {
        let extra = operands.get(names.len()).cloned().unwrap_or_default();
        Usage::with_hint(format!("extra operand {}", quote(extra)))
    })?;
    for (name, operand) in names.iter().skip(skipped).zip(operands) {
        request.parameters.push(((*name).to_owned(), text(name, operand)?));
    }
    Ok(())
}

/// Records are text, so their parameters must be UTF-8.
fn text(name: &str, value: &OsStr) -> Result<String, Usage> {
    let known = value.to_str().map(str::to_owned);
    known.ok_or_else(|| Usage::plain(format!("{} for '{name}' is not UTF-8", quote(value))))
}

/// An experiment's own options, then the common ones.
fn table(experiment: &dyn Experiment) -> Vec<Definition<Draft>> {
    let own = experiment
        .spec()
        .parameters
        .iter()
        .filter(|parameter| !experiment.spec().operands.contains(&parameter.name));
    let common = common(experiment.spec().is_measured).into_iter();
    own.map(definition).chain(common.filter(|option| comparison::has(experiment, option.long))).collect()
}

fn definition(parameter: &Parameter) -> Definition<Draft> {
    let effect = match parameter.kind {
        ParameterKind::Switch => KeyedSwitch(|draft: &mut Draft, name| {
            draft.request.parameters.push((name.to_owned(), "yes".to_owned()))
        }),
        ParameterKind::Number(..)
        | ParameterKind::Maybe(..)
        | ParameterKind::Numbers(..)
        | ParameterKind::Size(..)
        | ParameterKind::Sizes(..)
        | ParameterKind::Word(_)
        | ParameterKind::Words(_)
        | ParameterKind::Names
        | ParameterKind::Text
        | ParameterKind::Texts => Keyed(parameter.value, |draft: &mut Draft, name, value| {
            draft.request.parameters.push((name.to_owned(), text(name, value)?));
            Ok(())
        }),
    };
    Definition { letters: "", long: parameter.name, help: parameter.help, effect, own: true }
}

fn common(is_measured: bool) -> Vec<Definition<Draft>> {
    let mut options = vec![
        option(
            "quick",
            "Run a version that takes seconds, to see that it works",
            Switch(|d: &mut Draft| d.request.scale = Scale::Quick),
        ),
        option("seed", "Set the seed of all random choices", Value("N", seed)),
        Definition {
            letters: "o",
            ..option(
                "output",
                "Write the result to FILE: .json (the record, after each run), .csv, .md or .html (a page); may be \
                 repeated",
                Value("FILE", output),
            )
        },
        option("json", "Write the record to FILE, whatever its extension", Value("FILE", record)),
        option("markdown", "Print Markdown", Switch(|d| d.format = ResultFormat::Markdown)),
        option("csv", "Print CSV, one line per run", Switch(|d| d.format = ResultFormat::Csv)),
    ];
    if is_measured {
        options.extend(measured());
    }
    options.push(option("help", "Print this help", Print(Text::Help)));
    options
}

fn measured() -> Vec<Definition<Draft>> {
    vec![
        option(
            "as-published",
            "Use the parameters of the published figures",
            Switch(|d: &mut Draft| d.request.scale = Scale::AsPublished),
        ),
        option("runs", "Set the number of runs of each cell", Value("N", runs)),
        option(
            "resume",
            "Add the runs that are missing from this record",
            Value("FILE", |d, text| keep(&mut d.request.resume, text)),
        ),
        option(
            "work-dir",
            "Create all files in a directory here [default: the current directory]",
            Value("DIR", |d, text| {
                d.request.work_dir = text.into();
                Ok(())
            }),
        ),
        option(
            "current-bench",
            "Write the medians in the format of current-bench",
            Value("FILE", |d, text| keep(&mut d.current_bench, text)),
        ),
        option(
            "trace",
            "Record each run of ferry (to FILE.1, FILE.2 and so on, skipping existing files). Each recording names its \
             run, and the record warns that its figures are those of recorded runs (exit status 3)",
            Value("FILE", |d, text| keep(&mut d.trace, text)),
        ),
    ]
}

fn keep(path: &mut Option<PathBuf>, text: &OsStr) -> Result<(), Usage> {
    *path = Some(text.into());
    Ok(())
}

fn output(draft: &mut Draft, text: &OsStr) -> Result<(), Usage> {
    let path = PathBuf::from(text);
    match by_extension(&path, &EXTENSIONS)? {
        FileFormat::View(view) => draft.views.push(ViewFile { path, view }),
        FileFormat::Record => return record(draft, text),
    }
    Ok(())
}

fn record(draft: &mut Draft, text: &OsStr) -> Result<(), Usage> {
    match draft.request.record.replace(text.into()) {
        Some(other) => {
            let others = format!("{} and {}", quote(other), quote(text));
            Err(Usage::with_hint(format!("the record goes to one file, not to {others}")))
        }
        None => Ok(()),
    }
}

fn seed(draft: &mut Draft, text: &OsStr) -> Result<(), Usage> {
    draft.request.seed = Some(number("--seed", text)?);
    Ok(())
}

fn runs(draft: &mut Draft, text: &OsStr) -> Result<(), Usage> {
    let runs = number::<std::num::NonZeroU32>("--runs", text)?;
    draft.request.runs = Some(runs.get().into());
    Ok(())
}

fn command(experiment: &'static dyn Experiment) -> clap::Command {
    let name = experiment.spec().name;
    let operands: String =
        experiment.spec().operands.iter().map(|operand| format!(" {}", operand.to_uppercase())).collect();
    // clap keeps names until the process ends, and this runs once.
    let full: &'static str = format!("{NAME} {name}").leak();
    let is_comparison = comparison::is_it(experiment);
    let usage: &'static str =
        if is_comparison { comparison::USAGE } else { format!("{full} [OPTION]...{operands}").leak() };
    let files = if is_comparison { "" } else { FILES };
    let after: &'static str = format!("{}\n\n{AFTER}{files}", experiment.spec().manual).leak();
    arguments::command(
        &Manual {
            name: full,
            about: experiment.spec().about,
            usage,
            examples: examples::of(experiment.spec()),
            usual: &[],
            after,
        },
        &with_defaults(experiment),
    )
}

/// Adds each option's default to its help.
fn with_defaults(experiment: &'static dyn Experiment) -> Vec<Definition<Draft>> {
    let mut table = table(experiment);
    for parameter in experiment.spec().parameters.iter().filter(|parameter| !parameter.default.is_empty()) {
        let shows = !matches!(parameter.kind, ParameterKind::Switch);
        if let Some(definition) =
            table.iter_mut().find(|definition| shows && definition.long == parameter.name)
        {
            definition.help = format!("{} [{}]", parameter.help, defaults(parameter)).leak();
        }
    }
    table
}

/// Formats `1G; quick 32M; as published 1000000000`, with spaces at which a long list can be folded.
fn defaults(parameter: &Parameter) -> String {
    let mut text = parameter.default.to_owned();
    for (scale, value) in [("quick", parameter.quick), ("as published", parameter.published)] {
        if value != parameter.default && !value.is_empty() {
            text += &format!("; {scale} {value}");
        }
    }
    text.replace(',', ", ")
}

pub(crate) fn overview() -> clap::Command {
    let lab = arguments::overview(&MANUAL, OPTIONS);
    let lab = experiments::ALL.iter().fold(lab, |lab, experiment| lab.subcommand(command(*experiment)));
    lab.subcommand(report::command())
}
