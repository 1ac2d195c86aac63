"""sync, plan, apply and verify, also against the command on random trees."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import unittest
from typing import Any, List

import ferry
from trees import FolderTest, described, random_tree, write


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command of the wheel."""
    program = os.path.join(os.path.dirname(sys.executable), "ferry")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


class SyncTest(FolderTest):
    def test_it_equals_the_command_on_random_trees(self) -> None:
        for seed in range(8):
            with self.subTest(seed=seed):
                source, ours, theirs = self.path("source"), self.path("ours"), self.path("theirs")
                random_tree(source, seed)
                random_tree(ours, seed + 100)
                shutil.copytree(ours, theirs, symlinks=True)
                result = ferry.sync(source, ours, delete="now")
                self.assertEqual(command("sync", "--delete=now", source, theirs).returncode, 0)
                self.assertEqual(described(ours), described(theirs))
                self.assertEqual(described(source), described(ours))
                self.assertTrue(result.ok and result.created and result.deleted)
                self.assertTrue(ferry.verify(source, ours))
                again = ferry.sync(source, ours, delete="now")
                self.assertEqual((again.created, again.replaced, again.deleted), (0, 0, 0))
                for folder in (source, ours, theirs):
                    shutil.rmtree(folder)

    def test_copies_equal_the_commands_on_random_trees(self) -> None:
        for seed in range(8):
            with self.subTest(seed=seed):
                source, ours, theirs = self.path("source"), self.path("ours"), self.path("theirs")
                random_tree(source, seed)
                for symlinks, follow in ((True, "-P"), (False, "-L")):
                    ferry.copytree(source, ours, symlinks=symlinks)
                    done = command("cp", "-r", follow, "--preserve=mode,timestamps,xattr", "-T", source, theirs)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(described(ours), described(theirs))
                    shutil.rmtree(ours)
                    shutil.rmtree(theirs)
                shutil.rmtree(source)

    def test_deleted_entries_go_to_the_trash(self) -> None:
        write(self.path("source", "new"))
        write(self.path("target", "old"))
        result = ferry.sync(self.path("source"), self.path("target"), delete=True)
        assert result.trash is not None
        self.assertTrue(os.path.exists(os.path.join(result.trash, "old")))
        self.assertEqual((result.created, result.deleted), (1, 1))

    def test_bounds_of_deletions(self) -> None:
        write(self.path("source", "new"))
        for name in "abc":
            write(self.path("target", name))
        with self.assertRaises(ferry.PathsFailed) as caught:
            ferry.sync(self.path("source"), self.path("target"), delete="now", max_delete=2)
        self.assertEqual(caught.exception.result.too_many, (3, 2))
        self.assertTrue(os.path.exists(self.path("target", "a")))
        os.unlink(self.path("source", "new"))
        with self.assertRaisesRegex(ferry.Refused, "is empty"):
            ferry.sync(self.path("source"), self.path("target"), delete="now")
        ferry.sync(self.path("source"), self.path("target"), delete="now", allow_empty=True, max_delete="any")
        self.assertEqual(os.listdir(self.path("target")), [])

    def test_selections(self) -> None:
        for name, size in (("a.txt", 10), ("b.py", 20), ("keep.txt", 30), ("sub/c.txt", 5)):
            write(self.path("source", name), bytes(size))
        ferry.sync(self.path("source"), self.path("one"), exclude=["*.txt", "!keep.txt"])
        self.assertEqual(sorted(described(self.path("one"))), [".", "b.py", "keep.txt", "sub"])
        ferry.sync(self.path("source"), self.path("two"), min_size=15, max_size=25)
        self.assertEqual(sorted(described(self.path("two"))), [".", "b.py", "sub"])
        os.utime(self.path("source", "a.txt"), (10**9, 10**9))
        ferry.sync(self.path("source"), self.path("three"), newer_than=1.5e9)
        self.assertNotIn("a.txt", described(self.path("three")))

    def test_comparisons(self) -> None:
        write(self.path("source", "file"), b"one")
        write(self.path("target", "file"), b"two")
        time = (10**9, 10**9)
        for path in (self.path("source", "file"), self.path("target", "file"), self.path("source"), self.path("target")):
            os.utime(path, time)
        self.assertEqual(ferry.sync(self.path("source"), self.path("target")).replaced, 0)
        self.assertEqual(ferry.sync(self.path("source"), self.path("target"), compare="content").replaced, 1)
        with self.assertRaisesRegex(ValueError, "compare"):
            ferry.sync(self.path("source"), self.path("target"), compare="weight")

    def test_refusals(self) -> None:
        write(self.path("source", "file"))
        os.symlink("loop", self.path("loop"))
        for source, target in (("loop", "target"), ("missing", "target"), ("source", "source/inner"), ("source", "source")):
            with self.subTest(source=source, target=target), self.assertRaises(ferry.Refused):
                ferry.sync(self.path(source), self.path(target))

    def test_a_plan_is_what_a_sync_does(self) -> None:
        random_tree(self.path("source"), 1)
        random_tree(self.path("target"), 2)
        before = described(self.path("target"))
        plan = ferry.plan(self.path("source"), self.path("target"), delete=True, file=self.path("plan"))
        self.assertEqual(described(self.path("target")), before)
        done: List[Any] = []
        with ferry.sync_job(self.path("source"), self.path("target"), delete="now") as job:
            done = [event for event in job if isinstance(event, ferry.Action)]
        self.assertEqual(sorted((a.verb, a.path) for a in plan.actions), sorted((a.verb, a.path) for a in done))
        self.assertFalse(ferry.plan(self.path("source"), self.path("target"), delete=True))

    def test_a_plan_is_applied_and_stale_actions_fail(self) -> None:
        write(self.path("source", "a"), b"new")
        write(self.path("target", "a"), b"older")
        ferry.plan(self.path("source"), self.path("target"), file=self.path("plan"))
        self.assertTrue(ferry.apply(self.path("plan")).ok)
        with self.assertRaises(ferry.PathsFailed):
            ferry.apply(self.path("plan"))
        with self.assertRaisesRegex(ferry.Refused, "cannot open"):
            ferry.apply(self.path("missing"))

    def test_a_time_limit_ends_a_run(self) -> None:
        write(self.path("source", "file"), bytes(20_000_000))
        with self.assertRaisesRegex(ferry.PathsFailed, "time limit"):
            ferry.sync(self.path("source"), self.path("target"), bandwidth=100_000, time_limit=0.3)

    def test_wrong_arguments(self) -> None:
        for options in (
            {"max_delete": 1}, {"delete": "later"}, {"delete": "now", "trash": True}, {"bandwidth": 0},
            {"time_limit": -1.0}, {"exclude": ["["]}, {"min_size": 2, "max_size": 1},
        ):
            with self.subTest(options=options), self.assertRaises(ValueError):
                ferry.sync(self.folder, self.path("target"), **options)  # type: ignore[arg-type]
        with self.assertRaises(TypeError):
            ferry.sync(self.folder, self.path("target"), exclude="*.txt")
        with self.assertRaises(ValueError):
            ferry.sync("", self.path("target"))


