"""Jobs: events, cancellation, exceptions, signals, threads, forks, subinterpreters and asyncio."""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest
from typing import Any, List

import ferry
from trees import FolderTest, described, random_tree, skip, write

# More entries than events that a run may be ahead of its reader.
MANY = 6000
# Most seconds in which a cancelled run ends.
SOON = 10.0


def threads() -> List[str]:
    """Returns the names of this process's threads."""
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm", encoding="ascii") as file:
                names.append(file.read().strip())
        except OSError:
            # It has ended.
            pass
    return names


class JobTest(FolderTest):
    def many(self) -> str:
        """Makes a folder with many files."""
        source = self.path("many")
        for number in range(MANY):
            write(os.path.join(source, str(number)), b"%d" % number)
        return source

    def slow(self) -> ferry.Job[ferry.SyncResult]:
        """Starts a run that takes minutes."""
        write(self.path("large", "file"), bytes(20_000_000))
        return ferry.sync_job(self.path("large"), self.path("slow"), bandwidth=100_000)

    def assert_whole(self, target: str) -> None:
        """Fails if a file of the copy differs from its source."""
        for name in os.listdir(target):
            with open(os.path.join(target, name), "rb") as file:
                self.assertEqual(file.read(), name.encode())

    def test_events_tell_what_is_copied(self) -> None:
        random_tree(self.path("source"), 1)
        with ferry.copy_job(self.path("source"), self.path("target"), symlinks=True, each_entry=True) as job:
            events = list(job)
        result = job.result()
        self.assertEqual(described(self.path("source")), described(self.path("target")))
        start, end = events[0], events[-1]
        assert isinstance(start, ferry.Start) and isinstance(end, ferry.End)
        self.assertEqual((start.task, start.target, end.result), ("cp", self.path("target"), "done"))
        copied = {event.target for event in events if isinstance(event, ferry.Copied)}
        expected = {os.path.normpath(self.path("target", name)) for name in described(self.path("target"))}
        self.assertEqual(copied, expected)
        self.assertEqual(result.files + result.directories + result.symlinks, len(expected))
        self.assertEqual(job.counts.entries, len(expected))
        self.assertTrue(job.counts.is_complete and job.done)

    def test_failures_are_events_and_the_result(self) -> None:
        write(self.path("source", "file"))
        os.mkfifo(self.path("source", "pipe"))
        with ferry.copy_job(self.path("source"), self.path("target")) as job:
            failed = [event for event in job if isinstance(event, ferry.Failed)]
            self.assertEqual([event.source for event in failed], [self.path("source", "pipe")])
            with self.assertRaises(shutil.Error):
                job.result()
            with self.assertRaises(shutil.Error):
                job.result()

    def test_a_job_that_nobody_reads_waits_until_its_result_is_asked_for(self) -> None:
        source = self.many()
        with ferry.copy_job(source, self.path("target"), each_entry=True) as job:
            with self.assertRaises(TimeoutError):
                # Reads nothing, but would let it end.
                job.result(timeout=0.0)
            self.assertEqual(job.result().files, MANY)
        self.assert_whole(self.path("target"))

    def test_a_result_with_a_timeout_keeps_events(self) -> None:
        source = self.many()
        job = ferry.copy_job(source, self.path("target"), each_entry=True)
        self.assertEqual(job.result(timeout=60.0).files, MANY)
        self.assertEqual(sum(isinstance(event, ferry.Copied) for event in job), MANY + 1)

    def test_progress_needs_no_reader_of_events(self) -> None:
        with ferry.copy_job(self.many(), self.path("target"), each_entry=True) as job:
            figures = list(job.progress(0.01))
        self.assertEqual(figures[-1].entries, MANY + 1)
        self.assertTrue(figures[-1].is_complete)

    def test_a_cancelled_job_leaves_no_thread_and_no_partial_file(self) -> None:
        job = ferry.copy_job(self.many(), self.path("target"), each_entry=True)
        events = iter(job)
        for _ in range(100):
            next(events)
        begun = time.monotonic()
        job.cancel()
        self.assertLess(time.monotonic() - begun, SOON)
        self.assertTrue(job.done)
        with self.assertRaises(ferry.Cancelled):
            job.result()
        self.assertFalse([name for name in threads() if name.startswith("ferry")])
        self.assert_whole(self.path("target"))

    def test_a_run_that_nobody_can_wait_for_any_more_ends(self) -> None:
        job = self.slow()
        ferry._job._running.discard(job)
        del job
        end = time.monotonic() + SOON
        while [name for name in threads() if name.startswith("ferry")]:
            self.assertLess(time.monotonic(), end, "the run goes on")
            time.sleep(0.01)
        self.assertFalse(os.path.exists(self.path("slow", "file")))

    def test_a_block_that_raises_cancels(self) -> None:
        job = self.slow()
        with self.assertRaises(ZeroDivisionError), job:
            raise ZeroDivisionError
        self.assertTrue(job.done)
        self.assertFalse(os.path.exists(self.path("slow", "file")))

    def test_an_exception_in_a_callback_ends_the_run_and_propagates(self) -> None:
        write(self.path("source", "a"))
        write(self.path("source", "b"), bytes(20_000_000))

        def on_event(event: ferry.Event) -> None:
            raise ZeroDivisionError("in the callback")

        begun = time.monotonic()
        with self.assertRaisesRegex(ZeroDivisionError, "in the callback"):
            ferry.sync(self.path("source"), self.path("target"), bandwidth=100_000, on_event=on_event)
        self.assertLess(time.monotonic() - begun, SOON)
        self.assertFalse([name for name in threads() if name.startswith("ferry")])

    def test_threads_copy_at_once(self) -> None:
        random_tree(self.path("source"), 2)
        expected = described(self.path("source"))
        failures: List[BaseException] = []

        def copy(number: int) -> None:
            try:
                for turn in range(5):
                    target = self.path(f"target-{number}-{turn}")
                    ferry.copytree(self.path("source"), target, symlinks=True)
                    assert described(target) == expected
            except BaseException as error:
                failures.append(error)

        copiers = [threading.Thread(target=copy, args=(number,)) for number in range(6)]
        for copier in copiers:
            copier.start()
        for copier in copiers:
            copier.join()
        self.assertEqual(failures, [])

    def test_threads_that_wait_for_one_job_get_one_result(self) -> None:
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        write(self.path("source", "file"))
        for turn in range(50):
            job = ferry.copy_job(self.path("source"), self.path(f"target-{turn}"))
            start, results = threading.Barrier(4), []

            def wait() -> None:
                start.wait()
                results.append(job.result())

            waiting = [threading.Thread(target=wait) for _ in range(4)]
            for thread in waiting:
                thread.start()
            for thread in waiting:
                thread.join()
            self.assertEqual([result is job.result() for result in results], [True] * 4)

    def test_each_event_goes_to_one_of_the_threads_that_read(self) -> None:
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        job = ferry.copy_job(self.many(), self.path("target"), each_entry=True)
        names: List[str] = []

        def read() -> None:
            names.extend(event.target for event in job if isinstance(event, ferry.Copied))

        reading = [threading.Thread(target=read) for _ in range(4)]
        for thread in reading:
            thread.start()
        for thread in reading:
            thread.join()
        self.assertEqual((len(names), len(set(names))), (MANY + 1, MANY + 1))
        self.assertEqual(job.result().files, MANY)

    def test_other_threads_run_meanwhile(self) -> None:
        job = self.slow()
        waiting = threading.Thread(target=lambda: self.assertRaises(ferry.Cancelled, job.result))
        waiting.start()
        begun, turns = time.monotonic(), 0
        while time.monotonic() - begun < 0.3:
            turns += 1
        job.cancel()
        waiting.join()
        # A thread that held the interpreter would leave a few.
        self.assertGreater(turns, 10_000)

    def test_a_fork_may_copy_and_is_refused_its_parents_job(self) -> None:
        random_tree(self.path("source"), 3)
        job = self.slow()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                try:
                    job.result()
                except RuntimeError as error:
                    code = 0 if "parent process" in str(error) else 2
                ferry.copytree(self.path("source"), self.path("target"), symlinks=True)
            except BaseException:
                code = 3
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        job.cancel()
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        self.assertEqual(described(self.path("source")), described(self.path("target")))

    def test_a_subinterpreter_is_refused_with_a_reason(self) -> None:
        program = (
            "import {0} as interpreters\n"
            "import ferry\n"
            "inner = interpreters.create()\n"
            "try:\n"
            "    told = interpreters.{1}(inner, 'import ferry')\n"
            "except Exception as error:\n"
            "    told = error\n"
            "print('told:', told)\n"
        )
        names = (("_interpreters", "exec"), ("_xxsubinterpreters", "run_string"))
        for module, call in names:
            try:
                importlib.import_module(module)
            except ImportError:
                continue
            done = subprocess.run([sys.executable, "-c", program.format(module, call)],
                                  capture_output=True, text=True, check=False)
            self.assertRegex(done.stdout + done.stderr, "subinterpreter")
            return
        skip(self, "this Python has no subinterpreters")

    def test_the_end_of_the_interpreter_stops_jobs(self) -> None:
        write(self.path("large", "file"), bytes(20_000_000))
        program = ("import ferry, sys\n"
                   "ferry.sync_job(sys.argv[1], sys.argv[2], bandwidth=100_000)\n")
        begun = time.monotonic()
        subprocess.run([sys.executable, "-c", program, self.path("large"), self.path("target")], check=True)
        self.assertLess(time.monotonic() - begun, SOON)
        self.assertFalse(os.path.exists(self.path("target", "file")))


