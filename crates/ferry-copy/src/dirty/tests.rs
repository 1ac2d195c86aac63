use super::*;

#[test]
fn it_begins_where_the_kernel_begins_to_slow_writers() {
    let bounds = Bounds::between(2 << 30, 4 << 30, 20 << 30);
    assert_eq!(bounds, Bounds { begins: 3 << 30, pieces: 1 << 30, fills: 10 << 30 });
    // In a group with little memory.
    let bounds = Bounds::between(12 << 20, 24 << 20, 120 << 20);
    assert_eq!(bounds, Bounds { begins: 18 << 20, pieces: 9 << 20, fills: 60 << 20 });
}

#[test]
fn a_background_limit_above_the_other_counts_as_half_of_it() {
    assert_eq!(Bounds::between(8 << 20, 4 << 20, 20 << 20).begins, 3 << 20);
}

#[test]
fn files_share_their_pieces() {
    let small = [(0, 32 << 20), (1, 32 << 20), (2, 16 << 20), (64, 1 << 20)];
    let large = [(1, 64 << 20), (8, 64 << 20), (16, 32 << 20), (128, 4 << 20)];
    for (pieces, expected) in [(64 << 20, small), (MOST, large)] {
        let dirty = Dirty::default();
        dirty.bounds.set(Bounds { begins: 0, pieces, fills: 0 }).unwrap();
        for (files, piece) in expected {
            dirty.files.store(files, Ordering::Relaxed);
            assert_eq!(dirty.piece(), piece, "{files} files, {pieces} B");
        }
    }
}

#[test]
fn lines_of_other_controllers_say_nothing_of_memory() {
    for line in ["4:cpu,cpuacct:/a", "1:name=systemd:/", "", "nonsense"] {
        assert_eq!(limit_of_line(line), None, "{line}");
    }
}
