"""Taints and tolerations."""

from collections.abc import Iterable
from typing import Final

import msgspec

from shared.model.core.labels import DISRUPTED_TAINT, UNREGISTERED_TAINT


class Taint(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """One taint; two taints with equal key and effect are the same taint."""

    key: str
    effect: str
    value: str = ""

    def is_same(self, taint: "Taint") -> bool:
        """Return whether both taints have the same key and effect."""
        return self.key == taint.key and self.effect == taint.effect

    def __str__(self) -> str:
        """Return the format of kubectl: ``key=value:Effect``."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """One toleration; an empty key with `Exists` tolerates everything, an empty effect every effect.

    An unknown operator tolerates nothing.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def can_tolerate(self, taint: Taint) -> bool:
        """Return whether *taint* is tolerated."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.operator == "Exists":
            return not self.key or self.key == taint.key
        return self.operator == "Equal" and self.key == taint.key and self.value == taint.value


DISRUPTED: Final = Taint(key=DISRUPTED_TAINT, effect="NoSchedule")
UNREGISTERED: Final = Taint(key=UNREGISTERED_TAINT, effect="NoExecute")
PREFER_NO_SCHEDULE: Final = Toleration(operator="Exists", effect="PreferNoSchedule")

EPHEMERAL_TAINTS: Final = (
    Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),
    Taint(key="node.kubernetes.io/not-ready", effect="NoExecute"),
    Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule"),
    Taint(key="node.cloudprovider.kubernetes.io/uninitialized", effect="NoSchedule", value="true"),
    UNREGISTERED,
)
"""Taints that every new node has for a while; ignored until the node is initialized."""


def is_ephemeral(taint: Taint) -> bool:
    """Return whether *taint* is removed by its owner while a node becomes ready."""
    return taint in EPHEMERAL_TAINTS or taint.key.startswith("readiness.k8s.io/")


def without_disrupted_taint(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Return *taints* without the disrupted taint of any effect."""
    return tuple(taint for taint in taints if taint.key != DISRUPTED_TAINT)


def with_disrupted_taint(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Return *taints* with Joiner's taint as the only disrupted taint."""
    return (*without_disrupted_taint(taints), DISRUPTED)


def find_untolerated_taint(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """Return the first taint, in the given order, that none of *tolerations* tolerates."""
    all_tolerations = tuple(tolerations)
    return next(
        (taint for taint in taints if not any(toleration.can_tolerate(taint) for toleration in all_tolerations)), None
    )


def encode_taint(taint: Taint) -> dict[str, str]:
    """Return a v1 Taint, as in a Node, a NodeClaim and a kubelet's configuration."""
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, "effect": taint.effect, **value}
