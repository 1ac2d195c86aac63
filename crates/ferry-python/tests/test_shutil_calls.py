"""ferry's functions have shutil's results, exceptions and side effects."""

from __future__ import annotations

import ctypes
import errno
import inspect
import os
import pathlib
import shutil
import socket
import time
import traceback
import unittest
from typing import Any, Callable, Dict, List, Tuple

import ferry
from trees import Entry, FolderTest, described, random_tree, write


def become_another_user() -> None:
    """Gives up root. The process stays one that may look into its own /proc folder."""
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    set_dumpable = 4
    ctypes.CDLL(None).prctl(set_dumpable, 1)


class TreeTest(FolderTest):
    """Compares `ferry.copytree` with `shutil.copytree`."""

    def reasons(self, copytree: Callable[..., Any], *arguments: Any, **options: Any) -> List[Tuple[Any, ...]]:
        """Returns the list of `shutil.Error`, sorted; an empty one without an exception."""
        try:
            copytree(*arguments, **options)
        except shutil.Error as error:
            return sorted(error.args[0])
        return []

    @staticmethod
    def without_new_times(tree: Dict[str, Entry]) -> Dict[str, Entry]:
        """Returns a tree without the times of the last hour, which differ from copy to copy."""
        new = time.time_ns() - 3600 * 10**9

        def older(entry: Entry) -> Entry:
            is_new = isinstance(entry[2], int) and new < entry[2] < new + 2 * 3600 * 10**9
            return (*entry[:2], "new", *entry[3:]) if is_new else entry

        return {name: older(entry) for name, entry in tree.items()}

    def compare(self, source: str, make: Callable[[str], None] = lambda target: None, **options: Any) -> None:
        """Copies by both into targets that `make` prepared, and compares trees and reasons."""
        found = []
        for name, copytree in (("shutil", shutil.copytree), ("ferry", ferry.copytree)):
            target = self.path(name, "target")
            make(target)
            reasons = self.reasons(copytree, source, target, **options)
            # Both targets have the same length, but not the same name.
            reasons = [tuple(str(part).replace(f"/{name}/", "/X/") for part in reason) for reason in reasons]
            found.append((self.without_new_times(described(target)), reasons))
        self.assertEqual(found[0][0], found[1][0])
        self.assertEqual(found[0][1], found[1][1])

    def test_random_trees_are_copied_as_by_shutil(self) -> None:
        for seed in range(12):
            for symlinks in (False, True):
                with self.subTest(seed=seed, symlinks=symlinks):
                    source = self.path(f"source-{seed}-{symlinks}")
                    random_tree(source, seed)
                    self.compare(source, symlinks=symlinks)
                    shutil.rmtree(self.path("ferry"))
                    shutil.rmtree(self.path("shutil"))

    def test_existing_folders_are_merged_into(self) -> None:
        source = self.path("source")
        random_tree(source, 1)

        def make(target: str) -> None:
            random_tree(target, 2, links=False)
            write(os.path.join(target, "first"), b"a longer content than the new one")
            os.utime(target, ns=(1, 1))

        self.compare(source, make, dirs_exist_ok=True)

    def test_a_link_takes_no_existing_entrys_place(self) -> None:
        source = self.path("source")
        write(os.path.join(source, "file"))
        os.symlink("file", os.path.join(source, "link"))
        self.compare(source, lambda target: None if write(os.path.join(target, "link")) else None,
                     symlinks=True, dirs_exist_ok=True)

    def test_a_file_goes_through_links_of_the_target(self) -> None:
        source = self.path("source")
        for name in ("file", "dangling", "folder/inner"):
            write(os.path.join(source, name), name.encode())

        def make(target: str) -> None:
            os.makedirs(os.path.join(target, "real"))
            write(os.path.join(target, "led to"))
            os.symlink("led to", os.path.join(target, "file"))
            os.symlink("made by it", os.path.join(target, "dangling"))
            os.symlink("real", os.path.join(target, "folder"))

        self.compare(source, make, dirs_exist_ok=True)

    def test_entries_of_other_kinds_in_the_way(self) -> None:
        source = self.path("source")
        for name in ("file over folder", "folder over file/inner", "file over pipe"):
            write(os.path.join(source, name))

        def make(target: str) -> None:
            os.makedirs(os.path.join(target, "file over folder"))
            write(os.path.join(target, "folder over file"))
            os.mkfifo(os.path.join(target, "file over pipe"))

        self.compare(source, make, dirs_exist_ok=True)

    def test_special_files_are_errors(self) -> None:
        source = self.path("source")
        write(os.path.join(source, "file"))
        os.mkfifo(os.path.join(source, "pipe"))
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(os.path.join(source, "socket"))
        self.compare(source)
        self.compare(source, lambda target: shutil.rmtree(target, ignore_errors=True), symlinks=True)

    def test_dangling_links(self) -> None:
        source = self.path("source")
        write(os.path.join(source, "folder", "file"))
        os.symlink("/nothing/there", os.path.join(source, "folder", "dangling"))
        self.compare(source)
        again = lambda target: shutil.rmtree(target)  # noqa: E731
        self.compare(source, again, symlinks=True)
        self.compare(source, again, ignore_dangling_symlinks=True)

    def test_hard_links_become_files(self) -> None:
        source = self.path("source")
        os.link(write(os.path.join(source, "one")), os.path.join(source, "two"))
        self.compare(source)
        self.assertEqual(os.stat(self.path("ferry", "target", "two")).st_nlink, 1)

    def test_a_source_may_be_a_link_to_a_folder(self) -> None:
        random_tree(self.path("source"), 3)
        os.symlink("source", self.path("link"))
        self.compare(self.path("link"), symlinks=True)

    def test_unreadable_files_are_reasons(self) -> None:
        if os.geteuid() != 0:
            source = self.path("source")
            os.chmod(write(os.path.join(source, "closed")), 0)
            self.compare(source)
            return
        # Root may read everything: a child becomes another user.
        source = self.path("source")
        os.chmod(write(os.path.join(source, "closed")), 0)
        write(os.path.join(source, "open"))
        os.chmod(self.folder, 0o777)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                become_another_user()
                self.compare(source)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        with self.assertRaises(AssertionError):
            # The comparison had something to find: as root, nothing is closed.
            self.assertTrue(self.reasons(ferry.copytree, source, self.path("target")))

    def test_ignore_is_called_as_by_shutil(self) -> None:
        source = self.path("source")
        for name in ("a/b/c/file", "a/left out/file", "a/keep", "left out", "d/file.pyc", "d/file.py"):
            write(os.path.join(source, name))
        os.symlink("a", os.path.join(source, "link"))
        for symlinks in (False, True):
            calls: List[List[Any]] = []
            for copytree in (shutil.copytree, ferry.copytree):
                seen: List[Any] = []

                def ignore(folder: Any, names: List[Any], seen: List[Any] = seen) -> List[Any]:
                    seen.append((folder, sorted(names)))
                    return [name for name in names if name == "left out" or name.endswith(".pyc")]

                copytree(source, self.path("target"), ignore=ignore, symlinks=symlinks)
                calls.append([seen, described(self.path("target"))])
                shutil.rmtree(self.path("target"))
            self.assertEqual(calls[0], calls[1])

    def test_ignore_patterns(self) -> None:
        source = self.path("source")
        for name in ("one.txt", "two.py", "folder/three.txt", "folder/four.py"):
            write(os.path.join(source, name))
        self.compare(source, ignore=shutil.ignore_patterns("*.txt"))

    def test_an_exception_of_ignore_is_raised(self) -> None:
        random_tree(self.path("source"), 4)

        def ignore(folder: Any, names: List[Any]) -> List[Any]:
            raise ZeroDivisionError("in the callback")

        with self.assertRaisesRegex(ZeroDivisionError, "in the callback"):
            ferry.copytree(self.path("source"), self.path("target"), ignore=ignore)
        self.assertFalse(os.path.exists(self.path("target")))

    def test_a_custom_copy_function_is_called_for_each_file(self) -> None:
        random_tree(self.path("source"), 5, links=False)
        copied: List[Any] = []

        def copy(source: Any, target: Any) -> None:
            copied.append(os.fspath(source))
            shutil.copy2(source, target)

        ferry.copytree(self.path("source"), self.path("target"), copy_function=copy)
        files = [name for name, entry in described(self.path("source")).items() if entry[4] is not None]
        self.assertEqual(len(copied), len(files))
        self.assertEqual(described(self.path("source")), described(self.path("target")))

    def test_other_copy_functions_of_ferry(self) -> None:
        random_tree(self.path("source"), 6)
        for ours, theirs in ((ferry.copy, shutil.copy), (ferry.copyfile, shutil.copyfile)):
            ferry.copytree(self.path("source"), self.path("one"), copy_function=ours)
            shutil.copytree(self.path("source"), self.path("two"), copy_function=theirs)
            one, two = described(self.path("one")), described(self.path("two"))
            # The time of a file is that of its copy.
            without_time = lambda tree: {name: (e[0], e[1], e[4]) for name, e in tree.items()}  # noqa: E731
            self.assertEqual(without_time(one), without_time(two))
            shutil.rmtree(self.path("one"))
            shutil.rmtree(self.path("two"))

    def test_exceptions_before_anything_is_copied(self) -> None:
        write(self.path("file"))
        random_tree(self.path("source"), 7)
        os.mkdir(self.path("existing"))
        os.symlink("nowhere", self.path("dangling"))
        for source, target in (
            ("missing", "new"), ("file", "new"), ("source", "existing"), ("source", "file"),
            ("source", "dangling"), ("source", "file/below"), ("source", "source"),
        ):
            with self.subTest(source=source, target=target):
                raised = []
                for copytree in (shutil.copytree, ferry.copytree):
                    with self.assertRaises(OSError) as caught:
                        copytree(self.path(source), self.path(target))
                    raised.append((type(caught.exception), str(caught.exception)))
                self.assertEqual(raised[0], raised[1])

    def test_a_target_in_the_source(self) -> None:
        write(self.path("source", "file"))
        result = ferry.copytree(self.path("source"), self.path("source", "inner", "copy"))
        self.assertEqual(os.listdir(result), ["file"])

    def test_a_link_to_its_own_folder_is_a_reason(self) -> None:
        write(self.path("source", "file"))
        os.symlink(".", self.path("source", "loop"))
        reasons = self.reasons(ferry.copytree, self.path("source"), self.path("target"))
        self.assertEqual([reason[0] for reason in reasons], [self.path("source", "loop")])
        self.assertIn(f"[Errno {errno.ELOOP}]", reasons[0][2])

    def test_paths_of_all_types(self) -> None:
        random_tree(self.path("source"), 8)
        for convert in (str, pathlib.Path, os.fsencode):
            target: Any = convert(self.path(f"target-{convert.__name__}"))
            source: Any = convert(self.path("source"))
            self.assertIs(ferry.copytree(source, target), target)
            self.assertEqual(described(os.fsdecode(target)).keys(), described(self.path("source")).keys())
        os.mkfifo(self.path("source", "pipe"))
        with self.assertRaises(shutil.Error) as caught:
            ferry.copytree(os.fsencode(self.path("source")), os.fsencode(self.path("bytes")))
        self.assertIsInstance(caught.exception.args[0][0][0], bytes)

    def test_names_that_are_not_utf8_and_trailing_slashes(self) -> None:
        os.makedirs(os.fsencode(self.path("source")) + b"/\xff")
        ferry.copytree(self.path("source") + "/", self.path("new", "target") + "/")
        self.assertEqual(os.listdir(os.fsencode(self.path("new", "target"))), [b"\xff"])

    def test_relative_paths(self) -> None:
        random_tree(self.path("source"), 9)
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            self.assertEqual(ferry.copytree("source", "target", symlinks=True), "target")
        finally:
            os.chdir(before)
        self.assertEqual(described(self.path("source")), described(self.path("target")))


