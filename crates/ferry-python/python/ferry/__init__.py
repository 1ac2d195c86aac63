"""Copies, synchronises and verifies directory trees as fast as Linux allows.

`copytree`, `copy`, `copy2` and `copyfile` have the signatures, results and exceptions of `shutil`. `sync`, `plan`, `apply`
and `verify` are the commands of the same names. A `Job` is such a run that goes on in the background.
"""

from __future__ import annotations

from . import _interpreters  # noqa: F401  before the native part
from ._core import VERSION as __version__
from ._events import (
    Action,
    Copied,
    Difference,
    End,
    Event,
    Failed,
    Part,
    Progress,
    Removed,
    Start,
    TakenBack,
    Unfinished,
    Version,
)
from ._job import Counts, Job
from ._results import (
    Cancelled,
    CopyResult,
    Error,
    Failure,
    PathsFailed,
    Plan,
    Refused,
    SyncResult,
    VerifyResult,
)
from ._runs import apply, copy_job, plan, sync, sync_job, verify, verify_job
from ._shutil import copy, copy2, copyfile, copytree, patch_shutil

__all__ = [
    "Action",
    "Cancelled",
    "Copied",
    "CopyResult",
    "Counts",
    "Difference",
    "End",
    "Error",
    "Event",
    "Failed",
    "Failure",
    "Job",
    "Part",
    "PathsFailed",
    "Plan",
    "Progress",
    "Refused",
    "Removed",
    "Start",
    "SyncResult",
    "TakenBack",
    "Unfinished",
    "VerifyResult",
    "Version",
    "__version__",
    "apply",
    "copy",
    "copy2",
    "copy_job",
    "copyfile",
    "copytree",
    "patch_shutil",
    "plan",
    "sync",
    "sync_job",
    "verify",
    "verify_job",
]
