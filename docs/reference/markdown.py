"""How a page is put together: tables, code, and what breaks them."""

from collections.abc import Iterable, Sequence
from typing import Final

NOTICE: Final = "<!-- Written by `python -m docs.reference`: change what it is made from, not this page. -->"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Answer a table; a bar in a cell is escaped."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def code(text: str) -> str:
    """Answer *text* in monospace; empty stays empty."""
    return f"`{text}`" if text else ""


def page(title: str, *parts: str) -> str:
    """Answer a whole page; *parts* are separated by empty lines."""
    return "\n\n".join([NOTICE, f"# {title}", *(part.strip("\n") for part in parts if part.strip())]) + "\n"
