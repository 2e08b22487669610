"""`python -m tests.ui.browser`: install the browser of the tests of the pages, or report why that is impossible.

Exit codes: 0 Chromium is there, 1 its installation failed, 3 this computer has none and cannot install it.
"""

import os
import shutil
import subprocess
import sys
from typing import Final

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
CANNOT_INSTALL_EXIT_CODE: Final = 3
INSTALL_TIMEOUT_S: Final = 900


def find_browser() -> str:
    """Return the path of Chromium, or "" if there is none."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), "")


def main() -> int:
    """Install Chromium unless it is there; print errors to standard output."""
    if find_browser():
        return 0
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        sys.stdout.write(f"no browser here, of {', '.join(PROGRAMS)}. To fix: sudo apt-get install chromium\n")
        return CANNOT_INSTALL_EXIT_CODE
    sys.stderr.write("browser: installing Chromium\n")
    try:
        for arguments in (("update",), ("install", "--yes", "--no-install-recommends", "chromium")):
            subprocess.run(
                ["/usr/bin/apt-get", "-qq", *arguments], check=True, capture_output=True, timeout=INSTALL_TIMEOUT_S
            )
    except subprocess.SubprocessError as error:
        sys.stdout.write(f"Chromium could not be installed: {error}\n")
        return 1
    return 0 if find_browser() else 1


if __name__ == "__main__":
    sys.exit(main())
