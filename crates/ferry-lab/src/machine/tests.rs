use std::path::Path;

use super::Machine;
use super::mounts::{Mount, covering};
use super::place::chosen;
use super::processor::{count, quota};

#[test]
fn this_machine_can_be_looked_at() {
    let machine = Machine::look(Path::new("/"));
    assert!(!machine.kernel.is_empty() && !machine.place.filesystem.is_empty(), "{machine:?}");
    assert!(machine.processor.usable >= 1 && machine.processor.usable <= machine.processor.count);
    assert!(machine.memory.total_bytes > machine.memory.available_bytes);
    let memory = Machine::look(Path::new("/dev/shm"));
    assert!(memory.place.in_memory, "{memory:?}");
}

#[test]
fn a_path_is_on_the_last_mount_above_it() {
    let lines = "22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n\
                 30 22 0:5 / /a\\040b rw - tmpfs tmpfs rw,size=1k\n\
                 31 30 7:0 / /a\\040b rw - xfs /dev/loop0 rw\n\
                 nonsense";
    let mounts: Vec<Mount> = lines.lines().filter_map(Mount::parse).collect();
    assert_eq!(mounts.len(), 3);
    assert_eq!(mounts[0].options, ["rw", "relatime", "discard"]);
    let on = |path: &str| covering(&mounts, Path::new(path)).unwrap().filesystem.clone();
    assert_eq!((on("/a b/c"), on("/a"), on("/a bc")), ("xfs".into(), "ext4".into(), "ext4".into()));
}

#[test]
fn small_notations_are_understood() {
    assert_eq!((count("0-3,8"), count("0"), count("")), (5, 1, 0));
    assert_eq!((quota("150000 100000"), quota("max 100000")), (Some(150), None));
    assert_eq!((chosen("none [mq-deadline] bfq"), chosen("none")), ("mq-deadline".into(), "none".into()));
}
