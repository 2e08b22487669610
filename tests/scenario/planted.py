"""Five bugs to plant in the product: a simulation that does not find them proves nothing."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest
from msgspec.structs import replace

from shared.apply.kubernetes import writes
from shared.model.core.resources import Resources
from shared.model.decisions.action import DeleteObject, EvictPod
from shared.model.ec2.fleet import FleetRequest, FleetResult
from shared.model.karpenter.node_claim import NodeClaim
from shared.ports.kubernetes import Kube
from shared.ports.storage import FencingToken, TableRow
from shared.wire.paths import build_object_path
from sim.cloud.ec2.fleet import Fleets
from sim.fault_simulation.drawing.draw_script import draw_brief_script, draw_script
from sim.fault_simulation.events.script import Script
from sim.world.memory_ports import MemoryTable

Plant = Callable[[pytest.MonkeyPatch], None]
Draw = Callable[[int], Script]


def skip_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send a repeated request as a new request."""
    create = Fleets.create

    def create_fleet_without_token(fleets: Fleets, request: FleetRequest) -> FleetResult:
        return create(fleets, replace(request, client_token=""))

    monkeypatch.setattr(Fleets, "create", create_fleet_without_token)


def drop_the_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run that has lost its lease continue, and never look for the claims that it creates."""
    write = MemoryTable.write

    def write_without_fence(
        table: MemoryTable, kind: str, name: str, body: str, *, fence: FencingToken | None = None, **fields: Any
    ) -> TableRow:
        del fence
        if kind in ("launch-group", "ledger", "command"):
            row = table.read(kind, name)
            fields["version"] = row.version if row is not None else 0
        return write(table, kind, name, body, **fields)

    monkeypatch.setattr(MemoryTable, "write", write_without_fence)
    monkeypatch.setattr("shared.store.lease.is_lease_held", lambda _table, _fence: True)
    monkeypatch.setattr("shared.cycles.provision.find_superseded_claims", lambda _cluster, _overtaken: ())


def evict_past_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete pods directly instead of through the eviction API."""

    def delete_pod(action: EvictPod, kube: Kube) -> None:
        kube.delete(f"/api/v1/namespaces/{action.namespace}/pods/{action.name}")

    monkeypatch.setattr(writes, "evict_pod", delete_pod)


def drop_the_finalizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove a deleted claim immediately: no finalizer keeps it until its instance is drained and terminated."""
    delete = writes.delete_object

    def delete_without_finalizer(action: DeleteObject, kube: Kube) -> None:
        if action.kind == "NodeClaim":
            kube.patch(build_object_path(action.kind, action.name), b'{"metadata": {"finalizers": []}}')
        delete(action, kube)

    monkeypatch.setattr(writes, "delete_object", delete_without_finalizer)


def skip_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the limits of NodePools in the plan and in the ledger."""

    def count_all_claims(_account: object, claims: Iterable[NodeClaim], _resources: Resources) -> tuple[int, str, bool]:
        return len(list(claims)), "", False

    monkeypatch.setattr("shared.decide.launch.fleets.launch_limits.LimitAccount.count_within_limits", count_all_claims)
    monkeypatch.setattr("shared.decide.scheduling.nodes.node_pool_limits._compute_remaining", lambda *_: {})


PLANTS: Final[dict[str, tuple[Plant, Draw, frozenset[str]]]] = {
    "ignore client token": (skip_the_token, draw_brief_script, frozenset({"doubled"})),
    "ignore fencing token": (drop_the_fence, draw_brief_script, frozenset({"doubled", "shared", "limit", "budget"})),
    "evict despite PDB": (evict_past_the_budget, draw_script, frozenset({"past-budget", "undrained"})),
    "remove finalizer early": (drop_the_finalizer, draw_script, frozenset({"dropped"})),
    "ignore NodePool limit": (skip_the_limit, draw_script, frozenset({"limit"})),
}
"""Each bug with the script generator that finds it and the kinds of violations of which at least one must occur."""
