"""Runs beside a control plane and ends it if the process that started it is killed or crashes.

The argument is the control plane's folder; standard input is a pipe that brings one process id a line and closes when
the starter dies. The watchdog and the control plane's processes are one process group, so that a reused process id is
left alone.
"""

import contextlib
import os
import shutil
import signal
import sys


def main() -> None:
    started = [int(line) for line in sys.stdin]
    for pid in reversed(started):
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(pid) == os.getpgid(0):
                os.kill(pid, signal.SIGKILL)
    shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()
