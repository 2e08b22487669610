"""The embedded world of a simulated week: what a short list of types allows, and what happens to it."""

import re
from typing import Final

import msgspec

from shared.model.cluster import Cluster
from shared.scheduling.headroom import plan
from shared.snapshot.features import survey
from shared.snapshot.take import PLANNING
from shared.wishes import options
from sim.bound.program import lower_bound
from sim.embedded import Embedded
from sim.lambdas.template import ACTIVE, synthesised
from sim.measure import is_ours
from sim.weeks.churn import Happening
from sim.weeks.workloads import DEPLOYMENTS, NAMESPACE

TYPES: Final = re.compile(r"(c6i|m6i|r6i)\.(large|xlarge|2xlarge)")
"""What EC2 offers here: each size in three shapes. The more there is, the longer a simulated week takes."""
OFF: Final = {"joiner:disruption-paused": "Underutilized"}
"""How a deployment switches consolidation off; what is empty or has drifted still goes."""


class Ideal(msgspec.Struct, frozen=True, kw_only=True):
    """What the pods of an instant would cost per hour, were nobody bound to be where he is."""

    repacked: float
    """By our own solver, on nothing but new nodes."""
    bound: float | None
    """What no plan can beat; None: not asked for."""


class WeekWorld(Embedded):
    """A stack that is deployed with consolidation, or without."""

    def __init__(self, seed: int, *, consolidates: bool = True) -> None:
        """Deploy it, for a region with few types."""
        super().__init__(seed, template=synthesised(context=ACTIVE if consolidates else ACTIVE | OFF))
        kept = {name: info for name, info in sorted(self.cloud.types.items()) if TYPES.fullmatch(name)}
        self.cloud.types = kept
        self.cloud.offerings = tuple((name, zone) for name, zone in self.cloud.offerings if name in kept)

    def happen(self, one: Happening) -> bool:
        """Let *one* happen; answer whether it could."""
        live = self.live
        if one.kind == "scale":
            live.scale("Deployment", NAMESPACE, one.name, one.replicas)
        elif one.kind == "deploy":
            stamp = {"metadata": {"annotations": {"deployed": str(one.after)}}}
            live.api.patch(DEPLOYMENTS, one.name, {"spec": {"template": stamp}}, NAMESPACE)
        elif one.kind == "apply" and one.manifest is not None:
            live.apply(one.manifest)
        elif one.kind == "delete":
            live.api.delete(DEPLOYMENTS, one.name, NAMESPACE)
        elif one.kind == "release":
            self.cloud.release_amis()
        else:
            return self._interrupt(one.chance)
        return True

    def ideal(self, *, bounded: bool = True) -> Ideal:
        """Answer what the pods of now would cost elsewhere; *bounded*: with the bound. Changes nothing."""
        cluster = self._seen()
        chosen = options(self._world("provision", self._environment()).settings)
        ours = frozenset(node["metadata"]["name"] for node in self.live.api.list("nodes") if is_ours(node))
        placement = plan(cluster, excluded=ours, options=chosen).placement
        empty = msgspec.structs.replace(cluster, nodes=(), node_claims=())
        bound = round(lower_bound(empty, placement, chosen), 4) if bounded else None
        return Ideal(repacked=round(placement.price_usd_per_hour, 4), bound=bound)

    def _interrupt(self, chance: float) -> bool:
        running = [one for one in self.living() if one.capacity_type == "spot" and one.state == "running"]
        if not running:
            return False
        self.cloud.interrupt_spot(running[int(chance * len(running))].instance_id)
        return True

    def _seen(self) -> Cluster:
        world = msgspec.structs.replace(self._world("provision", self._environment()), memory=None)
        return survey(world, PLANNING)

    def _environment(self) -> dict[str, str]:
        return dict(self.wiring.function("provision").environment)