class SignalTest(FolderTest):
    """A real SIGINT for a real process."""

    def interrupted(self, program: str, *arguments: str, after: float) -> subprocess.CompletedProcess[str]:
        """Runs a program that is interrupted this many seconds after it says that it has begun."""
        # A shell's background job ignores the signal, and so do its children.
        begin = "import signal, sys, ferry\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        child = subprocess.Popen([sys.executable, "-c", begin + program, *arguments], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        assert child.stdout is not None
        self.assertEqual(child.stdout.readline(), "begun\n")
        time.sleep(after)
        child.send_signal(signal.SIGINT)
        out, error = child.communicate(timeout=60)
        return subprocess.CompletedProcess([], child.returncode, out, error)

    def test_ctrl_c_ends_a_copy_that_waits(self) -> None:
        master, slave = os.openpty()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, slave)
        program = (
            "print('begun', flush=True)\n"
            "try:\n"
            "    ferry.copyfile(sys.argv[1], sys.argv[2])\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted')\n"
        )
        done = self.interrupted(program, os.ttyname(slave), self.path("target"), after=0.4)
        self.assertEqual((done.stdout, done.returncode), ("interrupted\n", 0), done.stderr)
        self.assertFalse(os.path.exists(self.path("target")))

    def test_ctrl_c_leaves_only_whole_files(self) -> None:
        for number in range(MANY):
            write(self.path("source", str(number)), b"%d" % number)
        program = (
            "print('begun', flush=True)\n"
            "for number in range(1000):\n"
            "    ferry.copytree(sys.argv[1], sys.argv[2] + str(number))\n"
        )
        for after in (0.05, 0.1, 0.15, 0.2):
            done = self.interrupted(program, self.path("source"), self.path("target"), after=after)
            self.assertIn("KeyboardInterrupt", done.stderr)
            for target in (name for name in os.listdir(self.folder) if name.startswith("target")):
                for name in os.listdir(self.path(target)):
                    with open(self.path(target, name), "rb") as file:
                        self.assertEqual(file.read(), name.encode())
                shutil.rmtree(self.path(target))

    def test_ctrl_c_ends_a_job_and_the_program(self) -> None:
        write(self.path("large", "file"), bytes(20_000_000))
        program = (
            "job = ferry.sync_job(sys.argv[1], sys.argv[2], bandwidth=100_000)\n"
            "with job:\n"
            "    print('begun', flush=True)\n"
            "    for event in job:\n"
            "        pass\n"
        )
        done = self.interrupted(program, self.path("large"), self.path("target"), after=0.4)
        self.assertIn("KeyboardInterrupt", done.stderr)
        self.assertFalse(os.path.exists(self.path("target", "file")))

    def test_handlers_of_the_program_stay(self) -> None:
        random_tree(self.path("source"), 4)
        came: List[int] = []
        before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
        try:
            ferry.copytree(self.path("source"), self.path("target"))
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.05)
        finally:
            signal.signal(signal.SIGTERM, before)
        self.assertEqual(came, [signal.SIGTERM])

    def test_limits_and_umask_of_the_program_stay(self) -> None:
        random_tree(self.path("source"), 5)
        program = (
            "import resource\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (128, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
            "ferry.copytree(sys.argv[1], sys.argv[2])\n"
            "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
        )
        done = subprocess.run([sys.executable, "-c", "import ferry, sys\n" + program, self.path("source"),
                               self.path("target")], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, "128\n", done.stderr)


