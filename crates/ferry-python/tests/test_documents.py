"""The examples of docs/python.md: each block is run in an empty folder, and checked by mypy; and the types of the package."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import unittest
from typing import List

import ferry
from trees import FolderTest, skip

DOCUMENT = os.path.join(os.path.dirname(__file__), "..", "..", "..", "docs", "python.md")
# Runs before each block: the folders that the examples name.
PREPARED = """
import os
for name in ("photos/sea/one.jpg", "photos/two.jpg", "backup/old.jpg"):
    os.makedirs(os.path.dirname(name), exist_ok=True)
    open(name, "w").write(name)
"""


def blocks() -> List[str]:
    """Returns the blocks of Python in the document."""
    with open(DOCUMENT, encoding="utf-8") as file:
        return re.findall(r"^```python\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)


class DocumentTest(FolderTest):
    def test_examples_run(self) -> None:
        for module in ("tqdm", "rich"):
            if importlib.util.find_spec(module) is None:
                skip(self, f"{module} is not installed")
        found = blocks()
        self.assertGreater(len(found), 5)
        for number, block in enumerate(found):
            with self.subTest(block=block):
                folder = self.path(str(number))
                os.mkdir(folder)
                subprocess.run([sys.executable, "-c", PREPARED], cwd=folder, check=True)
                done = subprocess.run([sys.executable, "-c", block], cwd=folder, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)


class TypesTest(FolderTest):
    def mypy(self, *arguments: str) -> None:
        if importlib.util.find_spec("mypy") is None:
            skip(self, "mypy is not installed")
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", self.path("cache"), *arguments],
                              cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_package_is_strictly_typed(self) -> None:
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(ferry.__file__), "py.typed")))
        self.mypy("-p", "ferry")

    def test_the_examples_are_strictly_typed(self) -> None:
        paths = []
        for number, block in enumerate(blocks()):
            paths.append(self.path(f"block_{number}.py"))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(block)
        self.mypy("--ignore-missing-imports", *paths)


if __name__ == "__main__":
    unittest.main()
