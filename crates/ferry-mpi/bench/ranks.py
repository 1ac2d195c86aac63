"""Measures copies by MPI ranks on a filesystem that waits, and prints a table.

    python ranks.py --ferry FERRY --mpi FERRY_MPI --waiting WAITING [--dcp DCP] [--ranks 1,4,16] [--rounds N] [--scale N] [--tree NAME ...]

Needs root and mpirun. The trees are in memory. Each rank is a client of its own: it sees them through a mount by the
example `waiting`, in which calls on names take 10 ms and 200 MB/s pass. Programs and numbers of ranks take turns in each
round, in another order each time. `ferry verify` compares each copy. The table has medians.
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
from typing import Dict, List, Tuple

TREES = ("even", "folder", "file")
# Seconds until a client no longer trusts attributes of a removed copy.
TRUST = 1.1


def make(root: str, tree: str, scale: int) -> None:
    """Makes one of the trees, with so many times the small files."""
    content = random.Random(1).randbytes(1 << 20)

    def folders(count: int, size: int) -> None:
        for folder in range(count):
            path = os.path.join(root, str(folder % 10), str(folder))
            os.makedirs(path)
            for number in range(10):
                write(os.path.join(path, str(number)), content[:size])

    def write(path: str, data: bytes, times: int = 1) -> None:
        with open(path, "wb") as file:
            for _ in range(times):
                file.write(data)

    if tree == "even":
        folders(100 * scale, 16384)
    elif tree == "folder":
        folders(50 * scale, 16384)
        os.mkdir(os.path.join(root, "large"))
        for number in range(500 * scale):
            write(os.path.join(root, "large", str(number)), content[:16384])
    else:
        folders(50 * scale, 1 << 20)
        write(os.path.join(root, "large"), content, 250)


class Clients:
    """One mount for each rank, and a folder on which a rank mounts its own."""

    def __init__(self, options: argparse.Namespace, top: str, count: int) -> None:
        self.top = top
        self.backing = os.path.join(top, "backing")
        self.work = os.path.join(top, "work")
        self.servers: List[subprocess.Popen[bytes]] = []
        os.mkdir(self.work)
        for number in range(count):
            mount = os.path.join(top, str(number))
            os.mkdir(mount)
            rate = ["--delay", str(options.delay), "--rate", str(options.rate)]
            self.servers.append(subprocess.Popen([options.waiting, *rate, self.backing, mount]))
        for number in range(count):
            while not os.path.ismount(os.path.join(top, str(number))):
                time.sleep(0.05)

    def run(self, ranks: int, command: List[str]) -> float:
        """Runs a command by ranks, and returns the seconds that it took."""
        script = 'mount --bind "$0/${OMPI_COMM_WORLD_RANK:-0}" "$1" && cd "$1" && shift && exec "$@"'
        alone = ["unshare", "-m", "sh", "-c", script, self.top, self.work, *command]
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "-np", str(ranks)]
        begun = time.perf_counter()
        ran = subprocess.run([*mpirun, *alone] if ranks else alone, stdout=subprocess.DEVNULL, check=False)
        took = time.perf_counter() - begun
        if ran.returncode != 0:
            sys.exit(f"{' '.join(command)} by {ranks} ranks: exit code {ran.returncode}")
        return took

    def end(self) -> None:
        """Unmounts all."""
        for number, server in enumerate(self.servers):
            subprocess.run(["umount", os.path.join(self.top, str(number))], check=True)
            server.wait()


def measure(options: argparse.Namespace, tree: str, counts: List[int]) -> None:
    """Measures all programs on one tree, and prints the rows."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as top:
        source = os.path.join(top, "backing", "source")
        os.makedirs(source)
        make(source, tree, options.scale)
        clients = Clients(options, top, max(counts))
        try:
            stripes = ["--range", "16M"] if tree == "file" else []
            ways: List[Tuple[str, int, List[str]]] = [("ferry cp -a", 0, [options.ferry, "cp", "-aT", "source"])]
            for ranks in counts:
                ways.append(("ferry-mpi cp -a", ranks, [options.mpi, "cp", "-aT", *stripes, "source"]))
                if options.dcp:
                    ways.append(("dcp -p", ranks, [options.dcp, "-q", "-p", "source"]))
            seconds: Dict[Tuple[str, int], List[float]] = {}
            for turn in range(options.rounds):
                taken = list(ways)
                random.Random(turn).shuffle(taken)
                for name, ranks, command in taken:
                    target = f"target-{turn}-{ranks}-{name.split()[0]}"
                    seconds.setdefault((name, ranks), []).append(clients.run(ranks, [*command, target]))
                    copy = os.path.join(clients.backing, target)
                    verified = subprocess.run([options.ferry, "verify", "-q", source, copy], check=False)
                    if verified.returncode != 0 and not name.startswith("dcp"):
                        sys.exit(f"the copy by {name} differs")
                    print(f"{tree} {name} {ranks}: {seconds[name, ranks][-1]:.2f} s", file=sys.stderr)
                    shutil.rmtree(copy)
                    time.sleep(TRUST)
        finally:
            clients.end()
    base = statistics.median(seconds["ferry cp -a", 0])
    for (name, ranks), taken_seconds in sorted(seconds.items(), key=lambda item: (item[0][0], item[0][1])):
        median = statistics.median(taken_seconds)
        low, high = min(taken_seconds), max(taken_seconds)
        print(f"| {tree} | {name} | {ranks or '-'} | {median:.2f} | {low:.2f} to {high:.2f} | {base / median:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures copies by MPI ranks on a filesystem that waits.")
    parser.add_argument("--ferry", required=True, help="the program ferry")
    parser.add_argument("--mpi", required=True, help="the program ferry-mpi")
    parser.add_argument("--waiting", required=True, help="the example waiting of ferry-mpi")
    parser.add_argument("--dcp", help="dcp of mpiFileUtils, to compare with")
    parser.add_argument("--ranks", default="1,4,16", help="numbers of ranks")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=int, default=1, help="times the usual number of small files")
    parser.add_argument("--delay", type=int, default=10, help="milliseconds that a call on a name takes")
    parser.add_argument("--rate", type=int, default=200, help="megabytes a second for each client")
    parser.add_argument("--tree", action="append", choices=TREES, help="measures this tree only; may be repeated")
    options = parser.parse_args()
    print("| tree | program | ranks | median s | range s | times as fast as ferry cp |")
    print("|---|---|---|---|---|---|")
    for tree in options.tree or TREES:
        measure(options, tree, [int(count) for count in options.ranks.split(",")])


if __name__ == "__main__":
    main()
