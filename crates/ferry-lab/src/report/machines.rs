//! The machines of the records: each machine once, with its records.

use super::html::{escaped, terms};
use super::source::Source;
use crate::machine::{Filesystem, Machine, Processor};
use crate::units::{figure, real};

/// The section of all machines, with the titles of their records.
pub(super) fn all(sources: &[Source], titles: &[&str]) -> String {
    let mut machines: Vec<(Machine, Vec<&str>)> = Vec::new();
    for (source, title) in sources.iter().zip(titles) {
        let machine = source.record.machine.lasting();
        match machines.iter_mut().find(|(known, _)| *known == machine) {
            Some((_, of)) => of.push(title),
            None => machines.push((machine, vec![title])),
        }
    }
    let mut out = String::from("<section aria-labelledby=\"machines\">\n<h2 id=\"machines\">Machines</h2>\n");
    let several = machines.len() > 1;
    for (number, (machine, of)) in machines.iter().enumerate() {
        if several {
            out += &format!("<h3>Machine {}: {}</h3>\n", number + 1, escaped(&of.join(", ")));
        }
        out += &one(machine);
    }
    out + "</section>\n"
}

fn one(machine: &Machine) -> String {
    let Machine { kernel, kernel_version, processor, memory, place } = machine;
    let limit = memory.limit_bytes.map(|bytes| format!(", of which a cgroup allows {}", bytes_text(bytes)));
    terms([
        ("kernel", format!("Linux {}", escaped(kernel))),
        ("build", escaped(kernel_version)),
        ("processors", processors(processor)),
        ("memory", bytes_text(memory.total_bytes) + &limit.unwrap_or_default()),
        ("filesystem", filesystem(place)),
        ("device", device(place)),
    ])
}

fn processors(processor: &Processor) -> String {
    let Processor { model, count, usable, affinity, quota_percent, virtualised } = processor;
    let mut out = format!("{count} x {}", if model.is_empty() { "unknown model" } else { model });
    if usable < count {
        out += &format!(", {usable} usable ({affinity})");
    }
    if let Some(percent) = quota_percent {
        out += &format!(", a cgroup allows {percent} % of one");
    }
    if *virtualised {
        out += ", in a virtual machine";
    }
    escaped(&out)
}

fn filesystem(place: &Filesystem) -> String {
    let memory = if place.in_memory { ", in memory" } else { "" };
    escaped(&format!("{}{memory}, from {} ({})", place.filesystem, place.source, place.options.join(", ")))
}

fn device(place: &Filesystem) -> String {
    let Some(device) = &place.device else { return String::new() };
    let mut parts = vec![device.name.clone(), device.model.clone(), bytes_text(device.bytes)];
    parts.push(if device.rotational { "rotating".to_owned() } else { String::new() });
    parts.push(device.backing_file.as_ref().map(|file| format!("over the file {file}")).unwrap_or_default());
    parts.push(if device.in_memory { "in memory".to_owned() } else { String::new() });
    if !device.scheduler.is_empty() {
        parts.push(format!("scheduler {}", device.scheduler));
    }
    parts.retain(|part| !part.is_empty());
    escaped(&parts.join(", "))
}

/// `25.3 GB`.
pub(super) fn bytes_text(bytes: u64) -> String {
    figure(real(bytes), "B")
}
