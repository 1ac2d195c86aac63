//! Developer automation: the checks that Cargo does not make, and the one command that runs everything.

mod documents;
mod failure;
mod fuzz;
mod guards;
mod imports;
mod manifest;
mod scratch;
mod suite;
mod tokens;
mod workspace;

use std::env;
use std::process::ExitCode;

use failure::Failure;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [task] = arguments.as_slice() else {
        return Err(Failure::Usage);
    };
    match task.as_str() {
        "check-guards" => guards::check(&workspace::root()?),
        "check-imports" => imports::check(&workspace::root()?),
        "check-documents" => documents::check(&workspace::root()?),
        "fuzz" => fuzz::run(&workspace::root()?),
        "test" => suite::run(&workspace::root()?),
        _ => Err(Failure::Usage),
    }
}
