//! The documents' published figures. They are shown beside the measured ones and never mixed with them.

/// A table of one document.
#[derive(Debug, Clone, Copy)]
pub struct Published {
    /// The document's number.
    pub document: &'static str,
    /// The experiment that repeats it.
    pub experiment: &'static str,
    /// Title of the table.
    pub title: &'static str,
    /// Headings of the columns.
    pub columns: &'static [&'static str],
    /// Units of the columns: `s`, `B/s`, `1/s`, or empty.
    pub units: &'static [&'static str],
    /// Rows: a name, and a figure for each column if the document has it.
    pub rows: &'static [(&'static str, &'static [Option<f64>])],
}

/// Machines of the documents, by number.
pub const MACHINES: &[(&str, &str)] = &[
    ("000", "not said"),
    (
        "001",
        "m5d.large: 2 vCPU, 8 GiB; 75 GiB NVMe SSD, to which its overwrites wrote 92 MB/s, with O_DIRECT 69 MB/s; Linux 5.10",
    ),
    ("002", "two processors that take no device interrupts, 16 fio workers"),
    (
        "003",
        "4 processors; Intel SSD SSDPEKKF512G7L, of which users report sequential reads of 782 MB/s and writes of 519 \
         MB/s; Debian, Linux 6.1",
    ),
    (
        "004",
        "i7-7600U at 2.8 GHz; Intel SSD 6000p of 512 GB, advertised with 430 MB/s, to which dd wrote 490 MB/s",
    ),
];

/// Returns the tables of one experiment.
pub fn of(experiment: &str) -> impl Iterator<Item = &'static Published> {
    ALL.iter().filter(move |table| table.experiment == experiment)
}

/// Title of document 002's counts of what ran task work.
pub(crate) const TASK_WORK: &str = "What ran the completions' task work";

/// Tables of the documents beside tables of the experiments: the experiment, the beginning of the document's title, and
/// a part of the experiment's title.
const BESIDE: &[(&str, &str, &str)] = &[
    ("copy", "3,905 files of 4 KiB", "small"),
    ("copy", "3,905 files of 4 KiB", "large-3905"),
    ("copy", "On a cold cache", "cold"),
    ("copy", "What to expect of the device", "dd"),
    ("copy", "480 MB in files of 4 KiB", "wide"),
    ("copy", "780 MB in files of 1 MiB", "large,"),
    ("copy", "780 MB in files of 1 MiB", "large ("),
    ("disk", "2,171 users' figures", "Direct I/O"),
    ("handovers", "Writes to regular files", "Requests that the kernel handed"),
    ("ring", "Throughput against the plain ring", "COOP relative to the plain ring"),
    ("ring", "Throughput against the plain ring", "Effect of each load"),
    ("ring", "What ran the completions' task work", "What ran task work"),
    ("ring", "Functions whose task work was added", "Functions that ran task work"),
    ("strategies", "Flow.copy of one file", "One block of one file in flight"),
    ("syscalls", "Submissions for 3,905 files", "dfs, two fibers a folder"),
];

/// Returns the tables that belong beside an experiment's table with this title.
pub fn beside(experiment: &str, title: &str) -> impl Iterator<Item = &'static Published> {
    let starts: Vec<&str> = BESIDE
        .iter()
        .filter(|(name, _, part)| *name == experiment && title.contains(part))
        .map(|(_, start, _)| *start)
        .collect();
    of(experiment).filter(move |table| starts.iter().any(|start| table.title.starts_with(start)))
}

const MILLISECOND: f64 = 1e-3;
const MEGABYTE: f64 = 1e6;

