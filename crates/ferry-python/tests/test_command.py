"""The command in the wheel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import unittest

import ferry
from test_sync import command
from trees import FolderTest, described, random_tree, write


class CommandTest(FolderTest):
    def test_it_copies_and_has_exit_codes(self) -> None:
        random_tree(self.path("source"), 1)
        done = command("cp", "-a", self.path("source"), self.path("target"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(described(self.path("source")), described(self.path("target")))
        self.assertEqual(command("cp", self.path("missing"), self.path("target")).returncode, 1)
        self.assertEqual(command("verify", "--wrong").returncode, 2)
        self.assertEqual(command("verify", "--quiet", self.path("source"), self.path("target")).returncode, 0)

    def test_version_and_help(self) -> None:
        self.assertIn(ferry.__version__, command("--version").stdout)
        self.assertIn("sync", command("--help").stdout)
        module = subprocess.run([sys.executable, "-m", "ferry", "--version"], capture_output=True, text=True, check=True)
        self.assertIn(ferry.__version__, module.stdout)

    def test_ctrl_c_ends_it_by_the_signal(self) -> None:
        master, slave = os.openpty()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, slave)
        program = os.path.join(os.path.dirname(sys.executable), "ferry")
        # A shell's background job ignores the signal, and so do its children.
        child = subprocess.Popen([program, "cp", os.ttyname(slave), self.path("target")],
                                 preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        time.sleep(1.0)
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(30), -signal.SIGINT)
        self.assertFalse(os.path.exists(self.path("target")))

    def test_events_and_standard_output(self) -> None:
        write(self.path("source", "file"))
        done = command("sync", "--events", self.path("source"), self.path("target"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"end"', done.stdout.splitlines()[-1])

    def test_called_as_cp_it_is_cp(self) -> None:
        write(self.path("file"))
        program = os.path.join(os.path.dirname(sys.executable), "ferry")
        os.symlink(program, self.path("cp"))
        subprocess.run([self.path("cp"), self.path("file"), self.path("copy")], check=True)
        self.assertTrue(os.path.exists(self.path("copy")))


if __name__ == "__main__":
    unittest.main()
