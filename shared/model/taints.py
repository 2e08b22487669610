"""Taints, tolerations, and which tolerates which."""

from collections.abc import Iterable
from typing import Final

import msgspec

from shared.model.labels import DISRUPTED_TAINT, UNREGISTERED_TAINT


class Taint(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """One taint; two with equal key and effect are the same taint."""

    key: str
    effect: str
    value: str = ""

    def is_same(self, other: "Taint") -> bool:
        """Whether both stand in the same place: key and effect."""
        return self.key == other.key and self.effect == other.effect

    def __str__(self) -> str:
        """As kubectl prints it: ``key=value:Effect``."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """One toleration; an empty key with `Exists` tolerates everything, an empty effect every effect.

    An operator that is not known tolerates nothing.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether *taint* is no obstacle."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.operator == "Exists":
            return not self.key or self.key == taint.key
        return self.operator == "Equal" and self.key == taint.key and self.value == taint.value


DISRUPTED: Final = Taint(key=DISRUPTED_TAINT, effect="NoSchedule")
UNREGISTERED: Final = Taint(key=UNREGISTERED_TAINT, effect="NoExecute")
PREFER_NO_SCHEDULE: Final = Toleration(operator="Exists", effect="PreferNoSchedule")

EPHEMERAL: Final = (
    Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),
    Taint(key="node.kubernetes.io/not-ready", effect="NoExecute"),
    Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule"),
    Taint(key="node.cloudprovider.kubernetes.io/uninitialized", effect="NoSchedule", value="true"),
    UNREGISTERED,
)
"""What every young node has for a while; no obstacle until it is initialized."""


def is_ephemeral(taint: Taint) -> bool:
    """Whether *taint* goes by itself while a node becomes ready."""
    return taint in EPHEMERAL or taint.key.startswith("readiness.k8s.io/")


def first_untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """Answer the first taint, in the given order, that none of *tolerations* tolerates."""
    some = tuple(tolerations)
    return next((taint for taint in taints if not any(one.tolerates(taint) for one in some)), None)


def taint_object(taint: Taint) -> dict[str, str]:
    """Write a v1 Taint, as a Node, a NodeClaim and a kubelet's configuration have it."""
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, "effect": taint.effect, **value}
