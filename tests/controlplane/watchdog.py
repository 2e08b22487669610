"""Runs beside a control plane and ends it if whoever started it can no longer: killed, crashed, out of memory.

Called with the plane's folder; its standard input is a pipe that closes when the starter dies, and brings one process
id a line before. It and the plane's processes are one process group, so that an id that means somebody else by now is
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
