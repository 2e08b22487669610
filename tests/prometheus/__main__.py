"""`python -m tests.prometheus`: build Prometheus in advance; exit code 1 if that fails."""

import sys

from tests.controlplane.binaries import NoPrograms
from tests.prometheus.binaries import ensure_prometheus


def main() -> int:
    """Build it unless it is built."""
    try:
        sys.stderr.write(f"prometheus: {ensure_prometheus()}\n")
    except NoPrograms as error:
        sys.stdout.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
