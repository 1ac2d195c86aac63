"""`copytree`, `copy`, `copy2` and `copyfile` as `shutil` has them, performed by ferry's engine.

shutil's own functions are called where the engine has no such operation; `docs/python.md` lists the cases.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple, TypeVar, Union

from . import _core
from ._results import CopyResult, Refused

if TYPE_CHECKING:
    from ._core import Run, _Failed, _Told

_Str = Union[str, os.PathLike[str]]
_Bytes = Union[bytes, os.PathLike[bytes]]
_Path = Union[_Str, _Bytes]
_D = TypeVar("_D", bound=_Path)
_Ignore = Optional[Callable[[Any, List[Any]], Iterable[Any]]]
_Reason = Tuple[Any, Any, str]

# shutil's functions as they were before any of them was replaced.
_copytree: Callable[..., Any] = shutil.copytree
_copyfile: Callable[..., Any] = shutil.copyfile
_copy: Callable[..., Any] = shutil.copy
_copy2: Callable[..., Any] = shutil.copy2


class _Unsupported(Exception):
    """The engine has no such operation; the message says why."""


def copyfile(src: _Path, dst: _D, *, follow_symlinks: bool = True) -> _D:
    """Copies a file's bytes, as `shutil.copyfile` does, and returns `dst`."""
    try:
        source, target = _plain(src), _plain(dst)
        base, name = os.path.split(target)
    except TypeError:
        _copyfile(src, dst, follow_symlinks=follow_symlinks)
        return dst
    is_link = not follow_symlinks and os.path.islink(source)
    if is_link or not name or name in (".", "..", b".", b"..") or not source:
        _copyfile(src, dst, follow_symlinks=follow_symlinks)
        return dst
    sys.audit("shutil.copyfile", src, dst)
    _refuse(src, dst)
    run = _core.start_file(os.fsencode(source), os.fsencode(base) or b".", os.fsencode(name))
    run.finish()
    refused, (_, failures, _, _, _) = run.outcome()
    if refused is not None:
        raise Refused(refused)
    if failures:
        raise _exception(failures[0], source, target)
    return dst


def _plain(path: Any) -> Any:
    """Returns a path as text or bytes."""
    return os.fspath(path)


def _refuse(src: Any, dst: Any) -> None:
    """Raises shutil's exceptions for one file by two names, and for named pipes."""
    try:
        found = os.stat(src)
    except OSError:
        # It is missing, probably: the engine reports it.
        return
    existing = None
    with contextlib.suppress(OSError):
        existing = os.stat(dst)
    if existing is not None and os.path.samestat(found, existing):
        raise shutil.SameFileError(f"{src!r} and {dst!r} are the same file")
    for path, status in ((src, found), (dst, existing)):
        if status is not None and stat.S_ISFIFO(status.st_mode):
            raise shutil.SpecialFileError(f"`{os.fspath(path)}` is a named pipe")


def _beneath(src: Any, dst: Any) -> Any:
    """Returns the path of a copy: `dst`, or a name in it if it is a folder."""
    return os.path.join(dst, os.path.basename(src)) if os.path.isdir(dst) else dst


def copy(src: _Path, dst: _Path, *, follow_symlinks: bool = True) -> Any:
    """Copies a file's bytes and mode, as `shutil.copy` does, and returns the path of the copy."""
    dst = _beneath(src, dst)
    copyfile(src, dst, follow_symlinks=follow_symlinks)
    shutil.copymode(src, dst, follow_symlinks=follow_symlinks)
    return dst


def copy2(src: _Path, dst: _Path, *, follow_symlinks: bool = True) -> Any:
    """Copies a file's bytes and attributes, as `shutil.copy2` does, and returns the path of the copy."""
    dst = _beneath(src, dst)
    copyfile(src, dst, follow_symlinks=follow_symlinks)
    shutil.copystat(src, dst, follow_symlinks=follow_symlinks)
    return dst


