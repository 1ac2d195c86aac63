//! Formats the requests of block devices: a table by device and kind, and how much of the time they cover.

use ferry_lab::table::Table;
use ferry_trace::Summary;
use ferry_trace::model::Trace;
use ferry_trace::summary::{Depth, Devices, Series};

use super::page::{Page, whole};
use super::tables::spread;
use crate::trace::figures::{printable, share};
use crate::units::{bytes, count, counted};

pub(super) fn devices(page: Page, trace: &Trace, summary: &Summary) -> String {
    let Some(devices) = &summary.devices else { return String::new() };
    let columns = ["device", "kind", "requests", "own", "failed", "bytes", "median", "p99", "slowest"];
    let mut table = Table::new("Requests of block devices, of every program", &columns);
    for row in &devices.rows {
        let name = trace.threads.get(row.device as usize).map(|device| printable(&device.name));
        let mut cells = vec![name.unwrap_or_default(), row.kind.name().to_owned()];
        cells.extend([row.count, row.own, row.failed].map(count));
        cells.push(bytes(row.bytes));
        cells.extend(row.times.as_ref().map(spread).into_iter().flatten());
        cells.resize(columns.len(), String::new());
        table.row(cells);
    }
    let depth = summary.depths.iter().find(|depth| depth.series == Series::Devices);
    let text = page.table(&table, &[4, 7, 3, 8, 6]);
    text + &page.lines(&covered(devices, depth, trace.about.took)) + &unknown(page, devices)
}

/// Formats `A device was busy 83 % of the time, and 91 % of the time in which an operation was in flight; up to 32
/// requests at once, 4.1 on average. Own requests are …`.
fn covered(devices: &Devices, depth: Option<&Depth>, took: u64) -> String {
    let busy = whole(&share(devices.time, took));
    let beneath = match devices.operations {
        0 => String::new(),
        all => format!(
            ", and {} of the time in which an operation was in flight",
            whole(&share(devices.both, all))
        ),
    };
    let depth = depth.map_or_else(String::new, |depth| {
        let tenths = (depth.area * 10 + u128::from(took) / 2).checked_div(u128::from(took)).unwrap_or(0);
        let mean = format!("{}.{}", tenths / 10, tenths % 10);
        format!("; up to {} at once, {mean} on average", whole(&counted(depth.peak, "request", "requests")))
    });
    format!(
        "A device was busy {busy} of the time{beneath}{depth}. Own requests come from threads of this program, others \
         also from the kernel's write-back."
    )
}

/// Formats the number of requests that have no times; empty if there are none.
fn unknown(page: Page, devices: &Devices) -> String {
    let open = devices.open();
    if open == 0 {
        return String::new();
    }
    let all = counted(devices.count(), "request", "requests");
    page.lines(&format!("The completion of {} of {all} was not recorded: these have no times.", count(open)))
}
