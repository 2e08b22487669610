"""Call sites where handlers call a port, distinguished by function, port, method and kind of object."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeAlias

from sim.fault_tap import CallPhase, PortCall

_OBJECT_PATH: Final = re.compile(
    r"(/(?:nodes|nodeclaims|nodepools|ec2nodeclasses|pods|events|namespaces|provisioningrequests))/[^/]+"
)

KillTarget: TypeAlias = tuple[str, CallPhase]
"""A call site, and whether the handler is killed before or after the call."""
_PHASES: Final[tuple[CallPhase, ...]] = ("after", "before")


def get_call_site(call: PortCall) -> str:
    """Return the call site of *call*, independent of the invocation.

    >>> path = "/api/v1/nodes/a/status"
    >>> get_call_site(PortCall(port="kube", method="patch", detail=path, phase="before", world_name="x-1"))
    'x kube.patch /api/v1/nodes/*'
    """
    return _build_site(call.world_name.partition("-")[0], call.port, call.method, call.detail)


@lru_cache(maxsize=1 << 14)
def _build_site(function: str, port: str, method: str, detail: str) -> str:
    object_kind = ""
    if method in ("list", "watch"):
        object_kind = ""  # a snapshot makes many of these calls in a row, without effects in between
    elif port == "kube":
        object_kind = _OBJECT_PATH.sub(r"\1/*", detail).removesuffix("/status")
    elif port in ("table", "mailbox"):
        object_kind = detail
    elif port == "bucket":
        object_kind = detail.partition("/")[0]
    return " ".join(part for part in (function, f"{port}.{method}", object_kind) if part)


class KillCoverage:
    """Which call sites were reached, and at which of them a handler was killed, before and after the call."""

    def __init__(self) -> None:
        """Create an empty coverage."""
        self.reached: set[KillTarget] = set()
        self.killed: set[KillTarget] = set()

    def add(self, reached: Iterable[KillTarget], killed: Iterable[KillTarget]) -> None:
        """Add the coverage of one run."""
        self.reached |= set(reached)
        self.killed |= set(killed)

    def list_sites(self) -> set[str]:
        """Return the call sites that were reached."""
        return {site for site, _ in self.reached}

    def find_missed_targets(self) -> tuple[KillTarget, ...]:
        """Return the targets without a kill (before or after each call site), sorted."""
        all_targets = [(site, when) for site in sorted(self.list_sites()) for when in _PHASES]
        return tuple(target for target in all_targets if target not in self.killed)

    def format_summary(self) -> str:
        """Return the coverage as text."""
        places = self.list_sites()
        counts = {
            when: sum(target_phase == when and site in places for site, target_phase in self.killed) for when in _PHASES
        }
        return f"killed before {counts['before']} and after {counts['after']} of {len(places)} call sites"
