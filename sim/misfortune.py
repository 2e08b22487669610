"""What fate does to a play."""

from datetime import datetime
from typing import Any, Final

from shared.errors import Fault as PortFault
from shared.errors import Throttled, Unreachable
from shared.model.ec2 import CapacityType
from shared.model.units import parse_duration
from sim.embedded import Embedded
from sim.faults import Call
from sim.measure import is_ours
from sim.scenario import Fault

CAPACITY_TYPES: Final[tuple[CapacityType, ...]] = ("on-demand", "spot")


class Misfortune:
    """Strikes one world; outages end by themselves."""

    def __init__(self, world: Embedded) -> None:
        """Put the tap of *world* under fate's hand."""
        self._world = world
        self._down: dict[str, tuple[type[PortFault], datetime]] = {}
        world.tap = self._tap

    def strike(self, fault: Fault) -> str:
        """Let *fault* happen now; answer it in words.

        Raises:
            ValueError: there is nothing to strike: no such node, offering or catalogue.
            Fault: the cloud refuses, as it does to interrupt an on-demand instance.
        """
        match fault.kind:
            case "interruptSpot" | "rebalance" | "kill" | "maintenance":
                return self._instance(fault)
            case "noCapacity" | "capacity":
                return self._capacity(fault)
            case "apiDown":
                return self._outage("kube", Unreachable, fault, "the API server does not answer")
            case "ec2Throttles":
                return self._outage("ec2", Throttled, fault, "EC2 answers RequestLimitExceeded")
            case "badMessage":
                self._world.runtime.send(f"{self._world.cluster_name}-joiner-interruption", fault.text or "?")
                return "somebody sends nonsense to the interruption queue"
            case "halfCatalogue":
                return self._half_catalogue()

    def _instance(self, fault: Fault) -> str:
        node = self._node(fault.node)
        instance_id = node["spec"]["providerID"].rpartition("/")[2]
        cloud = self._world.cloud
        if fault.kind == "interruptSpot":
            cloud.interrupt_spot(instance_id)
        elif fault.kind == "rebalance":
            cloud.recommend_rebalance(instance_id)
        elif fault.kind == "kill":
            cloud.kill(instance_id)
        else:
            cloud.schedule_maintenance([instance_id])
        return f"{fault.kind} {node['metadata']['name'].partition('.')[0]} ({instance_id[-6:]})"

    def _node(self, which: str) -> dict[str, Any]:
        ours = [node for node in self._world.live.api.list("nodes") if is_ours(node)]
        named = [node for node in ours if node["metadata"]["name"] == which]
        if named:
            return named[0]
        if not ours or which not in ("busiest", "newest", "oldest"):
            raise ValueError(f"there is no node {which!r} to strike; it may be a name, busiest, newest or oldest")
        ranks = {
            "busiest": lambda node: len(self._world.live.api.pods_on(node["metadata"]["name"])),
            "newest": lambda node: node["metadata"]["creationTimestamp"],
            "oldest": lambda node: node["metadata"]["creationTimestamp"],
        }
        ordered = sorted(ours, key=ranks[which])
        return ordered[0] if which == "oldest" else ordered[-1]

    def _half_catalogue(self) -> str:
        keys = self._world.bucket.keys("catalogue/")
        if not keys:
            raise ValueError("there is no catalogue yet")
        body = self._world.bucket.get(keys[-1])
        self._world.bucket.put(keys[-1], body[: len(body) // 2])
        return "the newest catalogue loses its second half"

    def _capacity(self, fault: Fault) -> str:
        count = 0 if fault.kind == "noCapacity" else None
        cloud = self._world.cloud
        struck = [
            (type_name, zone)
            for type_name, zone in cloud.offerings
            if fault.instance_type in ("", type_name) and fault.zone in ("", zone)
        ]
        if not struck:
            raise ValueError(f"EC2 does not offer {fault.instance_type or 'anything'} in {fault.zone or 'any zone'}")
        for type_name, zone in struck:
            for capacity_type in CAPACITY_TYPES:
                if fault.capacity_type in ("", capacity_type):
                    cloud.set_capacity(type_name, zone, capacity_type, count)
        words = " ".join(one for one in (fault.capacity_type, fault.instance_type, fault.zone) if one) or "anything"
        return f"EC2 has {'no' if count == 0 else 'enough'} capacity for {words}"

    def _outage(self, port: str, kind: type[PortFault], fault: Fault, words: str) -> str:
        self._down[port] = kind, self._world.clock.now() + parse_duration(fault.lasts)
        return f"{words} for {fault.lasts}"

    def _tap(self, call: Call) -> None:
        if call.when == "before" and call.port in self._down:
            kind, until = self._down[call.port]
            if self._world.clock.now() < until:
                raise kind(f"{call.port}.{call.method} {call.detail}: outage")
