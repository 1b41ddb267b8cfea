"""`python -m muster`: the command `muster`, with this interpreter embedded."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn, Sequence

from . import _muster, _processes


def main(how: Sequence[str] = ("-m", "muster")) -> NoReturn:
    """Run the command with sys.argv, and end the process. `how` are the interpreter's own
    arguments, also for tasks of `muster run`."""
    _processes.take_authkey()
    _processes.buffer_lines()
    # The command installs its own signal handlers; Python's would never be called.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    command = [sys.executable or "python3", *how]
    code = _muster.run_command(command, ["muster", *sys.argv[1:]])
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code)


if __name__ == "__main__":
    main()
