"""The places at which handlers call the outside, told apart by function, port, method and kind of thing."""

import re
from functools import lru_cache
from typing import Final

from sim.faults import Call

_OBJECT: Final = re.compile(r"(/(?:nodes|nodeclaims|nodepools|ec2nodeclasses|pods|events|namespaces))/[^/]+")


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
        self.met: set[str] = set()
        self.struck: set[tuple[str, str]] = set()

    def add(self, other: "Coverage") -> None:
        """Join what *other* saw."""
        self.met |= other.met
        self.struck |= other.struck

    def missed(self) -> tuple[str, ...]:
        """Answer the places at which nobody died before, or nobody after, sorted."""
        both = [(place, when) for place in sorted(self.met) for when in ("before", "after")]
        return tuple(f"{place} {when}" for place, when in both if (place, when) not in self.struck)

    def words(self) -> str:
        """Say how much was covered."""
        counts = {
            when: len(self.met & {place for place, its in self.struck if its == when}) for when in ("before", "after")
        }
        return f"killed before {counts['before']} and after {counts['after']} of {len(self.met)} call sites"