class FileTest(FolderTest):
    """Compares the functions for single files."""

    PAIRS = ((shutil.copyfile, ferry.copyfile), (shutil.copy, ferry.copy), (shutil.copy2, ferry.copy2))

    def compare(self, make: Callable[[], Tuple[Any, Any]], **options: Any) -> None:
        """Calls both functions of each pair, after `make` has made the paths anew."""
        for pair in self.PAIRS:
            found = []
            for function in pair:
                source, target = make()
                try:
                    result: Any = function(source, target, **options)  # type: ignore[operator]
                except OSError as error:
                    result = (type(error), str(error))
                tree = {name: entry[:2] + entry[3:] for name, entry in described(self.folder).items()}
                found.append((result, tree))
                for name in os.listdir(self.folder):
                    path = self.path(name)
                    if os.path.isdir(path) and not os.path.islink(path):
                        shutil.rmtree(path)
                    else:
                        os.unlink(path)
            self.assertEqual(found[0], found[1], pair)

    def source(self, content: bytes = b"content") -> str:
        path = write(self.path("source"), content)
        os.chmod(path, 0o750)
        return path

    def test_new_and_existing_targets(self) -> None:
        self.compare(lambda: (self.source(), self.path("target")))
        self.compare(lambda: (self.source(bytes(5_000_000)), self.path("target")))
        self.compare(lambda: (self.source(), write(self.path("target"), b"much longer content")))
        self.compare(lambda: (self.source(b""), write(self.path("target"))))

    def test_a_folder_as_target(self) -> None:
        def make() -> Tuple[Any, Any]:
            os.mkdir(self.path("folder"))
            return self.source(), self.path("folder")

        self.compare(make)

    def test_links(self) -> None:
        def make() -> Tuple[Any, Any]:
            self.source()
            os.symlink("source", self.path("link"))
            return self.path("link"), self.path("target")

        self.compare(make)
        self.compare(make, follow_symlinks=False)

        def through() -> Tuple[Any, Any]:
            os.symlink("led to", self.path("target"))
            return self.source(), self.path("target")

        self.compare(through)

    def test_errors(self) -> None:
        self.compare(lambda: (self.path("missing"), self.path("target")))
        self.compare(lambda: (self.source(), self.path("missing", "target")))
        self.compare(lambda: (self.source(), self.path("missing") + "/"))
        self.compare(lambda: (self.source(), self.path("source")))

        def same() -> Tuple[Any, Any]:
            os.link(self.source(), self.path("other"))
            return self.path("source"), self.path("other")

        def folder() -> Tuple[Any, Any]:
            os.mkdir(self.path("folder"))
            return self.path("folder"), self.path("target")

        def pipe() -> Tuple[Any, Any]:
            os.mkfifo(self.path("pipe"))
            return self.source(), self.path("pipe")

        self.compare(same)
        self.compare(folder)
        self.compare(pipe)

    def test_paths_of_other_types(self) -> None:
        self.compare(lambda: (pathlib.Path(self.source()), pathlib.Path(self.path("target"))))
        self.compare(lambda: (os.fsencode(self.source()), os.fsencode(self.path("target"))))

    def test_the_umask_decides_the_mode_of_a_new_file(self) -> None:
        before = os.umask(0o027)
        try:
            self.compare(lambda: (self.source(), self.path("target")))
        finally:
            os.umask(before)