def copytree(
    src: _Path,
    dst: _D,
    symlinks: bool = False,
    ignore: _Ignore = None,
    copy_function: Callable[[Any, Any], object] = copy2,
    ignore_dangling_symlinks: bool = False,
    dirs_exist_ok: bool = False,
) -> _D:
    """Copies a tree as `shutil.copytree` does, and returns `dst`.

    If paths fail, `shutil.Error` is raised at the end, with a list of source, target and reason. Ctrl-C ends the copy;
    no partial file is left.
    """
    tree = _Tree(src, dst, symlinks, ignore, ignore_dangling_symlinks, dirs_exist_ok)
    try:
        run = tree.start(copy_function, events=False, each_entry=False)
    except _Unsupported:
        function = _OWN.get(copy_function, copy_function)
        _copytree(src, dst, symlinks, ignore, function, ignore_dangling_symlinks, dirs_exist_ok)
        return dst
    run.finish()
    refused, told = run.outcome()
    if refused is not None:
        raise Refused(refused)
    tree.finish(told)
    return dst


# Functions of this module, and those of shutil that they stand for.
_OWN: Dict[Callable[..., Any], Callable[..., Any]] = {copy: _copy, copy2: _copy2, copyfile: _copyfile}


class _Tree:
    """The copy of one tree: what is to be copied, and what its failures mean."""

    def __init__(
        self,
        src: Any,
        dst: Any,
        symlinks: bool,
        ignore: _Ignore,
        ignore_dangling_symlinks: bool,
        dirs_exist_ok: bool,
    ) -> None:
        self.src = src
        self.dst = dst
        self.symlinks = symlinks
        self.ignore = ignore
        self.ignore_dangling_symlinks = ignore_dangling_symlinks
        self.dirs_exist_ok = dirs_exist_ok

    def start(self, copy_function: Callable[..., object], *, events: bool, each_entry: bool) -> Run:
        """Starts the copy. Raises `_Unsupported` before anything is changed."""
        if _OWN.get(copy_function, copy_function) is not _copy2:
            raise _Unsupported("only copy2 is copied by the engine")
        src, dst = os.fspath(self.src), os.fspath(self.dst)
        if type(src) is not type(dst):
            raise _Unsupported("source and target are paths of different types")
        source, target = os.fsencode(src), os.fsencode(dst)
        if not source or not target:
            raise _Unsupported("a path is empty")
        if _core.is_within(target, source):
            raise _Unsupported("the target is in the source")
        sys.audit("shutil.copytree", self.src, self.dst)
        # Raises what shutil raises for a source that is no folder, or that can't be listed.
        with os.scandir(src) as listing:
            entries = list(listing) if self.ignore is not None else []
        left_out = None
        if self.ignore is not None:
            left_out = dict(_left_out(src, entries, self.ignore, self.symlinks))
        base, name = self._place(dst, target)
        # With a slash at its end, the source is the folder itself, even if its name is that of a link.
        return _core.start_tree(
            source + b"/",
            base,
            name,
            follow=not self.symlinks,
            left_out=left_out,
            events=events,
            each_entry=each_entry,
        )

    def _place(self, dst: Any, target: bytes) -> Tuple[bytes, bytes]:
        """Makes the folders above the target. Returns the folder that the copy is made in and its name there; an empty
        name means the folder itself.
        """
        stripped = target.rstrip(b"/") or b"/"
        base, name = os.path.split(stripped)
        if os.path.lexists(stripped) or name in (b"", b".", b".."):
            # It is a folder, and may be one; or this raises.
            os.makedirs(dst, exist_ok=self.dirs_exist_ok)
            return target, b""
        if base and not os.path.isdir(base):
            if os.path.lexists(base):
                # It is no folder: this raises.
                os.makedirs(dst, exist_ok=self.dirs_exist_ok)
            os.makedirs(base if isinstance(dst, bytes) else os.fsdecode(base), exist_ok=True)
        return base or b".", name

    def finish(self, told: _Told) -> CopyResult:
        """Returns the totals, or raises `shutil.Error` with all failures."""
        totals, failures, _, is_out_of_space, _ = told
        errors = [reason for failed in failures for reason in self._reasons(failed)]
        if is_out_of_space and not errors:
            errors = [(self.src, self.dst, str(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))]
        if errors:
            raise shutil.Error(errors)
        return CopyResult(self.dst, totals["files"], totals["directories"], totals["symlinks"], totals["bytes"])

    def _reasons(self, failed: _Failed) -> List[_Reason]:
        """Returns the entry of shutil's list for a failure, if it is one of shutil's."""
        src, dst = self._named(failed[0], self.src), self._named(failed[1], self.dst)
        _, _, subject, number, _ = failed
        is_missing = subject == "source" and number == errno.ENOENT
        if is_missing and self.ignore_dangling_symlinks and os.path.islink(src):
            return []
        is_folder_there = subject == "target" and number == errno.EISDIR
        if subject == "special" or is_folder_there:
            # shutil opens sockets and devices, and copies into a folder that has the file's name.
            return _by_shutil(src, dst, not is_folder_there)
        return [(src, dst, str(_exception(failed, src, dst)))]

    def _named(self, path: bytes, root: Any) -> Any:
        """Returns a path as shutil has it in its list: the roots as they were given, other paths of their type."""
        given = os.fspath(root)
        encoded = os.fsencode(given)
        if path.rstrip(b"/") == encoded.rstrip(b"/"):
            return root
        return path if isinstance(given, bytes) else os.fsdecode(path)


