"""Fault injection: carries out the faults of a scenario."""

from datetime import datetime
from typing import Any

from shared.errors import Fault, Throttled, Unreachable
from shared.model.core.units import parse_duration
from sim.fault_tap import PortCall
from sim.scenarios.scenario import FaultStep
from sim.world.embedded_world import EmbeddedWorld
from sim.world.measurements import is_joiner_node


class ScenarioFaultInjector:
    """Injects faults into one world; outages end after their duration."""

    def __init__(self, world: EmbeddedWorld) -> None:
        """Install the tap of *world*."""
        self._world = world
        self._outage_by_port: dict[str, tuple[type[Fault], datetime]] = {}
        world.tap = self._raise_during_outage

    def inject(self, fault: FaultStep) -> str:
        """Inject *fault* now; return a description.

        Raises:
            ValueError: the node, the offering or the catalog of the fault does not exist.
            Fault: the cloud refuses, e.g. to interrupt an on-demand instance.
        """
        match fault.kind:
            case "interruptSpot" | "rebalance" | "kill" | "maintenance":
                return self._disrupt_instance(fault)
            case "noCapacity" | "capacity":
                return self._set_capacity(fault)
            case "apiDown":
                return self._start_outage("kube", Unreachable, fault, "the API server does not answer")
            case "ec2Throttles":
                return self._start_outage("ec2", Throttled, fault, "EC2 answers RequestLimitExceeded")
            case "badMessage":
                self._world.runtime.add(f"{self._world.cluster_name}-joiner-interruption", fault.text or "?")
                return "the interruption queue receives an invalid message"
            case "halfCatalogue":
                return self._truncate_catalog()

    def _disrupt_instance(self, fault: FaultStep) -> str:
        node = self._find_node(fault.node)
        instance_id = node["spec"]["providerID"].rpartition("/")[2]
        cloud = self._world.cloud
        if fault.kind == "interruptSpot":
            cloud.instances.interrupt(instance_id)
        elif fault.kind == "rebalance":
            cloud.instances.send_rebalance_recommendation(instance_id)
        elif fault.kind == "kill":
            cloud.instances.terminate_immediately(instance_id)
        else:
            cloud.schedule_maintenance([instance_id])
        return f"{fault.kind} {node['metadata']['name'].partition('.')[0]} ({instance_id[-6:]})"

    def _find_node(self, node_name: str) -> dict[str, Any]:
        joiner_nodes = [node for node in self._world.cluster.api.list("nodes") if is_joiner_node(node)]
        matching_nodes = [node for node in joiner_nodes if node["metadata"]["name"] == node_name]
        if matching_nodes:
            return matching_nodes[0]
        if not joiner_nodes or node_name not in ("busiest", "newest", "oldest"):
            raise ValueError(f"there is no node {node_name!r} to strike; it may be a name, busiest, newest or oldest")
        sort_key_by_selector = {
            "busiest": lambda node: len(self._world.cluster.api.list_pods_on_node(node["metadata"]["name"])),
            "newest": lambda node: node["metadata"]["creationTimestamp"],
            "oldest": lambda node: node["metadata"]["creationTimestamp"],
        }
        sorted_nodes = sorted(joiner_nodes, key=sort_key_by_selector[node_name])
        return sorted_nodes[0] if node_name == "oldest" else sorted_nodes[-1]

    def _truncate_catalog(self) -> str:
        catalog_keys = self._world.bucket.list_keys("catalogue/")
        if not catalog_keys:
            raise ValueError("there is no catalogue yet")
        catalog_body = self._world.bucket.get(catalog_keys[-1])
        self._world.bucket.put(catalog_keys[-1], catalog_body[: len(catalog_body) // 2])
        return "the newest catalogue loses its second half"

    def _set_capacity(self, fault: FaultStep) -> str:
        count = 0 if fault.kind == "noCapacity" else None
        if not self._world.cloud.set_capacity(count, fault.instance_type, fault.zone, fault.capacity_type):
            raise ValueError(f"EC2 does not offer {fault.instance_type or 'anything'} in {fault.zone or 'any zone'}")
        offering_text = (
            " ".join(name_part for name_part in (fault.capacity_type, fault.instance_type, fault.zone) if name_part)
            or "anything"
        )
        return f"EC2 has {'no' if count == 0 else 'enough'} capacity for {offering_text}"

    def _start_outage(self, port: str, error_type: type[Fault], fault: FaultStep, description: str) -> str:
        self._outage_by_port[port] = error_type, self._world.clock.get_time() + parse_duration(fault.lasts)
        return f"{description} for {fault.lasts}"

    def _raise_during_outage(self, call: PortCall) -> None:
        if call.phase == "before" and call.port in self._outage_by_port:
            error_type, outage_end = self._outage_by_port[call.port]
            if self._world.clock.get_time() < outage_end:
                raise error_type(f"{call.port}.{call.method} {call.detail}: outage")
