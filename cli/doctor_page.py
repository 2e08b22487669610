"""What `joiner doctor` found: a list with remedies for a person, a document for a program."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby
from typing import Any, Final

from cli.checks.findings import LEVELS, Finding, Level
from cli.text import Palette, folded
from shared.model.units import instant_text

COLOURS: Final[dict[Level, str]] = {"ok": "green", "later": "cyan", "unseen": "yellow", "warn": "yellow", "fail": "red"}
WORDS: Final[dict[Level, str]] = {
    "ok": "ok",
    "later": "to be made",
    "unseen": "not seen",
    "warn": "to be looked at",
    "fail": "wrong",
}
OK_OF_A_CHECK: Final = 3
"""So many of one check's lines that say all is well."""
_WIDTH: Final = 7
_CHECK: Final = 16

Found = Iterable[tuple[str, Finding]]


def page(found: Found, unasked: Iterable[str], palette: Palette, width: int | None, *, is_whole: bool) -> str:
    """Answer the list, group by group, and what it comes to; *unasked* is what nobody asked for."""
    every = list(found)
    lines: list[str] = []
    for group, some in groupby(every, key=lambda one: one[0]):
        lines.append(palette.paint("bold", group.upper()))
        for _, same in groupby((one for _, one in some), key=lambda one: one.check):
            lines.extend(_check(list(same), palette, width, is_whole=is_whole))
        lines.append("")
    lines.extend(f"not asked: {one}" for one in unasked)
    return "\n".join([*lines, _sum(every), ""])


def _check(some: list[Finding], palette: Palette, width: int | None, *, is_whole: bool) -> Iterator[str]:
    fine = [one for one in some if one.level == "ok"]
    hidden = 0 if is_whole else max(len(fine) - OK_OF_A_CHECK, 0)
    shown = [one for one in some if one.level != "ok" or one in fine[: len(fine) - hidden]]
    for one in shown:
        head = f"  {palette.paint(COLOURS[one.level], f'{one.level:{_WIDTH}}')}{one.check:{_CHECK}} "
        indent = " " * (2 + _WIDTH + _CHECK + 1)
        first, *rest = folded(one.what, width, indent, "")
        yield head + first.strip()
        yield from rest
        if one.remedy:
            yield from folded(f"-> {one.remedy}", width, indent, "   ")
    if hidden:
        yield f"  {'ok':{_WIDTH}}{'':{_CHECK}} … and {hidden} more that are well (--all)"


def _sum(every: list[tuple[str, Finding]]) -> str:
    counted = Counter(one.level for _, one in every)
    return ", ".join(f"{counted[level]} {WORDS[level]}" for level in LEVELS if counted[level]) or "nothing was asked"


def document(found: Found, unasked: Iterable[str], at: datetime) -> dict[str, Any]:
    """Answer the same for a program."""
    every = list(found)
    counted = Counter(one.level for _, one in every)
    return {
        "at": instant_text(at),
        "counts": {level: counted[level] for level in LEVELS},
        "findings": [
            {"group": group, "check": one.check, "level": one.level, "what": one.what, "remedy": one.remedy}
            for group, one in every
        ],
        "notAsked": list(unasked),
    }


def status(found: Found) -> int:
    """Answer the exit status: 1 if something is wrong, 3 if something is to be looked at or was not seen."""
    levels = {one.level for _, one in found}
    if "fail" in levels:
        return 1
    return 3 if levels & {"warn", "unseen"} else 0