class PatchTest(FolderTest):
    """`patch_shutil`, and the functions that it puts in place of shutil's."""

    def test_signatures_are_shutils(self) -> None:
        for name in ("copytree", "copyfile", "copy", "copy2"):
            ours, theirs = (
                [(p.name, p.kind, getattr(p.default, "__name__", p.default)) for p in signature.parameters.values()]
                for signature in (inspect.signature(getattr(module, name)) for module in (ferry, shutil))
            )
            self.assertEqual(ours, theirs)

    def test_it_replaces_four_functions_and_puts_them_back(self) -> None:
        own = [shutil.copytree, shutil.copyfile, shutil.copy, shutil.copy2]
        with ferry.patch_shutil():
            with ferry.patch_shutil():
                self.assertIs(shutil.copytree, ferry.copytree)
            self.assertIs(shutil.copytree, ferry.copytree)
            random_tree(self.path("source"), 10)
            shutil.copytree(self.path("source"), self.path("target"), symlinks=True)
        self.assertEqual([shutil.copytree, shutil.copyfile, shutil.copy, shutil.copy2], own)
        self.assertEqual(described(self.path("source")), described(self.path("target")))

    def test_it_puts_them_back_after_an_exception(self) -> None:
        own = shutil.copytree
        with self.assertRaises(ZeroDivisionError):
            with ferry.patch_shutil():
                raise ZeroDivisionError
        self.assertIs(shutil.copytree, own)


if __name__ == "__main__":
    unittest.main()
