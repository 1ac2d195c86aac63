"""Compares the speed of ferry's functions with shutil's and with the command, and prints a table.

    python speed.py [--folder DIR] [--rounds N] [--quick] [--cold]

Ways take turns in each round, in another order each time. The table has medians, and the quotient of each median and shutil's.
With --cold (root only), the page cache is dropped before each run of the wide tree.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Callable, Dict, List, Tuple

import ferry

Way = Tuple[str, Callable[[str, str], object]]

COMMAND = os.path.join(os.path.dirname(sys.executable), "ferry")
CP = ["cp", "-r", "--preserve=mode,timestamps,xattr", "-T"]


def by_command(source: str, target: str) -> None:
    """Copies by the command of the wheel, its start included."""
    subprocess.run([COMMAND, *CP, source, target], check=True)


def ways() -> List[Way]:
    """Returns the ways to copy a tree; the command by its binary, too, if FERRY names one."""
    found: List[Way] = [
        ("shutil.copytree", lambda source, target: shutil.copytree(source, target, symlinks=True)),
        ("ferry.copytree", lambda source, target: ferry.copytree(source, target, symlinks=True)),
        ("ferry cp (wheel)", by_command),
    ]
    binary = os.environ.get("FERRY")
    if binary:
        found.append(("ferry cp (binary)",
                      lambda source, target: subprocess.run([binary, *CP, source, target], check=True)))
    return found


def make(root: str, folders: int, files: int, size: int) -> str:
    """Makes a tree with this number of folders, and of files of this size in each."""
    content = random.Random(1).randbytes(size)
    for folder in range(folders):
        path = os.path.join(root, str(folder % 10), str(folder))
        os.makedirs(path)
        for number in range(files):
            with open(os.path.join(path, str(number)), "wb") as file:
                file.write(content)
    return root


def drop_caches() -> None:
    """Empties the page cache."""
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3")


def measure(name: str, source: str, target: str, rounds: int, repeats: int, cold: bool) -> None:
    """Measures all ways on one tree, and prints the rows."""
    seconds: Dict[str, List[float]] = {way: [] for way, _ in ways()}
    for turn in range(rounds):
        taken = ways()
        random.Random(turn).shuffle(taken)
        for way, copy in taken:
            if cold:
                drop_caches()
            spent = 0.0
            for _ in range(repeats):
                begun = time.perf_counter()
                copy(source, target)
                spent += time.perf_counter() - begun
                shutil.rmtree(target)
            seconds[way].append(spent / repeats)
    base = statistics.median(seconds["shutil.copytree"])
    for way, taken_seconds in seconds.items():
        median = statistics.median(taken_seconds)
        low, high = min(taken_seconds) * 1e3, max(taken_seconds) * 1e3
        print(f"| {name} | {way} | {median * 1e3:.2f} | {low:.2f} to {high:.2f} | {base / median:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares the speed of copies.")
    parser.add_argument("--folder", help="where trees are made (default: the system's temporary folder)")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--quick", action="store_true", help="small trees, to see that everything runs")
    parser.add_argument("--cold", action="store_true", help="also copy the wide tree from a cold cache (root)")
    options = parser.parse_args()
    rounds = 3 if options.quick else options.rounds
    scale = 10 if options.quick else 1
    # Starts what is started once: the count of processors, and the pages of the module.
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        target = os.path.join(folder, "target")
        three = make(os.path.join(folder, "three"), 1, 3, 1000)
        ferry.copytree(three, target)
        shutil.rmtree(target)
        print("| tree | way | median ms | range ms | times as fast as shutil |")
        print("|---|---|---|---|---|")
        measure("three files, warm", three, target, rounds, 10, False)
        small = make(os.path.join(folder, "small"), 100 // scale, 100, 4096)
        measure("small: 10,000 files of 4 KiB, warm", small, target, rounds, 1, False)
        if options.cold:
            wide = make(os.path.join(folder, "wide"), 2000 // scale, 10, 16384)
            measure("wide: 20,000 files of 16 KiB in 2,000 folders, cold", wide, target, min(rounds, 7), 1, True)
        large = os.path.join(folder, "large")
        os.mkdir(large)
        with open(os.path.join(large, "file"), "wb") as file:
            for _ in range(512 // scale):
                file.write(random.Random(2).randbytes(1 << 20))
        measure("one file of 512 MiB, warm", large, target, min(rounds, 5), 1, False)


if __name__ == "__main__":
    main()
