"""ASCII fallback for terminals without UTF-8: Joiner's symbols become ASCII text, other characters JSON escapes."""

import codecs
import sys
from io import TextIOWrapper
from typing import Final

ERROR_HANDLER_NAME: Final = "joiner"
_ASCII_REPLACEMENTS: Final = {
    "…": "...",
    "→": "->",
    "·": "-",
    "↑": "up",
    "↓": "down",
    "≤": "<=",
    "≥": ">=",
    "■": "#",
    "□": "-",
    "█": "#",
    "░": ".",
} | dict.fromkeys("▏▎▍▌▋▊▉", "-")


def enable_ascii_fallback() -> None:
    """Let standard output and standard error accept all text: a locale without UTF-8 must not cause a failure."""
    codecs.register_error(ERROR_HANDLER_NAME, _replace_unencodable)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(errors=ERROR_HANDLER_NAME)


def _replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of the characters that cannot be encoded, and the position to continue at."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(
        _ASCII_REPLACEMENTS.get(character) or escape_as_json(character)
        for character in error.object[error.start : error.end]
    ), error.end


def escape_as_json(character: str) -> str:
    r"""Return *character* as a JSON escape sequence: programs that parse the output read the same text.

    >>> escape_as_json("ü"), escape_as_json("🚀")
    ('\\u00fc', '\\ud83d\\ude80')
    """
    utf16_bytes = character.encode("utf-16-be", "surrogatepass")
    return "".join(
        f"\\u{utf16_bytes[offset]:02x}{utf16_bytes[offset + 1]:02x}" for offset in range(0, len(utf16_bytes), 2)
    )
