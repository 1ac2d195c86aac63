//! Formats a comparison as one JSON object in one line; times are in nanoseconds.

use ferry_trace::Trace;
use ferry_trace::diff::{Basis, Contribution, Diff, Part, Run, State, Subject};
use serde_json::{Map, Value, json};

use crate::trace::json::without_controls;
use crate::units::real;

pub(super) fn of(diff: &Diff, [a, b]: [&Trace; 2]) -> String {
    let basis = match diff.basis {
        Basis::Kernel => "kernel",
        Basis::Program => "program",
    };
    let object = json!({
        "a": run(&diff.before, a),
        "b": run(&diff.after, b),
        "difference_ns": diff.difference(),
        "basis": basis,
        "causes": diff.causes.iter().map(|part| cause(part, diff.difference())).collect::<Vec<_>>(),
        "moves": diff.moves.iter().map(|its| {
            json!({
                "kind": its.kind.name(),
                "before": its.before.name(),
                "after": its.after.name(),
                "operations": its.operations,
                "difference_ns": its.difference,
            })
        }).collect::<Vec<_>>(),
    });
    without_controls(&object.to_string())
}

fn run(run: &Run, trace: &Trace) -> Value {
    let states = State::ALL.into_iter().zip(run.states);
    let states: Map<String, Value> =
        states.map(|(state, time)| (format!("{}_ns", state.name().replace('-', "_")), time.into())).collect();
    let (until_begun, until_taken) = run.handed_over.means().unzip();
    json!({
        "command": trace.about.command,
        "took_ns": run.took,
        "states": states,
        "operations": run.operations,
        "handed_over": {
            "to_pool": run.handed_over.to_pool,
            "to_ring": run.handed_over.to_ring,
            "to_kernel_workers": run.handed_over.to_kernel_workers,
            "until_begun_mean_ns": until_begun,
            "until_taken_mean_ns": until_taken,
        },
        "has_kernel_side": run.has_kernel,
        "lost": { "program": trace.lost.program, "kernel": trace.lost.kernel },
    })
}

fn cause(part: &Part, difference: i64) -> Value {
    let share = (difference != 0).then(|| signed(part.difference) / signed(difference));
    json!({
        "cause": part.cause.name(),
        "difference_ns": part.difference,
        "share": share,
        "parts": part.contributions.iter().map(contribution).collect::<Vec<_>>(),
    })
}

fn contribution(its: &Contribution) -> Value {
    let difference = its.difference;
    match its.subject {
        Subject::Operations(kind, route) => {
            json!({ "kind": kind.name(), "route": route.name(), "difference_ns": difference })
        }
        Subject::Moved(kind, before, after) => json!({
            "kind": kind.name(),
            "before": before.name(),
            "after": after.name(),
            "difference_ns": difference,
        }),
        Subject::Replaced(before, after) => {
            json!({ "before": before.name(), "after": after.name(), "difference_ns": difference })
        }
        Subject::Other => json!({ "difference_ns": difference }),
    }
}

fn signed(n: i64) -> f64 {
    let size = real(n.unsigned_abs());
    if n < 0 { -size } else { size }
}
