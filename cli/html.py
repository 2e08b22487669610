"""Pages that open from a mail: one file, no script, no font, nothing from elsewhere; light and dark as the reader's is.

Whatever comes from a cluster is a name that somebody chose: it is escaped here, once, and nowhere else.
"""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

STYLE: Final = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""Should something slip through, a browser runs and fetches nothing of it."""


class Markup(str):
    """HTML that is made of escaped parts already."""

    __slots__ = ()


Text: TypeAlias = str | Markup
"""A plain text is escaped, a `Markup` is not."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a table."""

    title: str
    is_number: bool = False


def text(some: Text) -> Markup:
    """Answer *some* as HTML."""
    return some if isinstance(some, Markup) else Markup(escape(some))


def tag(name: str, *inner: Text, **attributes: str) -> Markup:
    """Answer the element *name*; of an attribute's name ``_`` at the end is dropped.

    >>> tag("p", "a < b", class_="why")
    '<p class="why">a &lt; b</p>'
    """
    said = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{said}>{''.join(map(text, inner))}</{name}>")


def joined(some: Iterable[Text]) -> Markup:
    """Answer *some*, one after the other."""
    return Markup("".join(map(text, some)))


def words(what: Text, why: str = "") -> Markup:
    """Answer *what* with its why under it."""
    return joined((text(what), tag("div", why, class_="why") if why else Markup("")))


def table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Text]]) -> Markup:
    """Answer a table; its head is repeated on each printed page."""
    body = [tag("tr", *(_cell(column, cell) for column, cell in zip(columns, row, strict=True))) for row in rows]
    head = tag("tr", *(tag("th", one.title, scope="col", **_class(one)) for one in columns))
    return tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))


def _cell(column: Column, cell: Text) -> Markup:
    return tag("td", cell, **_class(column))


def _class(column: Column) -> dict[str, str]:
    return {"class_": "n"} if column.is_number else {}


def folding(summary: Text, *inner: Text, is_open: bool = False) -> Markup:
    """Answer what is shown when its *summary* is touched."""
    return Markup(f"<details{' open' if is_open else ''}>{tag('summary', summary)}{joined(inner)}</details>")


def document(title: str, *body: Text) -> str:
    """Answer the whole page."""
    head = (
        '<meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"{tag('title', title)}<style>{STYLE}</style>"
    )
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{joined(body)}</body></html>\n'
