use super::*;

fn new(kind: FileKind, mode: u32) -> TargetMode {
    TargetMode { kind, mode, inherits_acl: true, is_way: false, lent: 0 }
}

#[test]
fn what_is_to_have_another_owner_begins_as_nobody_elses() {
    let preserve = Preserve { ownership: true, ..Preserve::default() };
    let kinds = [FileKind::Regular, FileKind::Directory, FileKind::Fifo, FileKind::Socket];
    for new in kinds.map(|kind| new(kind, 0o777)) {
        assert_eq!(new.first_mode(preserve), 0o700, "{:?}", new.kind);
    }
    let refused = Preserve { refuse_mode: true, ..preserve };
    assert_eq!(new(FileKind::Regular, 0o777).first_mode(refused), 0o600);
}

#[test]
fn what_keeps_its_mode_begins_as_its_owners_alone() {
    let preserve = Preserve { mode: true, ..Preserve::default() };
    assert_eq!(new(FileKind::Directory, 0o077).first_mode(preserve), 0o700);
    assert_eq!(new(FileKind::Regular, 0o777).first_mode(preserve), 0o600);
}

#[test]
fn nobody_else_writes_to_a_folder_that_is_being_filled() {
    for (inherits_acl, refuse_mode) in [(false, false), (false, true), (true, false), (true, true)] {
        let folder =
            TargetMode { kind: FileKind::Directory, mode: 0o777, inherits_acl, is_way: false, lent: 0 };
        let preserve = Preserve { refuse_mode, ..Preserve::default() };
        assert_eq!(folder.first_mode(preserve), 0o755);
    }
}
