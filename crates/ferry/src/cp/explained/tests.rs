use std::path::Path;

use super::*;

const MEMORY: &str = "past the page cache: the copy is larger than the available memory";

fn ways() -> Ways {
    let mut ways = Ways::default();
    let mut add = |method, why, bytes, files| {
        let explained = Explained { source: Path::new("source"), method, why, bytes };
        (0..files).for_each(|_| ways.add(&explained));
    };
    add(Method::Offload, "the kernel copies it", 85_000_000, 10);
    add(Method::Direct, MEMORY, 4_000_000_000, 3);
    add(Method::Whole, "it fits into a block", 1_000, 1_200);
    add(Method::Whole, "it is a stream", 7, 1);
    ways
}

#[test]
fn files_are_counted_by_way_and_reason() {
    let expected = "\
way              files   bytes  reason
whole            1,200  1.2 MB  it fits into a block
copy_file_range     10  850 MB  the kernel copies it
direct               3   12 GB  past the page cache: the copy is larger than the
                                available memory
whole                1     7 B  it is a stream";
    assert_eq!(ways().table(80).unwrap(), expected);
    assert_eq!(Ways::default().table(80), None);
}

#[test]
fn the_table_fits_the_terminal() {
    let expected = "\
way              files   bytes
  reason
whole            1,200  1.2 MB
  it fits into a block
copy_file_range     10  850 MB
  the kernel copies it
direct               3   12 GB
  past the page cache: the copy is
  larger than the available memory
whole                1     7 B
  it is a stream";
    assert_eq!(ways().table(40).unwrap(), expected);
    let wide = ways().table(200).unwrap();
    assert!(wide.lines().any(|line| line == format!("direct               3   12 GB  {MEMORY}")), "{wide}");
    assert_eq!(wide.lines().count(), 5);
}
