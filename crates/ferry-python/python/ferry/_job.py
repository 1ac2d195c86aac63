"""Runs in the background: `Job`."""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
from collections import deque
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncIterator,
    Callable,
    Deque,
    Generator,
    Generic,
    Iterator,
    NamedTuple,
    Optional,
    Set,
    Tuple,
    Type,
    TypeVar,
)

from ._events import Event, read
from ._results import Cancelled, Refused

if TYPE_CHECKING:
    from ._core import Run, _Told

T = TypeVar("T")

# Seconds of one wait for events; signals are looked at in between.
_PERIOD = 0.05

# Jobs that may run, so that the interpreter's end does not cut them off.
_running: Set[Job[Any]] = set()


class Counts(NamedTuple):
    """Figures of a job so far. `entries_found` and `bytes_found` grow until `is_complete`."""

    entries: int
    bytes: int
    entries_found: int
    bytes_found: int
    is_complete: bool


class Job(Generic[T]):
    """A run on threads of its own.

    Iterate over it for its events, or `await` it, or ask for its `result()`. As a context manager it is cancelled if the
    block raises, and waited for otherwise. Events that nobody reads hold the run back after some thousands of them, until
    `result()` is called; `result()` drops events that were not read.

    Several threads may use a job: each event goes to one of them, and all get the same result.

    A job belongs to the process that started it. After `os.fork()`, the child can't use it: it has no copy of its threads.
    """

    def __init__(self, run: Run, finish: Callable[[_Told], T]) -> None:
        self._run = run
        self._finish = finish
        self._waiting: Deque[bytes] = deque()
        self._result: Optional[T] = None
        self._raised: Optional[BaseException] = None
        self._has_ended = False
        self._told: Optional[Tuple[Optional[str], _Told]] = None
        # A handler of a signal may use the job that its thread uses.
        self._ending = threading.RLock()
        self._reading = threading.RLock()
        self._process = os.getpid()
        _running.difference_update([job for job in list(_running) if not job._is_own() or job._run.is_over])
        _running.add(self)

    def _is_own(self) -> bool:
        return self._process == os.getpid()

    @property
    def counts(self) -> Counts:
        """The figures so far, for a progress bar."""
        return Counts(*self._run.counts())

    @property
    def done(self) -> bool:
        """True once the run is over."""
        return self._run.is_over

    def progress(self, period: float = 0.1) -> Iterator[Counts]:
        """Yields the figures every `period` seconds and at the end, and drops events from now on."""
        self._run.close()
        while not self._run.wait(period):
            yield self.counts
        yield self.counts

    def cancel(self) -> None:
        """Stops the run, and returns once nothing of it is left: no partial file, no thread. Its result is `Cancelled`."""
        self._run.stop()

    def result(self, timeout: Optional[float] = None) -> T:
        """Waits for the end and returns the result, or raises the run's exception.

        After `timeout` seconds it raises `TimeoutError`, and the run goes on. Ctrl-C stops the run.
        """
        if timeout is None:
            self._run.finish()
        else:
            end = time.monotonic() + timeout
            while not self._run.wait(0.0):
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError("the job is not over")
                # Takes what nobody reads, so that the run goes on.
                self._fetch(min(left, _PERIOD), ahead=True)
        self._end()
        if self._raised is not None:
            raise self._raised
        return self._result  # type: ignore[return-value]

    def _end(self) -> None:
        """Takes the outcome, once."""
        with self._ending:
            if not self._has_ended:
                # Kept, because a signal's exception may cut off what follows.
                self._told = self._told or self._run.outcome()
                self._take(*self._told)
                self._has_ended = True
                _running.discard(self)

    def _take(self, refused: Optional[str], told: _Told) -> None:
        if self._run.is_cancelled and (refused is not None or told[2]):
            self._raised = Cancelled("the job was cancelled")
        elif refused is not None:
            self._raised = Refused(refused)
        else:
            try:
                self._result = self._finish(told)
            except Exception as error:
                self._raised = error

    def __iter__(self) -> Iterator[Event]:
        return self

    def _next(self) -> Optional[Event]:
        """Returns the next event that has arrived. Another thread may take it first."""
        try:
            line = self._waiting.popleft()
        except IndexError:
            return None
        return read(json.loads(line))

    def _fetch(self, period: float, ahead: bool = False) -> bool:
        """Waits for events if none has arrived, or for more of them. Returns false after the last."""
        with self._reading:
            if ahead or not self._waiting:
                lines = self._run.events(period)
                if lines is None:
                    return False
                self._waiting.extend(lines)
            return True

    def __next__(self) -> Event:
        while (event := self._next()) is None:
            if not self._fetch(_PERIOD):
                raise StopIteration
        return event

    def __enter__(self) -> Job[T]:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if kind is not None:
            self.cancel()
        else:
            self._run.finish()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            while (event := self._next()) is not None:
                yield event
            if not await self._wait(self._fetch, _PERIOD):
                return

    def __await__(self) -> Generator[Any, None, T]:
        return self._awaited().__await__()

    async def _awaited(self) -> T:
        await self._wait(self._run.finish)
        return self.result()

    async def _wait(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function that waits, on a thread of the event loop's own."""
        import asyncio

        try:
            return await asyncio.get_running_loop().run_in_executor(None, call, *arguments)
        except BaseException:
            # The task was cancelled: nothing of the run outlives it.
            self._run.stop()
            raise

    async def __aenter__(self) -> Job[T]:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if kind is not None:
            self._run.cancel()
        await self._wait(self._run.finish)


def _stop_all() -> None:
    for job in list(_running):
        if job._is_own():
            job._run.stop()


atexit.register(_stop_all)
