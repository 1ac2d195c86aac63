//! Without io_uring, as in containers: the same copies, and no message unless requested.

use std::process::{Command, Output};

use crate::scene::{FERRY, Stage, ferry, skip, text};

/// Runs a program with `io_uring_setup`, `io_uring_enter` and `io_uring_register` (425 to 427) failing with
/// EPERM: a seccomp(2) filter on the call number, the first field of `seccomp_data`.
pub(crate) const FILTER: &str = r#"
    my $prctl = `uname -m` =~ /aarch64/ ? 167 : 157;
    my @filter = ([0x20, 0, 0, 0], [0x35, 0, 2, 425], [0x25, 1, 0, 427], [0x06, 0, 0, 0x50001], [0x06, 0, 0, 0x7fff0000]);
    my $code = join '', map { pack 'SCCL', @$_ } @filter;
    my $program = pack 'S x6 P', scalar @filter, $code;
    exit 99 if syscall($prctl, 38, 1, 0, 0, 0) != 0 or syscall($prctl, 22, 2, $program) != 0;
    exec @ARGV;
"#;

/// Runs ferry under the filter in a fresh scene; `None` if filters are unsupported.
fn filtered(stage: &Stage, arguments: &[&str]) -> Option<Output> {
    stage.set();
    let mut command = Command::new("perl");
    command.args(["-e", FILTER, FERRY]).args(arguments).current_dir(stage.root());
    match command.output() {
        Ok(output) if output.status.code() == Some(99) => skip("no seccomp filter can be set"),
        Ok(output) => Some(output),
        Err(_) => skip("there is no perl to set a seccomp filter"),
    }
}

#[test]
fn copies_are_the_same_and_nothing_is_said() {
    let stage = Stage::new();
    for options in [&[][..], &["--workers=3"], &["--route=ring"], &["--fsync"]] {
        let Some(output) = filtered(&stage, &[&["cp", "-a"], options, &["src", "new"]].concat()) else {
            return;
        };
        let said = (output.status.code(), text(&output.stdout), text(&output.stderr));
        assert_eq!(said, (Some(0), "", ""), "{options:?}");
        let output = ferry(&stage.root(), &["verify", "src", "new"]);
        assert!(output.status.success(), "{options:?}: {}", text(&output.stdout));
    }
}

#[test]
fn the_backend_and_its_reason_are_told_when_asked_for() {
    let stage = Stage::new();
    for option in ["--stats", "--explain", "--stats=json"] {
        let Some(output) = filtered(&stage, &["cp", "-a", option, "src", "new"]) else { return };
        assert!(output.status.success());
        let told = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(told.contains("posix") && told.contains("io_uring"), "{option}: {told}");
    }
}

#[test]
fn io_uring_asked_for_by_name_is_refused_with_a_remedy() {
    let stage = Stage::new();
    let Some(output) = filtered(&stage, &["cp", "-a", "--backend=uring", "src", "new"]) else { return };
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.starts_with("ferry cp: ") && said.contains("--backend posix"), "{said}");
    assert!(!stage.root().join("new").exists());
}
