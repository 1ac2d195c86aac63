use std::num::NonZeroU64;

use super::*;
use crate::naming::{Backup, Control};
use crate::options::{Dereference, Preserve};

type Change = fn(&mut Options);

fn plain() -> Options {
    let preserve = Preserve { timestamps: true, links: true, ..Preserve::default() };
    Options { recursive: true, dereference: Dereference::Never, preserve, ..Options::default() }
}

#[test]
fn each_option_that_concerns_single_files_keeps_them_out_of_runs() {
    let changes: [(&str, Change); 17] = [
        ("atomic", |options| options.atomic = true),
        ("attributes_only", |options| options.attributes_only = true),
        ("backup", |options| {
            options.backup = Some(Backup { control: Control::Simple, suffix: "~".into() });
        }),
        ("bandwidth", |options| options.bandwidth = NonZeroU64::new(1)),
        ("copy_contents", |options| options.copy_contents = true),
        ("debug", |options| options.debug = true),
        ("explain", |options| options.explain = true),
        ("fsync", |options| options.fsync = true),
        ("verbose", |options| options.verbose = true),
        ("existing", |options| options.existing = Existing::Ask),
        ("hard links", |options| options.make = Make::HardLink),
        ("symbolic links", |options| options.make = Make::SymbolicLink),
        ("reflink", |options| options.reflink = Reflink::Always),
        ("sparse", |options| options.sparse = Sparse::Always),
        ("links followed", |options| options.dereference = Dereference::Always),
        ("owner without mode", |options| options.preserve.ownership = true),
        ("attributes without mode", |options| options.preserve.xattr = true),
    ];
    assert!(let_run(&plain()));
    for (name, change) in changes {
        let mut options = plain();
        change(&mut options);
        assert!(!let_run(&options), "{name}");
    }
    let allowed: [Change; 5] = [
        |options| {
            options.preserve = Preserve { mode: true, ownership: true, xattr: true, ..options.preserve }
        },
        |options| options.update = true,
        |options| options.existing = Existing::Keep,
        |options| options.reflink = Reflink::Never,
        |options| options.sparse = Sparse::Never,
    ];
    for change in allowed {
        let mut options = plain();
        change(&mut options);
        assert!(let_run(&options), "{options:?}");
    }
}