class AsyncTest(FolderTest):
    def test_a_job_can_be_awaited_and_iterated(self) -> None:
        random_tree(self.path("source"), 6)

        async def run() -> Any:
            async with ferry.sync_job(self.path("source"), self.path("target")) as job:
                kinds = [type(event) async for event in job]
                return kinds, await job

        kinds, result = asyncio.run(run())
        self.assertEqual((kinds[0], kinds[-1]), (ferry.Start, ferry.End))
        self.assertEqual(kinds.count(ferry.Action), result.created)
        self.assertTrue(ferry.verify(self.path("source"), self.path("target")))

    def test_several_jobs_at_once(self) -> None:
        random_tree(self.path("source"), 7)

        async def run() -> Any:
            jobs = [ferry.copy_job(self.path("source"), self.path(f"target-{number}")) for number in range(4)]
            return await asyncio.gather(*jobs)

        self.assertEqual(len({result.files for result in asyncio.run(run())}), 1)

    def test_a_cancelled_task_cancels_its_job(self) -> None:
        write(self.path("large", "file"), bytes(20_000_000))
        job = ferry.sync_job(self.path("large"), self.path("target"), bandwidth=100_000)

        async def wait() -> Any:
            return await job

        async def run() -> None:
            task = asyncio.get_running_loop().create_task(wait())
            await asyncio.sleep(0.2)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        begun = time.monotonic()
        asyncio.run(run())
        self.assertLess(time.monotonic() - begun, SOON)
        self.assertTrue(job.done)
        self.assertFalse(os.path.exists(self.path("target", "file")))

    def test_a_task_that_is_cancelled_while_it_reads_or_leaves_the_block_cancels_its_job(self) -> None:
        write(self.path("large", "file"), bytes(20_000_000))

        async def read(job: Any) -> None:
            async for _ in job:
                pass

        async def leave(job: Any) -> None:
            async with job:
                pass

        async def run(job: Any, use: Any) -> None:
            task = asyncio.get_running_loop().create_task(use(job))
            await asyncio.sleep(0.2)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertTrue(job.done)

        for use in (read, leave):
            job = ferry.sync_job(self.path("large"), self.path("target"), bandwidth=100_000)
            begun = time.monotonic()
            try:
                asyncio.run(run(job, use))
            finally:
                job.cancel()
            self.assertLess(time.monotonic() - begun, SOON)
            self.assertFalse(os.path.exists(self.path("target", "file")))


if __name__ == "__main__":
    unittest.main()
