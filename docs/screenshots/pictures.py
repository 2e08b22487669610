"""A terminal as SVG: each run of characters at its column, however wide a reader's font is."""

import re
from collections.abc import Iterator
from html import escape, unescape
from typing import Final

WIDTH: Final = 112
"""Columns."""
_SGR: Final = re.compile(r"\x1b\[(\d+)m")
_COLOURS: Final = {
    "1": "font-weight:700",
    "2": "fill:#9da7b1",
    "31": "fill:#ff7b72",
    "32": "fill:#3fb950",
    "33": "fill:#e3b341",
    "36": "fill:#56d4dd",
}
_LINE: Final = 19
_CHARACTER: Final = 8.43
_EDGE: Final = 16


def drawn(command: str, said: str, most: int | None = None) -> str:
    """Answer the picture: *command* as it was typed, and what was *said*, at *most* so many lines of it."""
    lines = said.rstrip("\n").split("\n")
    if most is not None and len(lines) > most:
        lines = [*lines[:most], "…"]
    rows = [_line(f"\x1b[1m$ {command}\x1b[0m", 0), *(_line(one, place) for place, one in enumerate(lines, 1))]
    width, height = round(WIDTH * _CHARACTER + 2 * _EDGE), (len(lines) + 2) * _LINE + _EDGE
    style = (
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre}"
        "rect{fill:#0d1117}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
    title = f"<title>{escape(command)}</title>"
    box = f'<rect width="{width}" height="{height}" rx="8"/>'
    return "\n".join([head, title, f"<style>{style}</style>", box, *rows, "</svg>"]) + "\n"


def _line(text: str, place: int) -> str:
    """Answer a line: each run of characters at its column, however wide a reader's font is."""
    y = _EDGE + (place + 1) * _LINE - 4
    runs = "".join(_run(*one) for one in _runs(text))
    return f'<text y="{y}" xml:space="preserve">{runs}</text>'


def _run(column: int, run: str, style: str) -> str:
    place = f'x="{_EDGE + column * _CHARACTER:.2f}" textLength="{len(run) * _CHARACTER:.2f}"'
    return f"<tspan {place}{style}>{escape(run)}</tspan>"


def _runs(text: str) -> Iterator[tuple[int, str, str]]:
    """Iterate over runs of one style: their column, their characters, their style."""
    column, styles = 0, list[str]()
    for number, part in enumerate(_SGR.split(text)):
        if number % 2:
            styles = [] if part == "0" else [*styles, _COLOURS.get(part, "")]
        elif part:
            said = ";".join(filter(None, styles))
            yield column, part, f' style="{said}"' if said else ""
            column += len(part)


def text_of(picture: str) -> list[str]:
    """Answer the lines of text of a picture, the command first."""
    lines = re.findall(r"<text [^>]*>(.*?)</text>", picture)
    return [unescape(re.sub(r"<[^>]+>", "", one)) for one in lines]
