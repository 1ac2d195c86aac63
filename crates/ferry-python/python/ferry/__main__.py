"""The command `ferry`, in the interpreter's process."""

from __future__ import annotations

import os
import shutil
import signal
import sys

from . import _core


def main() -> int:
    """Runs the command with the arguments of the process, and returns its exit code."""
    # Python's handler would raise KeyboardInterrupt after the command has ended. A signal that is ignored stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    own = os.path.abspath(sys.argv[0])
    if os.path.basename(own) == "__main__.py":
        # `python -m ferry`: the script beside the interpreter starts the same command.
        beside = os.path.join(os.path.dirname(sys.executable), "ferry")
        program = beside if os.path.exists(beside) else shutil.which("ferry") or "ferry"
        return _core.main(program, ["ferry", *sys.argv[1:]])
    return _core.main(own, sys.argv)


if __name__ == "__main__":
    sys.exit(main())
