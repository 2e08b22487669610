"""SVG of terminal output: each run of characters has its column, independent of the reader's font."""

import re
from collections.abc import Iterator
from html import escape, unescape
from typing import Final

TERMINAL_WIDTH: Final = 112
"""The width of the terminal in columns."""
_SGR_PATTERN: Final = re.compile(r"\x1b\[(\d+)m")
_STYLE_BY_SGR_CODE: Final = {
    "1": "font-weight:700",
    "2": "fill:#9da7b1",
    "31": "fill:#ff7b72",
    "32": "fill:#3fb950",
    "33": "fill:#e3b341",
    "36": "fill:#56d4dd",
}
_LINE_HEIGHT: Final = 19
_CHARACTER_WIDTH: Final = 8.43
_MARGIN_SIZE: Final = 16


def render_terminal(command: str, output: str, max_lines: int | None = None) -> str:
    """Render the picture of *command* and its *output*, limited to *max_lines* lines."""
    lines = output.rstrip("\n").split("\n")
    if max_lines is not None and len(lines) > max_lines:
        lines = [*lines[:max_lines], "…"]
    rows = [
        _render_line(f"\x1b[1m$ {command}\x1b[0m", 0),
        *(_render_line(line, place) for place, line in enumerate(lines, 1)),
    ]
    width, height = (
        round(TERMINAL_WIDTH * _CHARACTER_WIDTH + 2 * _MARGIN_SIZE),
        (len(lines) + 2) * _LINE_HEIGHT + _MARGIN_SIZE,
    )
    style = (
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre}"
        "rect{fill:#0d1117}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
    title = f"<title>{escape(command)}</title>"
    box = f'<rect width="{width}" height="{height}" rx="8"/>'
    return "\n".join([head, title, f"<style>{style}</style>", box, *rows, "</svg>"]) + "\n"


def _render_line(text: str, line_number: int) -> str:
    """Render a line: each run of characters at its column, independent of the reader's font."""
    y = _MARGIN_SIZE + (line_number + 1) * _LINE_HEIGHT - 4
    runs = "".join(_render_run(*styled_run) for styled_run in _split_runs(text))
    return f'<text y="{y}" xml:space="preserve">{runs}</text>'


def _render_run(column: int, run: str, style: str) -> str:
    place = f'x="{_MARGIN_SIZE + column * _CHARACTER_WIDTH:.2f}" textLength="{len(run) * _CHARACTER_WIDTH:.2f}"'
    return f"<tspan {place}{style}>{escape(run)}</tspan>"


def _split_runs(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the runs of one style: column, characters, style attribute."""
    column, styles = 0, list[str]()
    for number, part in enumerate(_SGR_PATTERN.split(text)):
        if number % 2:
            styles = [] if part == "0" else [*styles, _STYLE_BY_SGR_CODE.get(part, "")]
        elif part:
            style = ";".join(filter(None, styles))
            yield column, part, f' style="{style}"' if style else ""
            column += len(part)


def extract_text(picture: str) -> list[str]:
    """Return the lines of text in *picture*, the command first."""
    lines = re.findall(r"<text [^>]*>(.*?)</text>", picture)
    return [unescape(re.sub(r"<[^>]+>", "", text_line)) for text_line in lines]