class VerifyTest(FolderTest):
    def test_differences(self) -> None:
        random_tree(self.path("source"), 3)
        ferry.sync(self.path("source"), self.path("target"))
        self.assertTrue(ferry.verify(self.path("source"), self.path("target")))
        os.chmod(self.path("target", "first"), 0o600)
        write(self.path("target", "extra \udcff\\"))
        result = ferry.verify(self.path("source"), self.path("target"), ignore=["times", "owner"])
        self.assertFalse(result)
        self.assertEqual(result.verdict, "different")
        found = {(difference.path, difference.kind) for difference in result.differences}
        self.assertIn(("extra \udcff\\", "extra"), found)
        told = command("verify", "--ignore=times,owner", "--quiet", self.path("source"), self.path("target"))
        self.assertEqual(told.returncode, 1)
        self.assertTrue(all(difference.message for difference in result.differences))

    def test_parts_and_errors(self) -> None:
        write(self.path("a", "file"))
        write(self.path("b", "file"), b"other!!")
        parts = ["content", "mode", "owner", "times", "xattrs", "acls", "links", "holes"]
        self.assertTrue(ferry.verify(self.path("a"), self.path("b"), ignore=parts))
        self.assertFalse(ferry.verify(self.path("a"), self.path("b"), ignore=parts[1:]))
        with self.assertRaisesRegex(ValueError, "weight"):
            ferry.verify(self.path("a"), self.path("b"), ignore=["weight"])
        with self.assertRaisesRegex(ferry.Refused, os.strerror(errno.ENOENT)):
            ferry.verify(self.path("a"), self.path("missing"))

    def test_a_job(self) -> None:
        random_tree(self.path("a"), 4)
        with ferry.verify_job(self.path("a"), self.path("a")) as job:
            self.assertIsInstance(list(job)[-1], ferry.End)
        self.assertTrue(job.result())


if __name__ == "__main__":
    unittest.main()
