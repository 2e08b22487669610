"""`python -m tests.e2e`: runs all steps of the deployment test, prints them, and ends with 0 if all checks passed."""

import sys

from tests.controlplane.binaries import NoPrograms
from tests.e2e.steps import play

if __name__ == "__main__":
    try:
        sys.exit(play())
    except NoPrograms as error:
        sys.stderr.write(f"e2e: {error}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("\nended before the end\n")
        sys.exit(130)
