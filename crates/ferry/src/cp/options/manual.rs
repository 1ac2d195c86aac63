//! Text of the help of `ferry cp`.

use crate::arguments::Manual;

pub(crate) const MANUAL: Manual = Manual {
    name: "ferry cp",
    about: "Copy SOURCE to DEST, or several SOURCEs into DIRECTORY",
    usage: "ferry cp [OPTION]... [-T] SOURCE DEST\n       ferry cp [OPTION]... SOURCE... DIRECTORY\n       \
            ferry cp [OPTION]... -t DIRECTORY SOURCE...",
    examples: &[
        ("ferry cp -a photos backup", "Copy a directory with all attributes"),
        ("ferry cp -auT --progress photos backup", "Copy again what has changed, and show progress"),
        (
            "ferry cp -a --verify --manifest photos.b3 photos checked",
            "Compare each copied file with its source, and keep the hashes",
        ),
        ("ferry cp -a --atomic --fsync photos durable", "Survive a crash: only complete files have a name"),
        ("ferry cp -a --bwlimit=20M photos slow", "Leave most of the device to other programs"),
        (
            "ferry cp -a --trace copy.trace photos traced",
            "Record the copy; `ferry trace show` tells where time went",
        ),
    ],
    usual: &[
        "archive",
        "force",
        "interactive",
        "no-clobber",
        "no-dereference",
        "preserve",
        "recursive",
        "reflink",
        "update",
        "verbose",
        "help",
        "version",
        "progress",
        "stats",
        "explain",
        "trace",
        "atomic",
        "verify",
        "manifest",
        "bwlimit",
        "direct",
        "fsync",
    ],
    after: "\
Options have the same meaning as in GNU cp. LIST is a comma-separated list of mode, ownership, timestamps, \
links, xattr and all. WHEN is auto, always or never. Long options and these words may be abbreviated.

CONTROL selects how backups are named:
  none, off       no backups, even with --backup
  simple, never   FILE~, or FILE and the suffix
  numbered, t     FILE.~1~, FILE.~2~ and so on
  existing, nil   numbered if FILE has a numbered backup, otherwise simple

Exit status:
  0    everything was copied
  1    something was not copied, or the command line is wrong
  130  interrupted by SIGINT (ferry ends by the signal)

A copy that fails or is interrupted (SIGINT, SIGTERM, SIGHUP) removes each incomplete new target. An \
incomplete target that existed before keeps its name. It gets the oldest time that its filesystem can store \
and is reported, so that `cp -u` copies it again.

Environment:
  VERSION_CONTROL         default of CONTROL
  SIMPLE_BACKUP_SUFFIX    default suffix of simple backups
  FERRY_TRACE             file to record the run in, unless --trace is given
  FERRY_PROFILES          directory of the profiles of `ferry tune`, in place of the default ones
  POSIXLY_CORRECT         if set, the first operand ends the options, and dangling links are followed
  LC_ALL, LC_CTYPE, LANG  the first that is not empty selects ASCII or UTF-8 quotation marks

Output of -v, --explain and --stats=json (the last line) goes to standard output. All other messages go to \
standard error.",
};
