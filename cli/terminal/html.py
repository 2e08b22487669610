"""HTML pages that open from a mail: one file, no script, no font, no external resource; light and dark mode.

All text from a cluster is untrusted: it is escaped here, once, and nowhere else.
"""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

PAGE_STYLE: Final = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
_CONTENT_SECURITY_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""If unescaped text reaches the page, the browser neither runs nor fetches any of it."""


class Markup(str):
    """HTML that consists of escaped parts."""

    __slots__ = ()


Text: TypeAlias = str | Markup
"""A plain string is escaped, `Markup` is not."""


class TableColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a table."""

    title: str
    is_number: bool = False


def escape_text(content: Text) -> Markup:
    """Return *content* as HTML."""
    return content if isinstance(content, Markup) else Markup(escape(content))


def render_tag(name: str, *inner: Text, **attributes: str) -> Markup:
    """Return the element *name*; a trailing ``_`` of an attribute's name is dropped.

    >>> render_tag("p", "a < b", class_="why")
    '<p class="why">a &lt; b</p>'
    """
    attribute_text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{attribute_text}>{''.join(map(escape_text, inner))}</{name}>")


def join_markup(parts: Iterable[Text]) -> Markup:
    """Return *parts* concatenated."""
    return Markup("".join(map(escape_text, parts)))


def render_with_reason(content: Text, reason: str = "") -> Markup:
    """Return *content* with the reason below it."""
    return join_markup((escape_text(content), render_tag("div", reason, class_="why") if reason else Markup("")))


def render_html_table(caption: str, columns: Sequence[TableColumn], rows: Iterable[Sequence[Text]]) -> Markup:
    """Return a table; its head is repeated on each printed page."""
    body = [
        render_tag("tr", *(_render_cell(column, cell) for column, cell in zip(columns, row, strict=True)))
        for row in rows
    ]
    head = render_tag(
        "tr",
        *(
            render_tag("th", head_column.title, scope="col", **_build_class_attribute(head_column))
            for head_column in columns
        ),
    )
    return render_tag("table", render_tag("caption", caption), render_tag("thead", head), render_tag("tbody", *body))


def _render_cell(column: TableColumn, cell: Text) -> Markup:
    return render_tag("td", cell, **_build_class_attribute(column))


def _build_class_attribute(column: TableColumn) -> dict[str, str]:
    return {"class_": "n"} if column.is_number else {}


def render_details(summary: Text, *inner: Text, is_open: bool = False) -> Markup:
    """Return a block that opens when *summary* is clicked."""
    return Markup(
        f"<details{' open' if is_open else ''}>{render_tag('summary', summary)}{join_markup(inner)}</details>"
    )


def render_html_page(title: str, *body: Text) -> str:
    """Return the complete page."""
    head = (
        '<meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{_CONTENT_SECURITY_POLICY}">'
        f"{render_tag('title', title)}<style>{PAGE_STYLE}</style>"
    )
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{join_markup(body)}</body></html>\n'
