"""Tables for terminals: rich aligns, cuts and folds columns; without borders, pipes get plain lines."""

import sys
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from cli.terminal.text import Palette, open_console, wrap_text

UNLIMITED_WIDTH: Final = 1_000_000
"""Columns of an output whose lines may have any length."""
_COLUMN_GAP: Final = 2
_STACK_INDENT_CHARACTERS: Final = 4
_MIN_CUT_WIDTH: Final = 8
"""No text is cut to less."""


class TableLayout(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a table."""

    alignment: str
    """A character for each column: ``<`` text, ``>`` a number, ``~`` the text that becomes narrower if necessary."""
    headings: tuple[str, ...] = ()
    is_folded: bool = False
    """Whether the narrower text, the last column, continues on further lines between words; otherwise, it is cut."""
    min_flexible_width: int = _MIN_CUT_WIDTH
    """Below this width, droppable columns are omitted first, and a folded text continues below its row."""
    droppable: tuple[str, ...] = ()
    """Headings of the columns that a narrow terminal omits, in this order."""
    indent: int = 0


def render_table(
    layout: TableLayout,
    rows: Sequence[Sequence[str]],
    palette: Palette,
    width: int | None,
    *,
    colors: Sequence[str] = (),
    shown_rows: slice = slice(None),
) -> list[str]:
    """Return the lines of a table without borders, with headings if *layout* has them.

    *colors* are those of *rows*. *shown_rows* selects rows; all rows determine the widths of the columns.
    """
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    available_width = UNLIMITED_WIDTH if width is None else width - layout.indent
    columns = _choose_columns(layout, rows, available_width)
    if layout.is_folded and _sum_widths(column.min_width for column in columns) > available_width:
        return _render_stacked_rows(layout, rows, palette, width, colors=colors)
    table = Table.grid(padding=(0, _COLUMN_GAP, 0, 0))
    for column in columns:
        table.add_column(
            justify="right" if column.mark == ">" else "left",
            no_wrap=column.mark != "~",
            min_width=column.min_width,
            max_width=column.max_width,
        )
    heading_styles = ["bold"] if layout.headings else []
    styles = [*heading_styles, *(colors or [""] * len(rows))]
    styled_rows = [*zip(styles, zip(*(column.cells for column in columns), strict=True), strict=True)]
    for style, cells in (*styled_rows[: len(heading_styles)], *styled_rows[len(heading_styles) :][shown_rows]):
        table.add_row(
            *(Text(cell, no_wrap=not layout.is_folded, overflow="ellipsis", end="") for cell in cells), style=style
        )
    table_width = max(available_width, _sum_widths(column.min_width for column in columns))
    console = open_console(sys.stdout, table_width)  # a number is never cut, even if the terminal is too narrow
    return [
        palette.colorize(
            str(line[0].style or ""), " " * layout.indent + "".join(segment.text for segment in line).rstrip()
        )
        for line in console.render_lines(table, pad=False)
    ]


def _render_stacked_rows(
    layout: TableLayout, rows: Sequence[Sequence[str]], palette: Palette, width: int | None, *, colors: Sequence[str]
) -> list[str]:
    """Return the table without its last column, which continues below each row; a longer row continues as well."""
    front = replace(
        layout, alignment=layout.alignment[:-1], headings=layout.headings[:-1], is_folded=False, droppable=()
    )
    from rich.cells import cell_len  # noqa: PLC0415

    lines = render_table(front, [row[:-1] for row in rows], Palette(enabled=False), None)
    heading_count = len(lines) - len(rows)
    stacked_lines = [palette.colorize("bold", line) for line in lines[:heading_count]]
    for line, row, color in zip(lines[heading_count:], rows, colors or [""] * len(rows), strict=True):
        texts = wrap_text(row[-1], width, " " * (layout.indent + _STACK_INDENT_CHARACTERS), "") if row[-1] else []
        row_lines = [line] if width is None or cell_len(line) <= width else wrap_text(line, width, " " * layout.indent)
        stacked_lines += [palette.colorize(color, text) for text in (*row_lines, *texts)]
    return stacked_lines


class _Column(msgspec.Struct, frozen=True):
    """A column with its heading, and its width in a terminal."""

    mark: str
    cells: tuple[str, ...]
    min_width: int
    max_width: int


def _choose_columns(layout: TableLayout, rows: Sequence[Sequence[str]], available_width: int) -> list[_Column]:
    """Return the columns that fit: as long as they are too wide, the next droppable column is omitted."""
    table_rows = [layout.headings, *rows] if layout.headings else rows
    columns = [
        _measure_column(mark, tuple(cell.replace("\n", " ") for cell in cells), layout)
        for mark, cells in zip(layout.alignment, zip(*table_rows, strict=True), strict=True)
    ]
    for heading in layout.droppable:
        if _sum_widths(column.min_width for column in columns) <= available_width:
            break
        columns = [column for column in columns if column.cells[0] != heading]
    return columns if layout.is_folded else [_allow_cuts(column) for column in columns]


def _allow_cuts(column: _Column) -> _Column:
    return replace(column, min_width=min(column.min_width, _MIN_CUT_WIDTH)) if column.mark == "~" else column


def _measure_column(mark: str, cells: tuple[str, ...], layout: TableLayout) -> _Column:
    from rich.cells import cell_len  # noqa: PLC0415

    width = max(map(cell_len, cells))
    min_width = width if mark != "~" else min(width, layout.min_flexible_width)
    if mark == "~" and layout.is_folded:
        min_width = max(min_width, *(cell_len(word) for cell in cells for word in cell.split()))
    return _Column(mark=mark, cells=cells, min_width=min_width, max_width=width)


def _sum_widths(widths: Iterable[int]) -> int:
    """Return the width of a table with columns of *widths*."""
    column_widths = [*widths]
    return sum(column_widths) + _COLUMN_GAP * (len(column_widths) - 1)
