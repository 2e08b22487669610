"""What is printed where a terminal knows few characters: signs of ours as letters, others as JSON escapes them."""

import codecs
import sys
from io import TextIOWrapper
from typing import Final

NAME: Final = "joiner"
_LETTERS: Final = {"…": "...", "→": "->", "·": "-", "↑": "up", "↓": "down", "≤": "<=", "≥": ">="}


def be_content_with_few() -> None:
    """Let standard output and error write whatever is said to them: a locale without UTF-8 is no reason to fail."""
    codecs.register_error(NAME, _written)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(errors=NAME)


def _written(error: UnicodeError) -> tuple[str, int]:
    """Answer what stands for the characters that cannot be encoded, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_LETTERS.get(one) or escaped(one) for one in error.object[error.start : error.end]), error.end


def escaped(one: str) -> str:
    r"""Answer a character as JSON may have it: a program still reads the same.

    >>> escaped("ü"), escaped("🚀")
    ('\\u00fc', '\\ud83d\\ude80')
    """
    units = one.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
