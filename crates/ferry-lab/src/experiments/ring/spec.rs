//! The options of `lab ring` and its help.

use super::modes;
use super::names::{ALONE, COMPUTATION, PROCESS, WATCHED};
use crate::experiment::{Runs, Spec};
use crate::settings::{Parameter, ParameterKind};

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "modes",
        "MODE,...",
        "Ring modes: plain, coop, defer, sqpoll, iopoll, registered (defer with registered buffers)",
        ParameterKind::Words(modes::NAMES),
        "plain,coop,defer,sqpoll,iopoll,registered",
    )
    .published("plain,coop"),
    Parameter::new(
        "depths",
        "N,...",
        "Reads in flight of each worker",
        ParameterKind::Numbers(1, 1024),
        "1,16,64",
    )
    .quick("16")
    .published("1,2,4,8,16,32,64"),
    Parameter::new(
        "loads",
        "LOAD,...",
        "Loads: alone, process, computation, watched (see below)",
        ParameterKind::Words(&[ALONE, PROCESS, COMPUTATION, WATCHED]),
        "alone,process,computation,watched",
    ),
    Parameter::new(
        "workers",
        "N",
        "Number of threads, each with a ring; 0: one for each processor",
        ParameterKind::Number(0, 256),
        "0",
    )
    .published("16"),
    Parameter::new("processors", "N,...", "Processors to run on", ParameterKind::Text, ""),
    Parameter::new(
        "processor-count",
        "N",
        "Without --processors, number of processors, those with the fewest device interrupts first; 0: all that take \
         none, or else all",
        ParameterKind::Number(0, 1024),
        "0",
    )
    .published("2"),
    Parameter::new(
        "file-size",
        "BYTES",
        "Size of the file that is read",
        ParameterKind::Size(1 << 20, 1 << 40),
        "1G",
    )
    .quick("64M")
    .published("4G"),
    Parameter::new("time", "MS", "Duration of a run", ParameterKind::Number(10, 600_000), "600")
        .quick("120")
        .published("2000"),
    Parameter::new(
        "sqpoll-idle",
        "MS",
        "Time that the kernel's polling thread stays awake without work, with mode sqpoll",
        ParameterKind::Number(1, 86_400_000),
        "50",
    ),
    Parameter::new(
        "attribute",
        "",
        "Also count the causes of task work and of wake-ups; needs root or CAP_PERFMON",
        ParameterKind::Switch,
        "no",
    ),
    Parameter::new(
        "computing",
        "US",
        "Duration of a computation between submissions (load computation)",
        ParameterKind::Number(1, 1_000_000),
        "200",
    ),
    Parameter::new(
        "watched-computing",
        "US",
        "Duration of the computation after each submission (load watched)",
        ParameterKind::Number(1, 1_000_000),
        "5000",
    ),
];

/// Constant facts about the experiment.
pub(super) const SPEC: Spec = Spec {
    name: "ring",
    about: "Times random reads by ring mode, depth and load, beside fio",
    manual: "\
Repeats document 002 with random direct reads of 4 KiB, --depth in flight in each worker. Each ring mode runs under \
each load, and fio runs alone, in rounds of random order. Latency is measured from a fiber's request until the fiber \
continues; fio measures from submission to completion. Loads:
  alone        nothing else runs
  process      a process on each of the processors only computes. It is in a session of its own, so that with \
autogroups (sched(7)) the scheduler gives it half of its processor if it needs that
  computation  the thread that reads also computes between submissions, in pieces without a system call
  watched      one read at a time: the thread submits it and computes, and another thread looks for the completion. \
The time until it sees the completion is measured
The length of a computation matches the option to within a factor of 1.5.

Each run also records which share of its processor each reading thread and each busy process had, and that a busy \
process ran on the processor of a reader.

With --attribute, each run of task work and each wake-up is recorded with its call chain. The tables count the \
causes: a system call, GETEVENTS before or after sleeping, an interrupt from another processor, a page fault, the \
timer tick, or a device. Recording takes time, so rates and latencies cannot be compared with those taken without it. \
fio and the load watched are left out.

--as-published runs 16 workers on 2 processors, as the document. The document does not say how long its runs took, or \
how large its file was.",
    parameters: PARAMETERS,
    operands: &[],
    runs: Runs { default: 7, quick: 3, published: 15 },
    is_measured: true,
};
