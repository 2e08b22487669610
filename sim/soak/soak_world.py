"""The embedded world of a simulated week: a short list of instance types, and how events are applied."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from shared.cycles.setup.options_from_settings import build_scheduling_options
from shared.cycles.setup.planning_snapshot import take_planning_snapshot
from shared.decide.provisioning.gang_planning import plan_pods
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import DO_NOT_DISRUPT
from shared.state.cluster_state import ClusterState
from shared.take.snapshot import PLANNING_REQUEST
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from sim.lower_bound.integer_program import compute_lower_bound
from sim.soak.worlds.churn import ChurnEvent
from sim.soak.worlds.soak_workloads import DEPLOYMENT_RESOURCE, NAMESPACE
from sim.world.embedded_world import EmbeddedWorld
from sim.world.measurements import is_joiner_node

OFFERED_TYPES: Final = re.compile(r"(c6i|m6i|r6i)\.(large|xlarge|2xlarge)")
"""Instance types that EC2 offers: each size in three families. More types make the simulation slower."""
FIXED_SETTINGS: Final = {"snapshots": "off", "log-level": "ERROR"}
"""No decision depends on these: decision records are not stored, and cycles are not logged, which saves time."""


class IdealCost(msgspec.Struct, frozen=True, kw_only=True):
    """Cost per hour of the pods of one instant if all of them could be placed anew."""

    repacked: float
    """By our own solver, on new nodes only."""
    disruptable: float
    """The same without the pods that have `do-not-disrupt`."""
    bound: float | None
    """A lower bound of any plan; None: not computed."""


class SoakWorld(EmbeddedWorld):
    """A stack that is deployed with the settings of a policy."""

    def __init__(self, seed: int, settings: Mapping[str, str] | None = None) -> None:
        """Deploy the stack with more *settings* into a region with few instance types."""
        super().__init__(
            seed, template=synthesize_template(settings=ACTIVE_SETTINGS | FIXED_SETTINGS | dict(settings or {}))
        )
        offered_types = {name: info for name, info in sorted(self.cloud.types.items()) if OFFERED_TYPES.fullmatch(name)}
        self.cloud.types = offered_types
        self.cloud.offerings = tuple((name, zone) for name, zone in self.cloud.offerings if name in offered_types)

    def apply_event(self, event: ChurnEvent) -> bool:
        """Apply *event*; return whether it was possible."""
        live = self.cluster
        if event.kind == "scale":
            live.scale("Deployment", NAMESPACE, event.name, event.replicas)
        elif event.kind == "deploy":
            template_patch = {"metadata": {"annotations": {"deployed": str(event.after)}}}
            live.api.patch(DEPLOYMENT_RESOURCE, event.name, {"spec": {"template": template_patch}}, NAMESPACE)
        elif event.kind == "apply" and event.manifest is not None:
            live.apply(event.manifest)
        elif event.kind == "delete":
            live.api.delete(DEPLOYMENT_RESOURCE, event.name, NAMESPACE)
        elif event.kind == "release":
            self.cloud.release_amis()
        else:
            return self._interrupt(event)
        return True

    def compute_ideal_cost(self, *, bounded: bool = True) -> IdealCost:
        """Return the cost of the current pods on new nodes; *bounded*: with the lower bound. Changes nothing."""
        cluster = self._take_snapshot()
        scheduling_options = build_scheduling_options(self._build_world("provision", self._get_environment()).settings)
        managed_nodes = frozenset(
            node["metadata"]["name"] for node in self.cluster.api.list("nodes") if is_joiner_node(node)
        )
        placement, disruptable_placement = (
            plan_pods(ClusterState(snapshot), excluded=managed_nodes, options=scheduling_options).placement
            for snapshot in (cluster, _drop_guarded_pods(cluster))
        )
        empty = msgspec.structs.replace(cluster, nodes=(), node_claims=())
        bound = round(compute_lower_bound(empty, placement, scheduling_options), 4) if bounded else None
        return IdealCost(
            repacked=round(placement.price_usd_per_hour, 4),
            disruptable=round(disruptable_placement.price_usd_per_hour, 4),
            bound=bound,
        )

    def _interrupt(self, event: ChurnEvent) -> bool:
        family, _, zone = event.name.partition(" ")
        running_spot = [
            instance
            for instance in self.list_active_instances()
            if instance.capacity_type == "spot"
            and instance.state == "running"
            and (not event.name or (instance.instance_type.partition(".")[0], instance.zone) == (family, zone))
        ]
        if not running_spot:
            return False
        self.cloud.instances.interrupt(running_spot[int(event.position * len(running_spot))].instance_id)
        return True

    def _take_snapshot(self) -> ClusterSnapshot:
        world = msgspec.structs.replace(self._build_world("provision", self._get_environment()), memory=None)
        return take_planning_snapshot(world, PLANNING_REQUEST)

    def _get_environment(self) -> dict[str, str]:
        return dict(self.wiring.get_function("provision").environment)


def _drop_guarded_pods(cluster: ClusterSnapshot) -> ClusterSnapshot:
    pods = tuple(pod for pod in cluster.pods if pod.meta.get_annotation(DO_NOT_DISRUPT) != "true")
    return msgspec.structs.replace(cluster, pods=pods)
