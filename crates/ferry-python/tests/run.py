"""Runs all tests of this folder. With CI=true, a skipped test is a failure."""

from __future__ import annotations

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def main() -> int:
    sys.path.insert(0, HERE)
    suite = unittest.defaultTestLoader.discover(HERE)
    result = unittest.TextTestRunner(verbosity=int(os.environ.get("VERBOSITY", "1"))).run(suite)
    if not result.wasSuccessful() or result.testsRun == 0:
        return 1
    return 1 if result.skipped and os.environ.get("CI") == "true" else 0


if __name__ == "__main__":
    sys.exit(main())
