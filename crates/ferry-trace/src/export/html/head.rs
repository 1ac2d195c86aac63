//! Texts of the page as JSON beside the columns.

use std::collections::BTreeSet;
use std::io;

use ferry_io::sampling::DeviceKind;
use ferry_io::{Operation as Kind, Reason, Route};
use serde_json::{Value, json};

use super::columns::{Names, met};
use crate::model::{Cause, IDLE, Role, Trace};

/// Returns JSON that cannot end the element it is in.
pub(super) fn json(trace: &Trace, names: &Names) -> io::Result<String> {
    let about = &trace.about;
    let value = json!({
        "command": about.command, "run": about.run, "recorder": about.recorder, "kernel": about.kernel,
        "processors": about.processors, "backend": about.backend, "began": about.began, "took": about.took,
        "missing": about.missing, "lost": [trace.lost.program, trace.lost.kernel],
        "threads": trace.threads.iter().map(|one| json!([one.tid, role(one.role), one.name])).collect::<Value>(),
        "counts": counts(trace, names),
        "kinds": Kind::ALL.map(Kind::name), "routes": Route::ALL.map(Route::name),
        "reasons": Reason::ALL.map(Reason::why), "causes": Cause::ALL.map(Cause::name),
        "causesMet": Cause::ALL.map(|cause| met(cause.met())), "idle": IDLE,
        "deviceKinds": DeviceKind::ALL.map(DeviceKind::name), "chains": trace.chains, "counters": trace.counters, "errors": errors(trace),
    });
    // `<` occurs only in JSON strings, where the escape is equivalent.
    serde_json::to_string(&value).map(|text| text.replace('<', "\\u003c")).map_err(io::Error::from)
}

fn counts(trace: &Trace, names: &Names) -> Value {
    json!({
        "scopes": trace.scopes.len(), "fibers": trace.fibers.len(), "operations": trace.operations.len(),
        "submissions": trace.submissions.len(), "enters": trace.enters.len(), "rests": trace.rests.len(),
        "samples": trace.samples.len(), "requests": trace.requests.len(), "kernel": trace.kernel.len(),
        "devices": trace.device_requests.len(), "names": names.count(),
    })
}

fn errors(trace: &Trace) -> Value {
    let operations = trace.operations.iter().filter_map(|one| one.result?.err());
    let requests = trace.requests.iter().filter_map(|one| one.result.filter(|result| *result < 0));
    let numbers: BTreeSet<u32> = operations.chain(requests).map(i32::unsigned_abs).collect();
    numbers.into_iter().map(|errno| json!([errno, message(errno)])).collect()
}

/// The system's message without the number that Rust appends.
fn message(errno: u32) -> String {
    let Ok(errno) = i32::try_from(errno) else { return String::new() };
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Worker => "worker",
        Role::Pool => "pool",
        Role::Kernel => "kernel",
        Role::Other => "other",
        Role::Device => "device",
    }
}
