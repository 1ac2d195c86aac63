//! Programs that are started during a run.

use std::process::Command;

use ferry_io::OpenHow;

use super::place::{name, on_the_kernel, pattern};

#[test]
fn a_program_that_is_started_inherits_no_descriptor() {
    on_the_kernel(|place| {
        place.make_file("file", &pattern(100_000));
        place.run(async |io, folder| {
            let file = folder.open(&name("file"), OpenHow::read()).await.expect("it is there");
            // Opens the ring, or starts a thread of the pool.
            let (_block, count) = file.read_at(io.block().await.expect("not cancelled"), 0).await;
            count.expect("it is read");
            assert_eq!(place.open_descriptors().len(), 2, "the folder and the file");
            let listed = Command::new("ls").args(["-l", "/proc/self/fd"]).output().expect("ls(1)");
            let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
            let here = place.path().display().to_string();
            assert!(listed.contains(" -> "), "{listed}");
            let inherited = [here.as_str(), "io_uring", "eventfd"];
            assert!(inherited.iter().all(|target| !listed.contains(target)), "{listed}");
        });
    });
}
