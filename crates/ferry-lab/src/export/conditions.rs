//! The line on the conditions of a record.

use crate::record::{Record, Scale};
use crate::units::{figure, real};
use crate::warnings::counted;

/// One line on the machine, the number of runs and the scale.
pub(super) fn machine(record: &Record) -> String {
    let machine = &record.machine;
    let (place, processor) = (&machine.place, &machine.processor);
    let scale = match record.scale {
        Scale::Default => "",
        Scale::Quick => ", quick",
        Scale::AsPublished => ", as published",
    };
    let device = place.device.as_ref().map(|device| format!(" on {}", device.name)).unwrap_or_default();
    format!(
        "Linux {}, {} x {}, {} of memory, {}{device}; {} of each cell{scale}, seed {}, {}",
        machine.kernel,
        processor.usable,
        if processor.model.is_empty() { "processor" } else { &processor.model },
        figure(real(machine.memory.total_bytes), "B"),
        place.filesystem,
        counted(usize::try_from(record.runs).unwrap_or(usize::MAX), "run"),
        record.seed,
        record.started,
    )
}
