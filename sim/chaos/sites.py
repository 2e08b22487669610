"""The places at which handlers call the outside, told apart by function, port, method and kind of thing."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeAlias

from sim.faults import Call, When

_OBJECT: Final = re.compile(r"(/(?:nodes|nodeclaims|nodepools|ec2nodeclasses|pods|events|namespaces))/[^/]+")

Target: TypeAlias = tuple[str, When]
"""A place, and whether one dies before or behind the call there."""
_PHASES: Final[tuple[When, ...]] = ("after", "before")


def place_of(call: Call) -> str:
    """Answer where *call* stands, whoever of a function's invocations makes it.

    >>> place_of(Call(port="kube", method="patch", detail="/api/v1/nodes/a/status", when="before", who="x-1"))
    'x kube.patch /api/v1/nodes/*'
    """
    return _place(call.who.partition("-")[0], call.port, call.method, call.detail)


@lru_cache(maxsize=1 << 14)
def _place(function: str, port: str, method: str, detail: str) -> str:
    about = ""
    if method in ("list", "watch"):
        about = ""  # a snapshot is many of them in a row, and nothing happens between them
    elif port == "kube":
        about = _OBJECT.sub(r"\1/*", detail).removesuffix("/status")
    elif port in ("table", "mailbox"):
        about = detail
    elif port == "bucket":
        about = detail.partition("/")[0]
    return " ".join(part for part in (function, f"{port}.{method}", about) if part)


class Coverage:
    """Which places were met, and at which of them somebody died, before and after the call."""

    def __init__(self) -> None:
        """Begin with none."""
        self.met: set[Target] = set()
        self.struck: set[Target] = set()

    def add(self, met: Iterable[Target], struck: Iterable[Target]) -> None:
        """Add what one play met and struck."""
        self.met |= set(met)
        self.struck |= set(struck)

    def places(self) -> set[str]:
        """Answer the places that were met."""
        return {place for place, _ in self.met}

    def missed(self) -> tuple[Target, ...]:
        """Answer the places at which nobody died before, or nobody after, sorted."""
        both = [(place, when) for place in sorted(self.places()) for when in _PHASES]
        return tuple(one for one in both if one not in self.struck)

    def words(self) -> str:
        """Say how much was covered."""
        places = self.places()
        counts = {when: sum(its == when and place in places for place, its in self.struck) for when in _PHASES}
        return f"killed before {counts['before']} and after {counts['after']} of {len(places)} call sites"
