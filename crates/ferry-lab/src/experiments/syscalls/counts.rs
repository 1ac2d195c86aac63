//! Counts of one run: from the kernel's tracepoints, and from the program itself.

use ferry_io::Errno;
use ferry_io::counting::{Count, Event};
use serde_json::Value;

use crate::error::Failure;
use crate::record::Figures;
use crate::units::real;

/// The kernel's counts, by the measures' names.
pub(super) struct Counts(Vec<(&'static str, Count)>);

impl Counts {
    /// Begins to count for programs that this thread starts from now on.
    pub(super) fn begin() -> Result<Self, Errno> {
        let events = [
            ("traced_enters", Event::RingEnter),
            ("traced_requests", Event::RingRequest),
            ("traced_handovers", Event::KernelWorkerHandover),
            ("switches", Event::ContextSwitch),
        ];
        let counts = events.into_iter().map(|(name, event)| Ok((name, Count::of_programs(event)?)));
        counts.collect::<Result<_, Errno>>().map(Self)
    }

    /// Returns the counts up to now.
    pub(super) fn figures(&self) -> Figures {
        let known = |(name, count): &(&str, Count)| Some(((*name).to_owned(), real(count.so_far().ok()?)));
        self.0.iter().filter_map(known).collect()
    }
}

/// The counters that `ferry cp --stats=json`, or one of the documents' programs with `--stats`, printed in its last
/// line, by the measures' names. Those of `ferry cp` include `bytes`.
pub(super) fn of_program(printed: &str) -> Result<Figures, Failure> {
    let line = printed.trim_end().lines().last().unwrap_or_default();
    let said: Value = serde_json::from_str(line)
        .map_err(|error| Failure::Run(format!("its statistics are not JSON ({error})")))?;
    let known = |key: &str| said.get(key).and_then(Value::as_u64);
    let number = |key: &str| known(key).ok_or_else(|| Failure::Run(format!("its statistics lack '{key}'")));
    let submitted = number("submitted")?;
    let requests = submitted.saturating_add(number("ring_upkeep")?);
    let mut figures = Figures::from([
        ("ring_enters".to_owned(), real(number("ring_enters")?)),
        ("requests".to_owned(), real(requests)),
    ]);
    let each = said.get("operations_per_submission").and_then(Value::as_f64).or_else(|| {
        let submissions = known("submissions").filter(|count| *count > 0)?;
        Some(real(submitted) / real(submissions))
    });
    let others = [
        ("bytes", known("bytes").map(real)),
        ("operations_per_submission", each),
        ("handovers", known("kernel_worker_handovers").map(real)),
    ];
    figures.extend(others.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    Ok(figures)
}
