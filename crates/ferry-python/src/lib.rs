//! The native part of the Python package `ferry`: module `ferry._core`.
//!
//! A call from Python starts a run on a thread of its own ([`run::Run`]) and returns at once. The run calls the same functions
//! as the command; while Python waits for it, the interpreter is free for other threads. What is Python's own — the
//! signatures of shutil, types, asyncio — is in `python/ferry`.

mod command;
mod copy;
mod failures;
mod queue;
mod run;
mod sync;
mod verify;

use pyo3::prelude::*;
use pyo3::types::PyModule;

/// The module `ferry._core`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<run::Run>()?;
    module.add_function(wrap_pyfunction!(copy::start_tree, module)?)?;
    module.add_function(wrap_pyfunction!(copy::start_file, module)?)?;
    module.add_function(wrap_pyfunction!(copy::is_within, module)?)?;
    module.add_function(wrap_pyfunction!(sync::start_sync, module)?)?;
    module.add_function(wrap_pyfunction!(sync::start_apply, module)?)?;
    module.add_function(wrap_pyfunction!(verify::start_verify, module)?)?;
    module.add_function(wrap_pyfunction!(command::main, module)?)?;
    Ok(())
}
