"""SVG of terminal output, exported by rich: no font, script or style from elsewhere."""

import io
import re
from html import escape, unescape
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

TERMINAL_WIDTH: Final = 112
"""The width of the terminal in columns."""
_THEME: Final = TerminalTheme(
    (13, 17, 23),
    (230, 237, 243),
    [
        *((72, 79, 88), (255, 123, 114), (63, 185, 80), (227, 179, 65)),
        *((88, 166, 255), (188, 140, 255), (86, 212, 221), (230, 237, 243)),
    ],
)
_FORMAT: Final = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {terminal_width} {terminal_height}" role="img">
<title>TITLE</title>
<style>
.{unique_id}-matrix {{
font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width;
}}
{styles}
</style>
<defs>
{lines}
</defs>
<rect fill="#0d1117" width="{terminal_width}" height="{terminal_height}" rx="8"/>
<g transform="translate(8, 8)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""The format of rich without its window, and without the fonts that it loads from a content delivery network.

The picture has a dark background of its own: it is readable on light and dark pages.
"""

_LINE_END_PATTERN: Final = re.compile(r"<text [^>]*>\n</text>")
"""rich draws the end of each line as a text."""


def render_terminal(command: str, output: str, max_lines: int | None = None, width: int = TERMINAL_WIDTH) -> str:
    """Render the picture of *command* and its *output*, limited to *max_lines* lines of *width* columns."""
    lines = output.rstrip("\n").split("\n")
    if max_lines is not None and len(lines) > max_lines:
        lines = [*lines[:max_lines], "…"]
    console = Console(
        record=True,
        width=width + 2,
        file=io.StringIO(),
        force_terminal=True,
        color_system="standard",
        emoji=False,
    )
    for line in (f"\x1b[1m$ {command}\x1b[0m", *lines):
        console.print(Text.from_ansi(line), no_wrap=True, overflow="ellipsis")
    console.print()
    svg_format = _FORMAT.replace("TITLE", escape(command))
    return _LINE_END_PATTERN.sub("", console.export_svg(theme=_THEME, code_format=svg_format, unique_id="terminal"))


def extract_text(picture: str) -> list[str]:
    """Return the lines of text in *picture*, the command first."""
    characters_by_line: dict[int, str] = {}
    for line, text in re.findall(
        r'<text [^>]*clip-path="url\(#terminal-line-(\d+)\)">(.*?)</text>', picture, re.DOTALL
    ):
        characters_by_line[int(line)] = characters_by_line.get(int(line), "") + unescape(text).replace("\xa0", " ")
    return [characters_by_line.get(line, "").rstrip() for line in range(max(characters_by_line) + 1)]
