"""`python -m tests.e2e`: plays the story, tells it, and ends with 0 if all of it was so."""

import sys

from tests.controlplane.binaries import NoPrograms
from tests.e2e.story import play

if __name__ == "__main__":
    try:
        sys.exit(play())
    except NoPrograms as error:
        sys.stderr.write(f"e2e: {error}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("\nended before the end\n")
        sys.exit(130)
