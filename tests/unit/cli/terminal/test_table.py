"""Tables in terminals of any width, in pipes, and with colors."""

import io

import pytest

from cli.terminal.table import TableLayout, render_table
from cli.terminal.text import Palette, choose_palette, truncate_text, wrap_text

PLAIN = Palette(enabled=False)
REASONS = TableLayout(
    headings=("NODE", "$/H", "REASON"), alignment="<>~", is_folded=True, min_flexible_width=20, indent=2
)
ROWS = [
    ("ip-10-0-1-14", "0.0373", "no pod on the node would have to move, and its price is the highest of all nodes"),
    ("b", "10.0373", ""),
]
NODES = TableLayout(
    headings=("NODE", "ZONE", "$/H", "BLOCKED BY"), alignment="<<>~", min_flexible_width=12, droppable=("ZONE", "$/H")
)
NODE_ROWS = [("node-1", "us-east-1a", "0.1", "PodBlocksEviction"), ("node-2", "us-east-1b", "12.1", "-")]


class Tty(io.StringIO):
    """A text buffer that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def list_words(lines: list[str]) -> list[str]:
    return sorted(word for line in lines for word in line.split())


def test_a_pipe_gets_one_plain_line_for_each_row() -> None:
    assert render_table(REASONS, ROWS, PLAIN, None) == [
        "  NODE              $/H  REASON",
        f"  ip-10-0-1-14   0.0373  {ROWS[0][2]}",
        "  b             10.0373",
    ]


@pytest.mark.parametrize("width", range(24, 130))
def test_a_folded_table_fits_and_keeps_all_words_whole(width: int) -> None:
    lines = render_table(REASONS, ROWS, PLAIN, width)
    assert max(map(len, lines)) <= width
    words = list_words(render_table(REASONS, ROWS, PLAIN, None))
    assert [word for word in list_words(lines) if word != "REASON"] == [word for word in words if word != "REASON"]


def test_a_folded_text_continues_in_its_column_or_below_its_row_if_that_is_narrow() -> None:
    assert render_table(REASONS, ROWS, PLAIN, 60) == [
        "  NODE              $/H  REASON",
        "  ip-10-0-1-14   0.0373  no pod on the node would have to",
        "                         move, and its price is the highest",
        "                         of all nodes",
        "  b             10.0373",
    ]
    assert render_table(REASONS, ROWS, PLAIN, 40) == [
        "  NODE              $/H",
        "  ip-10-0-1-14   0.0373",
        "      no pod on the node would have to",
        "      move, and its price is the highest",
        "      of all nodes",
        "  b             10.0373",
    ]


def test_a_narrow_terminal_omits_columns_in_order_before_a_text_is_cut() -> None:
    headings = [render_table(NODES, NODE_ROWS, PLAIN, width)[0].split()[:-2] for width in (80, 40, 38, 26, 20)]
    assert headings == [
        *(["NODE", "ZONE", "$/H"], ["NODE", "ZONE", "$/H"], ["NODE", "ZONE", "$/H"]),
        *(["NODE", "$/H"], ["NODE"]),
    ]
    assert render_table(NODES, NODE_ROWS, PLAIN, 18)[1:] == ["node-1  PodBlocks…", "node-2  -"]


def test_hidden_rows_are_included_in_column_widths() -> None:
    all_lines = render_table(NODES, NODE_ROWS, PLAIN, None)
    assert render_table(NODES, NODE_ROWS, PLAIN, None, shown_rows=slice(1, 2)) == [all_lines[0], all_lines[2]]
    assert render_table(NODES, NODE_ROWS, PLAIN, None, shown_rows=slice(0)) == all_lines[:1]


def test_headings_are_bold_and_rows_have_their_color_on_all_their_lines() -> None:
    lines = render_table(REASONS, ROWS, Palette(enabled=True), 60, colors=["red", ""])
    assert lines[0] == "\x1b[1m  NODE              $/H  REASON\x1b[0m"
    assert all(line.startswith("\x1b[31m") and line.endswith("\x1b[0m") for line in lines[1:4])
    assert lines[4] == "  b             10.0373"


def test_names_from_a_cluster_are_neither_markup_nor_emoji_nor_lines() -> None:
    rows = [("[red]a[/red]", "1", ":smile:\nb")]
    assert render_table(REASONS, rows, PLAIN, None)[1] == "  [red]a[/red]    1  :smile: b"


def test_wide_characters_take_two_columns() -> None:
    layout = TableLayout(alignment="<<")
    assert render_table(layout, [("日本", "x"), ("abcd", "x")], PLAIN, None) == ["日本  x", "abcd  x"]
    assert truncate_text("日本語", 5) == "日本…"


@pytest.mark.parametrize("width", [8, 20, 60])
def test_words_that_are_longer_than_the_terminal_stay_whole(width: int) -> None:
    words = ["kubectl", "crd,clusterrolebindings,deployments,nodepools", "-A", "two-part"]
    lines = wrap_text(" ".join(words), width, "  ")
    assert [word for line in lines for word in line.split()] == words
    assert all(line.startswith("  ") for line in lines)


@pytest.mark.parametrize(
    ("environment", "stream", "is_colored"),
    [
        ({}, Tty(), True),
        ({}, io.StringIO(), False),
        ({"NO_COLOR": "1"}, Tty(), False),
        ({"NO_COLOR": ""}, Tty(), True),
        ({"TERM": "dumb"}, Tty(), False),
        ({"FORCE_COLOR": "1"}, io.StringIO(), False),
    ],
)
def test_only_a_terminal_that_supports_colors_gets_them(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], stream: io.StringIO, *, is_colored: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"TERM": "xterm"} | environment).items():
        monkeypatch.setenv(name, value)
    assert choose_palette(stream).colorize("red", "x") == ("\x1b[31mx\x1b[0m" if is_colored else "x")
