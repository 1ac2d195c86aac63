"""Results of runs, and their exceptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Tuple

from ._events import Action, Difference


class Error(Exception):
    """Base of the exceptions of runs."""


class Refused(Error):
    """Nothing was begun, or the run could not go on; the message says why."""


class Cancelled(Error):
    """The run was cancelled. No partial file is left."""


@dataclass(frozen=True)
class Failure:
    """A path that failed. `errno` is 0 if no system call did."""

    source: str
    target: str
    message: str
    errno: int = 0

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class CopyResult:
    """Totals of a copied tree."""

    target: Any
    files: int
    directories: int
    symlinks: int
    bytes: int


@dataclass(frozen=True)
class SyncResult:
    """Totals of a sync, and the paths that failed.

    `too_many` has the number of entries that were to be deleted and the limit that they exceed: none was deleted then.
    `trash` is the folder with what was taken away.
    """

    created: int
    replaced: int
    attributes: int
    deleted: int
    bytes: int
    failures: Tuple[Failure, ...] = ()
    spared: int = 0
    too_many: Optional[Tuple[int, int]] = None
    out_of_space: bool = False
    time_is_up: bool = False
    trash: Optional[str] = None

    @property
    def ok(self) -> bool:
        """True if the target is equal to the source as far as it was asked for."""
        is_whole = not (self.failures or self.out_of_space or self.time_is_up)
        return is_whole and self.too_many is None

    def check(self) -> SyncResult:
        """Returns the result, or raises `PathsFailed` unless it is `ok`."""
        if not self.ok:
            raise PathsFailed(self)
        return self


@dataclass(frozen=True)
class Plan:
    """Actions that would make the target equal, in the order in which they are performed."""

    actions: Tuple[Action, ...]
    totals: SyncResult

    def __bool__(self) -> bool:
        return bool(self.actions)


@dataclass(frozen=True)
class VerifyResult:
    """A comparison's verdict: equal, different or undecided (something can't be read, and nothing else differs)."""

    verdict: str
    differences: Tuple[Difference, ...]
    entries: int
    files: int
    bytes: int
    shared: int

    def __bool__(self) -> bool:
        return self.verdict == "equal"


class PathsFailed(Error):
    """A sync ended with failures; `result` has them and the totals."""

    def __init__(self, result: SyncResult) -> None:
        super().__init__(result)
        self.result = result

    def __str__(self) -> str:
        result = self.result
        if result.failures:
            more = len(result.failures) - 1
            return result.failures[0].message + (f", and {more} more failed" if more else "")
        if result.too_many is not None:
            return "nothing was deleted: %d entries would go, and at most %d may" % result.too_many
        if result.out_of_space:
            return "stopped early: the target's space or quota is used up"
        return "stopped by the time limit"
