"""Trees for tests: made from a seed, and described so that two of them can be compared."""

from __future__ import annotations

import hashlib
import os
import random
import stat
import tempfile
import unittest
from typing import Dict, Tuple

Entry = Tuple[object, ...]


def write(path: str, content: bytes = b"content") -> str:
    """Writes a file, and makes the folders above it."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    return path


def random_tree(root: str, seed: int, entries: int = 60, links: bool = True) -> None:
    """Makes files, folders and links with attributes of their own."""
    chance = random.Random(seed)
    os.makedirs(root)
    folders, files = [root], [write(os.path.join(root, "first"))]
    for number in range(entries):
        path = os.path.join(chance.choice(folders), "%d-%s" % (number, chance.choice("aäb\n ")))
        kind = chance.random()
        if kind < 0.2:
            os.mkdir(path)
            folders.append(path)
        elif kind < 0.35 and links:
            to = chance.choice(files)
            os.symlink(os.path.relpath(to, os.path.dirname(path)), path)
        else:
            size = chance.choice([0, 1, 4096, 5000, 70_000, 300_000])
            files.append(write(path, chance.randbytes(size)))
    for path in files:
        os.chmod(path, chance.choice([0o644, 0o600, 0o755, 0o444, 0o4755]))
        try:
            os.setxattr(path, "user.seed", b"%d" % seed)
        except OSError:
            # The filesystem has no attributes of users, or the file is read-only.
            pass
    for path in files + folders[::-1]:
        time = chance.randrange(10**18, 2 * 10**18)
        os.utime(path, ns=(time, time))
    for path in folders[1:]:
        os.chmod(path, chance.choice([0o755, 0o700, 0o2750]))


def described(root: str) -> Dict[str, Entry]:
    """Returns all entries by their paths: type, mode, time, attributes, and content."""
    found: Dict[str, Entry] = {}
    paths = [root]
    while paths:
        path = paths.pop()
        status = os.lstat(path)
        kind = stat.S_IFMT(status.st_mode)
        name = os.path.relpath(path, root)
        attributes = tuple(
            (key, os.getxattr(path, key, follow_symlinks=False))
            for key in sorted(os.listxattr(path, follow_symlinks=False))
        )
        content: object = None
        if stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        elif stat.S_ISREG(status.st_mode):
            with open(path, "rb") as file:
                content = hashlib.sha256(file.read()).hexdigest()
        elif stat.S_ISDIR(status.st_mode):
            paths.extend(os.path.join(path, entry) for entry in os.listdir(path))
        # The mode of a link is always the same.
        found[name] = (kind, stat.S_IMODE(status.st_mode), status.st_mtime_ns, attributes, content)
    return found


class FolderTest(unittest.TestCase):
    """A test in an empty folder, which is removed afterwards."""

    maxDiff = None

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)

    def path(self, *parts: str) -> str:
        """Returns a path in the folder."""
        return os.path.join(self.folder, *parts)


def skip(test: unittest.TestCase, reason: str) -> None:
    """Skips a test, with a line that the whole suite looks for."""
    print(f"SKIP: {test.id()}: {reason}")
    test.skipTest(reason)
