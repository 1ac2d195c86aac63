"""Events of runs: the lines of `--events` and of `ferry verify --json` as typed values."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union


def _path(value: Any) -> str:
    """Returns a path; bytes that are not UTF-8 are escaped as `os.fsdecode` does."""
    if isinstance(value, str):
        return value
    return os.fsdecode(bytes(value["bytes"]))


_ESCAPED = re.compile(rb"\\(?:\\|x([0-9a-f]{2}))")


def _unescaped(text: str) -> str:
    """Returns the path that a line of `ferry verify --json` has."""

    def byte(found: re.Match[bytes]) -> bytes:
        return b"\\" if found[1] is None else bytes([int(found[1], 16)])

    return os.fsdecode(_ESCAPED.sub(byte, text.encode()))


@dataclass(frozen=True)
class Start:
    """The first event. A copy names its operands, a sync its two trees; a plan that is applied names its own."""

    schema: int
    made_by: str
    task: str
    source: Optional[str] = None
    target: Optional[str] = None


@dataclass(frozen=True)
class Version:
    """Version of a file that an action was decided from: device, inode, and time of the last change in nanoseconds."""

    device: int
    inode: int
    changed_ns: Optional[int] = None


@dataclass(frozen=True)
class Action:
    """An action of a sync: performed, or planned. `path` is below both trees and empty for themselves."""

    verb: str
    path: str
    kind: str
    reason: Optional[str] = None
    size: Optional[int] = None
    source: Optional[Version] = None
    target: Optional[Version] = None


@dataclass(frozen=True)
class Copied:
    """An entry that was copied; only with `each_entry=True`."""

    source: str
    target: str
    backup: Optional[str] = None


@dataclass(frozen=True)
class Removed:
    """A target that was removed to be replaced."""

    target: str


@dataclass(frozen=True)
class TakenBack:
    """A copy failed, and its backup got the target's name back."""

    backup: str
    target: str


@dataclass(frozen=True)
class Failed:
    """A path that failed. `errno` is None if no system call did."""

    source: str
    target: str
    message: str
    errno: Optional[int] = None


@dataclass(frozen=True)
class Unfinished:
    """A target that is left incomplete."""

    source: str
    target: str
    message: str


@dataclass(frozen=True)
class Part:
    """The part of a large file that an interrupted run left: `continued`, `kept` or `ignored`."""

    source: str
    target: str
    state: str
    bytes: Optional[int] = None
    reason: Optional[str] = None


@dataclass(frozen=True)
class Progress:
    """Entries and bytes done so far, once a second."""

    seconds: float
    entries: int
    bytes: int


@dataclass(frozen=True)
class Difference:
    """A difference that a verification found; `values` has what both sides are, as `ferry verify --json` says it."""

    path: str
    kind: str
    message: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class End:
    """The last event: `result` is done, failed, interrupted or time_is_up; for a verification, its verdict."""

    result: str
    seconds: Optional[float] = None
    totals: Mapping[str, int] = field(default_factory=dict)


Event = Union[
    Start, Action, Copied, Removed, TakenBack, Failed, Unfinished, Part, Progress, Difference, End
]


def _version(value: Optional[Mapping[str, Any]]) -> Optional[Version]:
    if value is None:
        return None
    changed = value.get("changed")
    changed_ns = None if changed is None else changed[0] * 1_000_000_000 + changed[1]
    return Version(value["device"], value["inode"], changed_ns)


def _both(value: Mapping[str, Any]) -> Tuple[str, str]:
    return _path(value["source"]), _path(value["target"])


def _start(value: Mapping[str, Any]) -> Start:
    trees: Mapping[str, Any] = value
    if value.get("operands"):
        trees = value["operands"][0]
    source, target = trees.get("source"), trees.get("target")
    return Start(
        value["schema"],
        value["made_by"],
        value["task"],
        None if source is None else _path(source),
        None if target is None else _path(target),
    )


def _action(value: Mapping[str, Any]) -> Action:
    return Action(
        value["verb"],
        _path(value["path"]),
        value["kind"],
        value.get("reason"),
        value.get("size"),
        _version(value.get("source")),
        _version(value.get("target")),
    )


def _copied(value: Mapping[str, Any]) -> Copied:
    backup = value.get("backup")
    return Copied(*_both(value), None if backup is None else _path(backup))


def _end(value: Mapping[str, Any]) -> End:
    totals = {name: count for name, count in value.items() if isinstance(count, int)}
    return End(value["result"], value["seconds"], totals)


_READ: Dict[str, Callable[[Mapping[str, Any]], Event]] = {
    "start": _start,
    "action": _action,
    "copied": _copied,
    "removed": lambda value: Removed(_path(value["target"])),
    "taken_back": lambda value: TakenBack(_path(value["backup"]), _path(value["target"])),
    "failed": lambda value: Failed(*_both(value), value["message"], value.get("errno")),
    "unfinished": lambda value: Unfinished(*_both(value), value["message"]),
    "part": lambda value: Part(
        *_both(value), value["state"], value.get("bytes"), value.get("reason")
    ),
    "progress": lambda value: Progress(value["seconds"], value["entries"], value["bytes"]),
    "end": _end,
}


def read(value: Mapping[str, Any]) -> Event:
    """Returns the event of one line of JSON."""
    if "verdict" in value:
        return End(value["verdict"], None, value["kinds"])
    if "message" in value:
        values = {name: value[name] for name in value if name not in ("path", "kind", "message")}
        return Difference(_unescaped(value["path"]), value["kind"], value["message"], values)
    ((name, inner),) = value.items()
    return _READ[name](inner)
