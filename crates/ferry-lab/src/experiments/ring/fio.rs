//! fio's figures for the same reads, as a check of ours.
//!
//! fio chooses the best ring flags that it supports (COOP, SINGLE_ISSUER and DEFER), so its figures are comparable
//! with our DEFER mode only.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::names::figures;
use super::processors::list;
use crate::command::time;
use crate::error::Failure;
use crate::record::Figures;
use crate::stop::Stop;

/// Parameters of one fio run.
pub(super) struct Order<'a> {
    pub(super) program: &'a Path,
    pub(super) file: &'a Path,
    pub(super) bytes: u64,
    pub(super) depth: usize,
    pub(super) workers: usize,
    pub(super) processors: &'a [usize],
    pub(super) window: Duration,
}

/// Runs fio once.
///
/// # Errors
/// [`Failure::Run`] with fio's last lines, or if its output cannot be parsed.
pub(super) fn take(order: &Order<'_>, stop: &Stop) -> Result<Figures, Failure> {
    let mut command = Command::new(order.program);
    command.args([
        "--name=reads",
        "--ioengine=io_uring",
        "--rw=randread",
        "--bs=4k",
        "--direct=1",
        "--readonly",
    ]);
    command.args([
        "--norandommap",
        "--randrepeat=0",
        "--group_reporting",
        "--time_based",
        "--output-format=json",
    ]);
    command.arg("--cpus_allowed_policy=split").arg(format!("--cpus_allowed={}", list(order.processors)));
    command.arg(format!("--iodepth={}", order.depth)).arg(format!("--numjobs={}", order.workers));
    command.arg(format!("--runtime={}ms", order.window.as_millis())).arg(format!("--size={}", order.bytes));
    // In a file's name a colon separates two.
    let file = order.file.to_string_lossy().replace(':', "\\:");
    command.arg(format!("--filename={file}"));
    let said = time(&mut command, stop)?.printed;
    understood(&said).ok_or_else(|| Failure::Run("the output of fio is not understood".to_owned()))
}

/// The figures in fio's JSON, which may have lines before it.
pub(super) fn understood(said: &str) -> Option<Figures> {
    let said: Value = serde_json::from_str(&said[said.find('{')?..]).ok()?;
    let reads = &said["jobs"][0]["read"];
    let latency = &reads["clat_ns"];
    let p99 = latency["percentile"]["99.000000"].as_f64()?;
    Some(figures(reads["iops"].as_f64()?, latency["mean"].as_f64()? / 1e9, p99 / 1e9))
}
