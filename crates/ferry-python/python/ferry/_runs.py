"""Copies, syncs, plans and verifications: as functions, and as jobs."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Tuple, Union

from . import _core
from ._events import Action, Difference, End, Event
from ._job import Job
from ._results import CopyResult, Failure, Plan, SyncResult, VerifyResult
from ._shutil import _Ignore, _Path, _Tree, _Unsupported, copy2

if TYPE_CHECKING:
    from ._core import _Failed, _Told

OnEvent = Optional[Callable[[Event], object]]


def _encoded(path: _Path) -> bytes:
    encoded = os.fsencode(path)
    if not encoded:
        raise ValueError("a path is empty")
    return encoded


def copy_job(
    src: _Path,
    dst: _Path,
    symlinks: bool = False,
    ignore: _Ignore = None,
    ignore_dangling_symlinks: bool = False,
    dirs_exist_ok: bool = False,
    *,
    each_entry: bool = False,
) -> Job[CopyResult]:
    """Starts `copytree` in the background; `ignore` is called before.

    The result has the totals, or is `shutil.Error`. With `each_entry`, each copied entry is an event, which costs time.
    Where `copytree` would call shutil, `ValueError` is raised.
    """
    tree = _Tree(src, dst, symlinks, ignore, ignore_dangling_symlinks, dirs_exist_ok)
    try:
        run = tree.start(copy2, events=True, each_entry=each_entry)
    except _Unsupported as why:
        raise ValueError(str(why)) from None
    return Job(run, tree.finish)


def _decided(
    *,
    compare: str,
    newer: bool,
    delete: bool,
    allow_empty: bool,
    max_delete: Union[int, str, None],
    exclude: Iterable[str],
    gitignore: bool,
    min_size: Optional[int],
    max_size: Optional[int],
    newer_than: Union[datetime, float, None],
    one_file_system: bool,
    delete_excluded: bool,
) -> Dict[str, Any]:
    if not delete and (allow_empty or max_delete is not None or delete_excluded):
        raise ValueError("allow_empty, max_delete and delete_excluded need delete=True")
    if isinstance(exclude, str):
        raise TypeError("exclude is a list of patterns, not one string")
    if isinstance(max_delete, str):
        if max_delete != "any":
            raise ValueError("max_delete is a number, or 'any'")
        max_delete = -1
    elif max_delete is not None and max_delete < 0:
        raise ValueError("max_delete is negative")
    if min_size is not None and max_size is not None and min_size > max_size:
        raise ValueError("min_size is larger than max_size")
    if isinstance(newer_than, datetime):
        newer_than = newer_than.timestamp()
    since = None if newer_than is None else divmod(round(newer_than * 1_000_000_000), 1_000_000_000)
    return {
        "compare": compare,
        "newer": newer,
        "delete": delete,
        "allow_empty": allow_empty,
        "max_delete": max_delete,
        "exclude": list(exclude),
        "gitignore": gitignore,
        "min_size": min_size,
        "max_size": max_size,
        "newer_than": since,
        "one_file_system": one_file_system,
        "delete_excluded": delete_excluded,
    }


def _acted(
    *,
    in_place: bool = False,
    fsync: bool = False,
    verify: bool = False,
    bandwidth: Optional[int] = None,
    time_limit: Optional[float] = None,
    keeps: bool = False,
    trash: Optional[_Path] = None,
) -> Dict[str, Any]:
    return {
        "in_place": in_place,
        "fsync": fsync,
        "verify": verify,
        "bandwidth": bandwidth,
        "time_limit": time_limit,
        "keeps": keeps,
        "trash": None if trash is None else _encoded(trash),
    }


def _failure(failed: _Failed) -> Failure:
    source, target, subject, number, message = failed
    is_kernels = subject in ("source", "target", "link")
    return Failure(os.fsdecode(source), os.fsdecode(target), message, number if is_kernels else 0)


def _sync_result(told: _Told) -> SyncResult:
    totals, failures, is_interrupted, is_out_of_space, trash = told
    limit = totals["delete_limit"]
    return SyncResult(
        created=totals["created"],
        replaced=totals["replaced"],
        attributes=totals["attributes"],
        deleted=totals["deleted"],
        bytes=totals["bytes"],
        failures=tuple(map(_failure, failures)),
        spared=totals["spared"],
        too_many=(totals["too_many"], limit) if totals["too_many"] else None,
        out_of_space=is_out_of_space,
        time_is_up=is_interrupted,
        trash=None if trash is None else os.fsdecode(trash),
    )


def _disposal(delete: Union[bool, str], trash: Union[bool, _Path]) -> Dict[str, Any]:
    """Returns what becomes of replaced and deleted entries, as the options `--delete` and `--trash` say it."""
    if delete not in (False, True, "now"):
        raise ValueError("delete is False, True or 'now'")
    if trash is False:
        return {"keeps": delete is True, "trash": None}
    if delete == "now":
        raise ValueError("delete='now' and trash exclude each other")
    return {"keeps": True, "trash": None if trash is True else trash}


def sync_job(
    source: _Path,
    target: _Path,
    *,
    delete: Union[bool, str] = False,
    trash: Union[bool, _Path] = False,
    compare: str = "time",
    newer: bool = False,
    exclude: Iterable[str] = (),
    gitignore: bool = False,
    min_size: Optional[int] = None,
    max_size: Optional[int] = None,
    newer_than: Union[datetime, float, None] = None,
    one_file_system: bool = False,
    delete_excluded: bool = False,
    allow_empty: bool = False,
    max_delete: Union[int, str, None] = None,
    in_place: bool = False,
    fsync: bool = False,
    verify: bool = False,
    bandwidth: Optional[int] = None,
    time_limit: Optional[float] = None,
) -> Job[SyncResult]:
    """Starts `sync` in the background."""
    disposal = _disposal(delete, trash)
    decided = _decided(
        compare=compare,
        newer=newer,
        delete=bool(delete),
        allow_empty=allow_empty,
        max_delete=max_delete,
        exclude=exclude,
        gitignore=gitignore,
        min_size=min_size,
        max_size=max_size,
        newer_than=newer_than,
        one_file_system=one_file_system,
        delete_excluded=delete_excluded,
    )
    acted = _acted(
        in_place=in_place,
        fsync=fsync,
        verify=verify,
        bandwidth=bandwidth,
        time_limit=time_limit,
        **disposal,
    )
    trees = _encoded(source), _encoded(target)
    return Job(_core.start_sync(*trees, decided, acted, plans=False, file=None), _sync_result)


def sync(
    source: _Path,
    target: _Path,
    *,
    delete: Union[bool, str] = False,
    trash: Union[bool, _Path] = False,
    compare: str = "time",
    newer: bool = False,
    exclude: Iterable[str] = (),
    gitignore: bool = False,
    min_size: Optional[int] = None,
    max_size: Optional[int] = None,
    newer_than: Union[datetime, float, None] = None,
    one_file_system: bool = False,
    delete_excluded: bool = False,
    allow_empty: bool = False,
    max_delete: Union[int, str, None] = None,
    in_place: bool = False,
    fsync: bool = False,
    verify: bool = False,
    bandwidth: Optional[int] = None,
    time_limit: Optional[float] = None,
    on_event: OnEvent = None,
    check: bool = True,
) -> SyncResult:
    """Makes the folder `target` equal to the folder `source`, as `ferry sync` does.

    `exclude` has lines as in a `.gitignore`; one that begins with `!` includes. `compare` is time (size and time), size or
    content. `delete=True` moves what the source lacks to a trash, `delete='now'` removes it. `on_event` is called for each
    event; an exception that it raises ends the run. Unless `check` is false, `PathsFailed` is raised if anything failed.
    """
    job = sync_job(
        source,
        target,
        delete=delete,
        trash=trash,
        compare=compare,
        newer=newer,
        exclude=exclude,
        gitignore=gitignore,
        min_size=min_size,
        max_size=max_size,
        newer_than=newer_than,
        one_file_system=one_file_system,
        delete_excluded=delete_excluded,
        allow_empty=allow_empty,
        max_delete=max_delete,
        in_place=in_place,
        fsync=fsync,
        verify=verify,
        bandwidth=bandwidth,
        time_limit=time_limit,
    )
    result = _watch(job, on_event)
    return result.check() if check else result


def _watch(job: Job[SyncResult], on_event: OnEvent) -> SyncResult:
    with job:
        if on_event is not None:
            for event in job:
                on_event(event)
        return job.result()


def plan(
    source: _Path,
    target: _Path,
    *,
    file: Optional[_Path] = None,
    delete: bool = False,
    compare: str = "time",
    newer: bool = False,
    exclude: Iterable[str] = (),
    gitignore: bool = False,
    min_size: Optional[int] = None,
    max_size: Optional[int] = None,
    newer_than: Union[datetime, float, None] = None,
    one_file_system: bool = False,
    delete_excluded: bool = False,
    allow_empty: bool = False,
    max_delete: Union[int, str, None] = None,
) -> Plan:
    """Returns what `sync` would do, and changes nothing. With `file`, also writes the plan for `apply` and `ferry sync --apply`.

    `PathsFailed` is raised if a part of a tree can't be read, or if more would be deleted than `max_delete` allows: then
    there is no plan.
    """
    decided = _decided(
        compare=compare,
        newer=newer,
        delete=delete,
        allow_empty=allow_empty,
        max_delete=max_delete,
        exclude=exclude,
        gitignore=gitignore,
        min_size=min_size,
        max_size=max_size,
        newer_than=newer_than,
        one_file_system=one_file_system,
        delete_excluded=delete_excluded,
    )
    trees = _encoded(source), _encoded(target)
    encoded = None if file is None else _encoded(file)
    run = _core.start_sync(*trees, decided, _acted(), plans=True, file=encoded)
    with Job(run, _sync_result) as job:
        actions = tuple(event for event in job if isinstance(event, Action))
        return Plan(actions, job.result().check())


def apply(
    file: _Path,
    *,
    delete: Union[bool, str] = True,
    trash: Union[bool, _Path] = False,
    in_place: bool = False,
    fsync: bool = False,
    verify: bool = False,
    bandwidth: Optional[int] = None,
    time_limit: Optional[float] = None,
    on_event: OnEvent = None,
    check: bool = True,
) -> SyncResult:
    """Performs a plan that `plan` or `ferry sync --plan` wrote. Actions whose files have changed since fail.

    Replaced and deleted entries are moved to a trash, unless `delete` is `'now'`.
    """
    acted = _acted(
        in_place=in_place,
        fsync=fsync,
        verify=verify,
        bandwidth=bandwidth,
        time_limit=time_limit,
        **_disposal(delete, trash),
    )
    result = _watch(Job(_core.start_apply(_encoded(file), acted), _sync_result), on_event)
    return result.check() if check else result


def verify_job(
    source: _Path, target: _Path, *, ignore: Iterable[str] = (), threads: Optional[int] = None
) -> Job[VerifyResult]:
    """Starts `verify` in the background. Its result has no differences: they are the events."""
    run = _core.start_verify(_encoded(source), _encoded(target), ignore=list(ignore), threads=threads)
    return Job(run, lambda told: _verify_result(told, (), None))


def verify(
    source: _Path,
    target: _Path,
    *,
    ignore: Iterable[str] = (),
    threads: Optional[int] = None,
    on_event: OnEvent = None,
) -> VerifyResult:
    """Compares two trees, as `ferry verify` does: content, attributes, links and holes.

    `ignore` names parts that are not compared: content, mode, owner, times, xattrs, acls, links, holes. The result is true
    if the trees are equal.
    """
    if isinstance(ignore, str):
        raise TypeError("ignore is a list of parts, not one string")
    differences: List[Difference] = []
    verdict = None
    run = _core.start_verify(_encoded(source), _encoded(target), ignore=list(ignore), threads=threads)
    with Job(run, lambda told: told) as job:
        for event in job:
            if on_event is not None:
                on_event(event)
            if isinstance(event, Difference):
                differences.append(event)
            elif isinstance(event, End):
                verdict = event.result
        return _verify_result(job.result(), tuple(differences), verdict)


def _verify_result(
    told: _Told, differences: Tuple[Difference, ...], verdict: Optional[str]
) -> VerifyResult:
    totals = told[0]
    if verdict is None:
        verdict = "different" if totals["differences"] else "equal"
    return VerifyResult(
        verdict, differences, totals["entries"], totals["files"], totals["bytes"], totals["shared"]
    )


__all__ = ["apply", "copy_job", "plan", "sync", "sync_job", "verify", "verify_job"]
