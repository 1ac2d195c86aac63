"""CPython's own tests of shutil, with ferry's functions in place of shutil's."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import unittest

from trees import skip

# Tests that fail with ferry, and why.
SEES_CALLS = "it replaces a function that shutil.copyfile calls, and looks at the calls; ferry does not make them in Python"
EXCEPTIONS = {
    "TestCopyTree.test_copytree_winerror": "it replaces os.chmod, which ferry does not call; the error is one of Windows",
    "TestZeroCopySendfile.test_unhandled_exception": SEES_CALLS,
    "TestZeroCopySendfile.test_blocksize_arg": SEES_CALLS,
    "TestCopyFile.test_w_dest_open_fails": SEES_CALLS,
    "TestCopyFile.test_w_dest_close_fails": SEES_CALLS,
    "TestCopyFile.test_w_source_close_fails": SEES_CALLS,
}

# Runs the tests, and prints the names of those that failed and of all.
PROGRAM = """
import json, sys, unittest
import ferry
with ferry.patch_shutil():
    import test.test_shutil as module
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(suite)
name = lambda test: ".".join(test.id().split(".")[-2:])
failed = sorted({name(test) for test, _ in result.failures + result.errors})
print(json.dumps({"failed": failed, "run": result.testsRun, "skipped": len(result.skipped)}))
"""


class CPythonTest(unittest.TestCase):
    def test_shutils_own_tests_pass(self) -> None:
        if importlib.util.find_spec("test.test_shutil") is None:
            skip(self, "this Python has no tests: install Debian's libpython3-testsuite")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=folder, capture_output=True, text=True, check=False)
        self.assertTrue(done.stdout, done.stderr)
        told = json.loads(done.stdout.splitlines()[-1])
        print(f"shutil's tests: {told['run']} run, {told['skipped']} skipped by themselves, "
              f"{len(told['failed'])} explained exceptions")
        self.assertGreater(told["run"], 100)
        self.assertEqual(set(told["failed"]) - set(EXCEPTIONS), set(), done.stderr)


if __name__ == "__main__":
    unittest.main()
