//! Tasks of developers: checks that Cargo does not make, packages, and the test suite.

mod architecture;
mod bench;
mod compare;
mod confinement;
mod cycles;
mod deb;
mod documents;
mod examples;
mod failure;
mod fuzz;
mod gnu_cp;
mod guards;
mod hyperfine;
mod imports;
mod install;
mod interface;
mod manifest;
mod modules;
mod mpi;
mod neighbour;
mod pictures;
mod publishable;
mod python;
mod scratch;
mod suite;
mod tokens;
mod tools;
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
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let task = match arguments.as_slice() {
        ["acceptance-sync", what, "--count", count] => {
            return suite::acceptance(&workspace::root()?, what, count);
        }
        ["neighbour", rest @ ..] => return neighbour::run(&workspace::root()?, rest),
        ["hyperfine", rest @ ..] => return hyperfine::run(&workspace::root()?, rest),
        ["install", "--prefix", prefix] => return install::run(&workspace::root()?, prefix.as_ref()),
        ["bench", "--records", folder] => return bench::of_records(&workspace::root()?, folder.as_ref()),
        ["bench", "--cell", name] => return bench::one(&workspace::root()?, name),
        ["pictures", folder] => return pictures::run(&workspace::root()?, folder.as_ref()),
        ["python", "--release"] => return python::run(&workspace::root()?, python::Profile::Release),
        ["check-imports", "--graph", name] => return imports::print_graph(&workspace::root()?, name),
        ["test", "--rest"] => return suite::run(&workspace::root()?, suite::Scope::Rest),
        ["test", "--all"] => return suite::run(&workspace::root()?, suite::Scope::All),
        [task] => *task,
        _ => return Err(Failure::Usage),
    };
    match task {
        "bench" => bench::run(&workspace::root()?),
        "compare" => compare::run(&workspace::root()?),
        "check-architecture" => architecture::check(&workspace::root()?),
        "check-examples" => examples::check(&workspace::root()?),
        "check-guards" => guards::check(&workspace::root()?),
        "check-imports" => imports::check(&workspace::root()?),
        "check-confinement" => confinement::check(&workspace::root()?),
        "check-documents" => documents::check(&workspace::root()?),
        "deb" => deb::run(&workspace::root()?),
        "gnu-cp" => gnu_cp::run(&workspace::root()?),
        "fuzz" => fuzz::run(&workspace::root()?),
        "mpi" => mpi::run(&workspace::root()?),
        "python" => python::run(&workspace::root()?, python::Profile::Dev),
        "publishable" => publishable::run(&workspace::root()?),
        "semver-checks" => interface::install(&workspace::root()?),
        "test" => suite::run(&workspace::root()?, suite::Scope::Usual),
        "tools" => tools::run(),
        _ => Err(Failure::Usage),
    }
}
