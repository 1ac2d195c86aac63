//! Text of the help of `ferry plan`.

use crate::arguments::Manual;

pub(crate) const MANUAL: Manual = Manual {
    name: "ferry plan",
    about: "Split a copy into parts for many machines or jobs, without MPI",
    usage: "ferry plan --split N [OPTION]... SOURCE TARGET LISTS\n       ferry plan --open [OPTION]... LISTS\n       \
            ferry plan --part K [OPTION]... LISTS\n       ferry plan --close [OPTION]... LISTS",
    examples: &[
        ("ferry plan --split 16 /scratch/data /archive/data lists", "Write lists for 16 parts"),
        ("ferry plan --open lists", "Make directories and large files before the parts"),
        ("ferry plan --part 3 lists", "Copy the third part, on any machine that has both trees"),
        ("ferry plan --close lists", "Finish the copy after all parts"),
    ],
    usual: &[],
    after: "\
Take the steps in this order: --split, --open, --part for each part, --close. Parts may run at the same time, in any \
order. The steps together do what `ferry sync SOURCE TARGET` does. All machines need the same paths for SOURCE, TARGET \
and LISTS.

LISTS is a new directory. `part-K` has the names of part K, relative to SOURCE, each followed by a NUL byte, as \
`ferry sync --null --files-from`, `xargs -0` and `tar --null --files-from` read them. `ranges-K` has its ranges of large \
files. Parts have about the same cost: the bytes, and 128 KiB more for each entry. All names of a file with hard links \
are in one part.

A part that failed or was stopped can be run again. --close names the parts that have not succeeded, and does nothing \
then; with --rest it copies what they lack. It also copies what has changed since --split; if that is a large file, its \
parts do not succeed, and --rest is needed.

Nothing is deleted. To delete what SOURCE lacks, run `ferry sync --delete SOURCE TARGET` afterwards.

Exit status:
  0    the step was done
  1    something was not copied, or the step was refused
  2    the command line is wrong
  130  interrupted by SIGINT (ferry ends by the signal); run the step again",
};
