//! Explains by which calls the bytes of large files moved.

use ferry_io::Tried;

use crate::units::bytes;

/// Explains the ways between one pair of filesystems, the leader first: what was tried, and what was kept.
pub(super) fn explain(tried: &[Tried]) -> String {
    let Some((kept, others)) = tried.split_first() else { return String::new() };
    let ways = tried.len();
    let kept = format!("{}: {}", kept.way.calls(), speed(kept));
    match others.first() {
        None => format!("large files: {kept}; nothing else was tried"),
        Some(next) => {
            let next = format!("{} {}", next.way.calls(), speed(next));
            format!("large files: tried {ways} ways; kept {kept}, next best {next}")
        }
    }
}

fn speed(tried: &Tried) -> String {
    format!("{}/s", bytes(tried.speed()))
}

#[cfg(test)]
mod tests {
    use ferry_io::Way;

    use super::*;

    #[test]
    fn the_kept_way_comes_first() {
        let tried = |way, bytes| Tried { way, bytes, took_ns: 1_000_000_000 };
        let mapped = tried(Way::Mapped128, 3_800_000_000);
        let kernel = tried(Way::Kernel, 2_900_000_000);
        assert_eq!(
            explain(&[mapped, kernel]),
            "large files: tried 2 ways; kept writes of 128 KiB from a mapping: 3.8 GB/s, next best copy_file_range 2.9 GB/s"
        );
        assert_eq!(explain(&[kernel]), "large files: copy_file_range: 2.9 GB/s; nothing else was tried");
    }
}
