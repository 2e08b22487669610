"""Markdown of the reference pages: tables, code and escaping."""

from collections.abc import Iterable, Sequence
from typing import Final

NOTICE: Final = "<!-- Written by `python -m docs.reference`: change what it is made from, not this page. -->"


def render_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table; a vertical bar in a cell is escaped."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def format_code(text: str) -> str:
    """Format *text* as inline code; empty text stays empty."""
    return f"`{text}`" if text else ""


def render_page(title: str, *parts: str) -> str:
    """Render a complete page; *parts* are separated by blank lines."""
    return "\n\n".join([NOTICE, f"# {title}", *(part.strip("\n") for part in parts if part.strip())]) + "\n"