def _by_shutil(src: Any, dst: Any, sets_folder: bool) -> List[_Reason]:
    """Copies an entry by shutil, which raises its own exceptions."""
    try:
        _copy2(src, dst)
    except OSError as why:
        return [(src, dst, str(why))]
    if sets_folder:
        # The new entry changed the folder's time.
        shutil.copystat(os.path.dirname(src), os.path.dirname(dst))
    return []


def _exception(failed: _Failed, src: Any, dst: Any) -> OSError:
    """Returns the exception that shutil raises for a failure."""
    _, _, subject, number, message = failed
    if subject == "same":
        return shutil.SameFileError(f"{src!r} and {dst!r} are the same file")
    if subject == "special":
        return shutil.SpecialFileError(message)
    if subject == "other":
        return OSError(message)
    text = os.strerror(number)
    if subject == "link":
        with contextlib.suppress(OSError):
            return OSError(number, text, os.readlink(src), None, dst)
    return OSError(number, text, src if subject == "source" else dst)


def _left_out(
    src: Any, entries: List[Any], ignore: Callable[[Any, List[Any]], Iterable[Any]], symlinks: bool
) -> Iterator[Tuple[bytes, Set[bytes]]]:
    """Calls `ignore` for each folder, as shutil does: for a folder before those in it, in the order of its listing.
    Yields the names that are left out, by the folder's path below the source.

    A folder that can't be listed is left to the engine, which reports it.
    """
    seen = [os.stat(src)]
    # Folders whose entries are not taken yet: path, path below the source, entries, folders above.
    pending = [(src, b"", entries, seen)]
    while pending:
        path, below, listed, above = pending.pop()
        ignored = set(ignore(path, [entry.name for entry in listed]))
        if ignored:
            yield below, {os.fsencode(name) for name in ignored}
        inner = []
        for entry in listed:
            if entry.name in ignored or (symlinks and entry.is_symlink()):
                continue
            with contextlib.suppress(OSError):
                if not entry.is_dir():
                    continue
                status = entry.stat()
                if any(os.path.samestat(status, other) for other in above):
                    # A link to a folder that it is in: the engine refuses it.
                    continue
                child = os.path.join(path, entry.name)
                with os.scandir(child) as listing:
                    found = list(listing)
                inner.append((child, os.path.join(below, os.fsencode(entry.name)), found, [*above, status]))
        pending.extend(reversed(inner))


_patching = threading.Lock()
_patches = 0


@contextlib.contextmanager
def patch_shutil() -> Iterator[None]:
    """Replaces `copytree`, `copy`, `copy2` and `copyfile` of `shutil` by ferry's within the block, for all threads.

    `shutil.move` then uses ferry, too, because it calls `shutil.copytree`. Blocks may overlap; shutil has its own
    functions again after the last of them.
    """
    global _patches
    with _patching:
        _patches += 1
        _put(copytree, copyfile, copy, copy2)
    try:
        yield
    finally:
        with _patching:
            _patches -= 1
            if _patches == 0:
                _put(_copytree, _copyfile, _copy, _copy2)


def _put(*functions: Callable[..., Any]) -> None:
    for name, function in zip(("copytree", "copyfile", "copy", "copy2"), functions):
        setattr(shutil, name, function)
