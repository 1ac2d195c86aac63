//! Text of the help of `ferry sync`.

use crate::arguments::Manual;

pub(crate) const MANUAL: Manual = Manual {
    name: "ferry sync",
    about: "Update TARGET with the contents of SOURCE, with or without a trailing slash",
    usage: "ferry sync [OPTION]... SOURCE TARGET\n       ferry sync [OPTION]... --apply PLAN\n       \
            ferry sync [OPTION]... --undo TRASH [TARGET]",
    examples: &[
        ("ferry sync photos backup", "Copy what is new or has changed"),
        ("ferry sync --delete -n photos backup", "Print what would be done, deletions too"),
        ("ferry sync --delete photos backup", "Also move to the trash what photos lacks"),
        ("ferry sync --exclude '*.tmp' photos backup", "Leave out temporary files"),
        (
            "ferry sync --manifest photos.b3 photos backup",
            "Also write the hashes of all files; `ferry verify` checks them",
        ),
        ("find . -newer last | ferry sync --files-from - . /backup", "Copy what find has found"),
        ("ferry sync --undo backup/.ferry-trash/DATE", "Move everything in that trash back"),
    ],
    usual: &[
        "dry-run",
        "verbose",
        "checksum",
        "undo",
        "newer",
        "fsync",
        "verify",
        "manifest",
        "delete",
        "trash",
        "max-delete",
        "exclude",
        "include",
        "gitignore",
        "one-file-system",
        "explain",
        "bwlimit",
        "max-load",
        "time-limit",
        "progress",
        "help",
        "version",
    ],
    after: "\
The contents of SOURCE go into TARGET, whether SOURCE ends in a slash or not. TARGET is made if it is missing. New \
entries are copied as by `cp -a`. A changed file is replaced in one step: its name leads to the old file or to the new \
one, and never to a part. If only attributes differ, only attributes are set.

Files are equal if type, size and modification time are equal, the time as exactly as the filesystem of TARGET stores \
it. Owner, mode, ACLs, extended attributes and hard links are always compared. A file that an interrupted run left \
incomplete is replaced, whatever its time is.

Nothing is deleted without --delete. With it, entries that SOURCE lacks are moved to the trash once everything else is \
done; so are replaced entries. Nothing is deleted in a directory that could not be listed, nor in another filesystem \
that is mounted in TARGET, nor if SOURCE is empty, nor if more than --max-delete entries would go. Before an entry is \
replaced or deleted it is compared with the one that was examined; one that was changed meanwhile stays, and is \
reported.

Options can leave entries out, by name, size, time or filesystem. What is left out is neither copied nor compared, and \
stays in TARGET as it is, unless a pattern leaves it out and --delete-excluded is given. An excluded directory is not \
entered.

--dry-run and -v print one line for each action:
  create      copy an entry that TARGET lacks
  replace     replace a file, and in parentheses why
  exchange    replace an entry by one of another type
  attributes  set attributes only
  delete      take away an entry that SOURCE lacks

Exit status:
  0    TARGET is equal to SOURCE, apart from entries that were to stay
  1    something was not copied, changed or deleted
  2    the command line is wrong
  124  stopped by --time-limit; the same command continues
  130  interrupted by SIGINT (ferry ends by the signal); the same command continues",
};
