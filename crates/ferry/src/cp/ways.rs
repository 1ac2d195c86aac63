//! Explains by which calls the bytes of large files moved.

use ferry_io::Tried;

use crate::units::bytes;

/// Explains the ways between one pair of filesystems, the leader first: what was tried, and what was kept.
pub(super) fn explain(tried: &[Tried]) -> String {
    let Some((kept, others)) = tried.split_first() else { return String::new() };
    let ways = tried.len();
    let kept = format!("{}: {}/s", kept.way.calls(), bytes(kept.speed()));
    let Some(next) = others.first() else {
        return format!("large files: {kept}; nothing else was tried");
    };
    let next = match relative_time(next) {
        None => "no comparison was finished".to_owned(),
        Some(time) => format!("{} took {time:.2} times as long when last compared", next.way.calls()),
    };
    format!("large files: tried {ways} ways; kept {kept}; {next}")
}

/// Returns the time of a way divided by that of the kept way, when they were last compared.
pub(super) fn relative_time(tried: &Tried) -> Option<f64> {
    let percent = u32::try_from(tried.percent?).unwrap_or(u32::MAX);
    Some(f64::from(percent) / 100.0)
}

#[cfg(test)]
mod tests {
    use ferry_io::Way;

    use super::*;

    #[test]
    fn the_kept_way_comes_first() {
        let tried = |way, bytes, percent| Tried { way, bytes, took_ns: 1_000_000_000, percent };
        let mapped = tried(Way::Mapped128, 3_800_000_000, None);
        // Its mean is the higher one, from moments at which all ways were faster.
        let kernel = tried(Way::Kernel, 4_100_000_000, Some(131));
        assert_eq!(
            explain(&[mapped, kernel]),
            "large files: tried 2 ways; kept writes of 128 KiB from a mapping: 3.8 GB/s; \
             copy_file_range took 1.31 times as long when last compared"
        );
        let unfinished = tried(Way::Kernel, 1_000_000, None);
        assert_eq!(
            explain(&[mapped, unfinished]),
            "large files: tried 2 ways; kept writes of 128 KiB from a mapping: 3.8 GB/s; no comparison was finished"
        );
        assert_eq!(explain(&[kernel]), "large files: copy_file_range: 4.1 GB/s; nothing else was tried");
    }
}
