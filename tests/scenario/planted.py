"""Five bugs, to be planted in the product: a simulation that does not find them proves nothing."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest
from msgspec.structs import replace

from shared.actions import kube_writes
from shared.model.action import DeleteObject, EvictPod
from shared.model.ec2 import FleetRequest, FleetResult
from shared.model.nodes import NodeClaim
from shared.model.resources import Resources
from shared.ports import Fence, Kube, Row
from sim.chaos.draw import brief_of, script_of
from sim.chaos.script import Script
from sim.cloud.cloud import Cloud
from sim.memory import MemoryTable

Plant = Callable[[pytest.MonkeyPatch], None]
Draw = Callable[[int], Script]


def skip_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that is sent again is a new one."""
    create = Cloud.create_fleet

    def forgetful(cloud: Cloud, request: FleetRequest) -> FleetResult:
        return create(cloud, replace(request, client_token=""))

    monkeypatch.setattr(Cloud, "create_fleet", forgetful)


def drop_the_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has lost the lease goes on as if nothing had happened, and what they make is never looked for."""
    write = MemoryTable.write

    def unfenced(
        table: MemoryTable, kind: str, name: str, body: str, *, fence: Fence | None = None, **more: Any
    ) -> Row:
        del fence
        if kind in ("launch-group", "ledger", "command"):
            row = table.read(kind, name)
            more["version"] = row.version if row is not None else 0
        return write(table, kind, name, body, **more)

    monkeypatch.setattr(MemoryTable, "write", unfenced)
    monkeypatch.setattr("shared.actions.lease.holds", lambda _table, _fence: True)
    monkeypatch.setattr("shared.decided.stragglers", lambda _cluster, _overtaken: ())


def evict_past_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods are deleted where the eviction API should be asked."""

    def deleted(action: EvictPod, kube: Kube) -> None:
        kube.delete(f"/api/v1/namespaces/{action.namespace}/pods/{action.name}")

    monkeypatch.setattr(kube_writes, "evict_pod", deleted)


def forget_the_finalizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that is deleted is gone at once: nothing keeps it until its machine is drained and ended."""
    delete = kube_writes.delete_object

    def unheld(action: DeleteObject, kube: Kube) -> None:
        if action.kind == "NodeClaim":
            kube.patch(kube_writes.path_of(action.kind, action.name), b'{"metadata": {"finalizers": []}}')
        delete(action, kube)

    monkeypatch.setattr(kube_writes, "delete_object", unheld)


def skip_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the plan nor the ledger minds what a NodePool may have."""

    def unbounded(_account: object, claims: Iterable[NodeClaim], _each: Resources) -> tuple[int, str, bool]:
        return len(list(claims)), "", False

    monkeypatch.setattr("shared.launch.ledger.Account.take", unbounded)
    monkeypatch.setattr("shared.scheduling.limits._left", lambda *_: {})


PLANTS: Final[dict[str, tuple[Plant, Draw, frozenset[str]]]] = {
    "skip the token": (skip_the_token, brief_of, frozenset({"doubled"})),
    "drop the fence": (drop_the_fence, brief_of, frozenset({"doubled", "shared", "limit", "budget"})),
    "evict past the budget": (evict_past_the_budget, script_of, frozenset({"past-budget", "undrained"})),
    "forget the finalizer": (forget_the_finalizer, script_of, frozenset({"dropped"})),
    "skip the limit": (skip_the_limit, script_of, frozenset({"limit"})),
}
"""Each bug, the plays that it is looked for in, and the kinds of violations of which one must tell it."""
