"""What a command says besides its answer: on standard error, so that the answer can be piped on."""

import sys
from collections.abc import Iterable


def tell(command: str, lines: Iterable[str]) -> int:
    """Write *lines* with the command's name before each; answer the exit status: 1 if there were any."""
    told = list(lines)
    sys.stderr.writelines(f"joiner {command}: {line}\n" for line in told)
    return 1 if told else 0