/// All figures that the documents give as text. Some of their pictures were not preserved.
pub const ALL: &[Published] = &[
    Published {
        document: "000",
        experiment: "copy",
        title: "3,905 files of 4 KiB, and of 1 MiB with blocks of 1 MB",
        columns: &["coreutils cp", "eio cp"],
        units: &["s", "s"],
        rows: &[
            ("4 KiB files", &[Some(0.117), Some(0.212)]),
            ("1 MiB files, 1 MB blocks", &[Some(14.554), Some(9.163)]),
        ],
    },
    Published {
        document: "000",
        experiment: "copy",
        title: "On a cold cache",
        columns: &["times as fast as the sequential version"],
        units: &["x"],
        rows: &[("eio", &[Some(2.0)])],
    },
    Published {
        document: "000",
        experiment: "syscalls",
        title: "Submissions for 3,905 files of 1 MiB in blocks of 4,096 bytes",
        columns: &["io_uring_enter"],
        units: &[""],
        rows: &[("eio cp", &[Some(80_000.0)])],
    },
    Published {
        document: "001",
        experiment: "write",
        title: "Control: plain writes",
        columns: WRITE_COLUMNS,
        units: WRITE_UNITS,
        rows: &[
            ("Download", &write_row(6_379.0, 16_490.0, 22_125.0, 51_587.0)),
            ("Overwrite", &write_row(56_748.0, 58_265.0, 58_284.0, 58_474.0)),
            ("Overwrite (dd)", &write_row(56_729.0, 56_772.0, 56_793.0, 57_382.0)),
        ],
    },
    Published {
        document: "001",
        experiment: "write",
        title: "O_DIRECT",
        columns: WRITE_COLUMNS,
        units: WRITE_UNITS,
        rows: &[
            ("Download", &write_row(21_119.0, 27_411.0, 30_979.0, 53_641.0)),
            ("Overwrite", &write_row(76_411.0, 77_555.0, 77_558.0, 77_560.0)),
        ],
    },
    Published {
        document: "001",
        experiment: "write",
        title: "io_uring",
        columns: WRITE_COLUMNS,
        units: WRITE_UNITS,
        rows: &[
            ("Download", &write_row(6_225.0, 16_448.0, 21_289.0, 43_151.0)),
            ("Overwrite", &write_row(57_847.0, 58_272.0, 58_293.0, 58_399.0)),
        ],
    },
    Published {
        document: "001",
        experiment: "write",
        title: "Time to write the requests of 5 GiB to the submission queue: double-digit milliseconds",
        columns: &["at least", "at most"],
        units: &["s", "s"],
        rows: &[("io_uring", &[Some(10.0 * MILLISECOND), Some(99.0 * MILLISECOND)])],
    },
    Published {
        document: "002",
        experiment: "ring",
        title: TASK_WORK,
        columns: &["page fault", "interrupt between processors", "system call"],
        units: &["", "", ""],
        rows: &[
            ("plain", &[Some(30_785.0), Some(1_931_395.0), Some(8_752_655.0)]),
            ("COOP_TASKRUN", &[Some(18_832.0), Some(0.0), Some(11_661_199.0)]),
        ],
    },
    Published {
        document: "002",
        experiment: "ring",
        title: "Throughput against the plain ring, on processors that take no device interrupts",
        columns: &["at least", "at most"],
        units: &["x", "x"],
        rows: &[("COOP_TASKRUN", &[Some(1.15), Some(1.20)]), ("with busy.c", &[Some(0.5), Some(0.5)])],
    },
    Published {
        document: "002",
        experiment: "ring",
        title: "Functions whose task work was added, in calls of task_work_add",
        columns: &["calls"],
        units: &[""],
        rows: &[
            ("tctx_task_work", &[Some(9_779_140.0)]),
            ("____fput", &[Some(1_291.0)]),
            ("task_numa_work", &[Some(58.0)]),
        ],
    },
    Published {
        document: "003",
        experiment: "handovers",
        title: "Writes to regular files that are handed to a kernel worker",
        columns: &["share"],
        units: &["x"],
        rows: &[("XFS", &[Some(0.0)]), ("other filesystems", &[Some(1.0)])],
    },
    Published {
        document: "003",
        experiment: "disk",
        title: "2,171 users' figures of the same device",
        columns: &["read", "write", "mixed"],
        units: &["B/s", "B/s", "B/s"],
        rows: &[
            ("sequential, depth 1", &disk_row(782.0, 519.0, 585.0)),
            ("random 4 KiB, depth 1", &disk_row(29.1, 107.0, 42.8)),
            ("random 4 KiB, depth 64", &disk_row(479.0, 463.0, 425.0)),
        ],
    },
    Published {
        document: "003",
        experiment: "strategies",
        title: "Flow.copy of one file before and after several blocks were in flight",
        columns: &["throughput"],
        units: &["B/s"],
        rows: &[
            ("one block in flight", &[Some(302_819_851.7)]),
            ("several blocks in flight", &[Some(484_808_364.4)]),
        ],
    },
    Published {
        document: "004",
        experiment: "copy",
        title: "What to expect of the device",
        columns: &["throughput"],
        units: &["B/s"],
        rows: &[
            ("advertised", &[Some(430.0 * MEGABYTE)]),
            ("dd, sequential writes of 1 GB", &[Some(490.0 * MEGABYTE)]),
        ],
    },
    Published {
        document: "004",
        experiment: "copy",
        title: "480 MB in files of 4 KiB: 960 MB read and written",
        columns: &["time", "throughput", "times cp's time"],
        units: &["s", "B/s", "x"],
        rows: &[
            ("cp -r", &[Some(3.045), Some(315.0 * MEGABYTE), Some(1.0)]),
            ("eio, sequential", &[Some(8.8), Some(109.0 * MEGABYTE), None]),
            ("eio, two fibers a folder", &[None, None, Some(1.6)]),
        ],
    },
    Published {
        document: "004",
        experiment: "copy",
        title: "780 MB in files of 1 MiB",
        columns: &["times cp's time"],
        units: &["x"],
        rows: &[("eio, two fibers a folder, blocks of 4,096 bytes", &[Some(1.4)])],
    },
];

const WRITE_COLUMNS: &[&str] = &["n", "P0", "p50", "p90", "p100"];
const WRITE_UNITS: &[&str] = &["", "s", "s", "s", "s"];

const fn write_row(least: f64, p50: f64, p90: f64, most: f64) -> [Option<f64>; 5] {
    [
        Some(100.0),
        Some(least * MILLISECOND),
        Some(p50 * MILLISECOND),
        Some(p90 * MILLISECOND),
        Some(most * MILLISECOND),
    ]
}

const fn disk_row(read: f64, write: f64, mixed: f64) -> [Option<f64>; 3] {
    [Some(read * MEGABYTE), Some(write * MEGABYTE), Some(mixed * MEGABYTE)]
}

impl Published {
    /// Formats the figures as a table.
    #[must_use]
    pub fn table(&self) -> crate::table::Table {
        let columns: Vec<&str> = std::iter::once("").chain(self.columns.iter().copied()).collect();
        let mut table =
            crate::table::Table::new(&format!("Document {}: {}", self.document, self.title), &columns);
        for (name, figures) in self.rows {
            let figures = figures.iter().zip(self.units);
            let texts = figures.map(|(value, unit)| {
                value.map(|value| crate::units::figure(value, unit)).unwrap_or_default()
            });
            table.row(std::iter::once((*name).to_owned()).chain(texts).collect());
        }
        table
    }
}

#[cfg(test)]
mod tests;
