"""Features that are off unless they are asked for, through the whole cycle of the embedded world."""

from typing import Any

import pytest

from shared.ports.world import World as Ports
from sim.fault_tap import Killed, PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import CLAIMS, Json, World, make_deployment, make_node_class, make_node_pool, make_pod

OVERLAYS = "nodeoverlays.karpenter.sh"
BUFFERS = "capacitybuffers.autoscaling.x-k8s.io"
ALL = "NodeOverlay=true,StaticCapacity=true,CapacityBuffer=true"
SPREAD = (
    '{"podTopologySpread": {"defaultConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", '
    '"whenUnsatisfiable": "DoNotSchedule"}]}}'
)


class Featured(World):
    """A world that is deployed with feature gates."""

    gates, config = ALL, ""

    def __init__(self, *manifests: Json) -> None:
        """Deploy the stack with the gates as its setting, so that its permissions match."""
        gates = {"feature-gates": self.gates} if self.gates else {}
        super().__init__(*manifests, template=synthesize_template(settings=ACTIVE_SETTINGS | gates))

    def _build_world(self, function: str, environment: dict[str, str]) -> Ports:
        return super()._build_world(function, environment | {"SCHEDULER_CONFIG": self.config})


class Spread(Featured):
    """Pods are spread by default."""

    gates, config = "", SPREAD


def make_overlay(name: str, instance_type: str, **spec: Any) -> Json:
    requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]}]
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": name},
        "spec": {"requirements": requirements} | spec,
    }


def make_buffer(replicas: int, workload: str = "web") -> Json:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "room", "namespace": "default"},
        "spec": {"replicas": replicas, "scalableRef": {"kind": "Deployment", "name": workload}},
    }


def get_conditions(world: World, resource: str, name: str, namespace: str = "") -> dict[str, tuple[str, str]]:
    conditions = world.cluster.api.get(resource, name, namespace).get("status", {}).get("conditions", ())
    return {condition["type"]: (condition["status"], condition["reason"]) for condition in conditions}


def test_node_overlay_price_affects_the_launched_instance_type_and_is_annotated() -> None:
    types = ("m5.large", "m5.xlarge")
    world = Featured(
        make_node_class(), make_node_pool(types=types), make_overlay("dear", "m5.large", price="9"), make_deployment(1)
    )
    world.wait_until_settled(1)
    [node] = world.list_nodes()
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "m5.xlarge"
    world.advance_seconds(70)
    assert get_conditions(world, OVERLAYS, "dear")["Ready"] == ("True", "Ready")
    world.apply([make_overlay("cheap", "m5.large", price="0.0001", weight=5)])
    world.scale(8)
    world.wait_until_settled(8)
    overlaid_claims = [
        claim
        for claim in world.list_claims()
        if "karpenter.sh/price-overlay-applied" in claim["metadata"]["annotations"]
    ]
    assert len(overlaid_claims) == len(world.list_claims()) - 1


def test_conflicting_node_overlays_get_a_validation_condition() -> None:
    world = Featured(make_node_class(), make_node_pool(types=("m5.large",)), make_overlay("one", "m5.large", price="1"))
    world.apply([make_overlay("two", "m5.large", priceAdjustment="+10%")])
    world.advance_seconds(130)
    assert get_conditions(world, OVERLAYS, "two")["Ready"][0] == "True"
    assert get_conditions(world, OVERLAYS, "one")["ValidationSucceeded"] == ("False", "Conflict")
    version = world.cluster.api.get(OVERLAYS, "one")["metadata"]["resourceVersion"]
    world.advance_seconds(130)
    assert world.cluster.api.get(OVERLAYS, "one")["metadata"]["resourceVersion"] == version
    assert world.list_errors() == []


def test_static_nodepool_keeps_its_replicas_without_pods_and_scales_down() -> None:
    world = Featured(make_node_class(), make_node_pool("fixed", replicas=2))
    world.wait_until(lambda: len(world.list_nodes()) == 2)
    world.advance_seconds(130)
    assert (len(world.list_claims()), len(world.list_active_instances())) == (2, 2)
    world.cluster.api.patch("nodepools.karpenter.sh", "fixed", {"spec": {"replicas": 1}})
    world.wait_until(lambda: len(world.list_active_instances()) == 1)
    world.advance_seconds(130)
    assert (len(world.list_claims()), len(world.list_active_instances()), world.list_errors()) == (1, 1, [])


def test_killed_provision_run_creates_no_duplicate_static_nodeclaims() -> None:
    world = Featured(make_node_class())
    deaths: list[str] = []

    def kill_after_claim_create(call: PortCall) -> None:
        is_made = (call.port, call.method, call.phase) == ("kube", "create", "after") and "nodeclaims" in call.detail
        if is_made and len(deaths) < 2:
            deaths.append(call.detail)
            raise Killed

    with world.use_tap(kill_after_claim_create):
        world.apply([make_node_pool("fixed", replicas=3)])
        world.wait_until(lambda: len(world.list_nodes()) == 3)
    world.advance_seconds(130)
    assert (len(deaths), len(world.list_claims()), len(world.launched)) == (2, 3, 3)


def test_static_nodepool_replaces_a_lost_node_within_its_limits() -> None:
    world = Featured(make_node_class(), make_node_pool("fixed", replicas=5, limits={"nodes": "2"}))
    world.wait_until(lambda: len(world.list_nodes()) == 2)
    world.cluster.api.delete(CLAIMS, world.list_claims()[0]["metadata"]["name"])
    world.advance_seconds(30)
    world.wait_until(lambda: len(world.list_nodes()) == 2)
    world.advance_seconds(60)
    assert len(world.list_active_instances()) == 2


def test_capacity_buffer_is_refilled_after_pods_use_it() -> None:
    world = Featured(make_node_class(), make_node_pool(after="10s"), make_deployment(1), make_buffer(4))
    world.wait_until(lambda: len(world.list_nodes()) == 2)
    world.advance_seconds(200)
    assert len(world.list_nodes()) == 2
    assert get_conditions(world, BUFFERS, "room", "default")["Provisioning"] == ("True", "FitsExistingCapacity")
    world.scale(5)
    assert world.wait_until_settled(5, timeout=10) < 10
    world.wait_until(lambda: len(world.list_nodes()) == 3)
    world.cluster.api.delete(BUFFERS, "room", "default")
    world.wait_until(lambda: len(world.list_nodes()) == 2, timeout=400)
    assert (len(world.list_running_pods()), world.list_errors()) == (5, [])


def test_service_pods_spread_over_zones_by_default() -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    world = Spread(make_node_class(), make_node_pool(types=("m5.4xlarge",)), service, make_deployment(3))
    world.wait_until_settled(3)
    assert len(world.list_nodes()) == 3
    zones = {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in world.list_nodes()}
    assert len(zones) == 3


@pytest.mark.parametrize("world_type", [World, Featured], ids=["off", "on"])
def test_missing_optional_crds_are_ignored_silently(world_type: type[World]) -> None:
    world = world_type(make_node_class(), make_node_pool())
    for name in (OVERLAYS, BUFFERS):
        world.cluster.api.delete("customresourcedefinitions.apiextensions.k8s.io", name)
    world.apply([make_pod("x")])
    world.wait_until_settled(1)
    world.advance_seconds(130)
    assert {problem for problem in world.list_problems() if not problem.startswith("Catalogue ")} == set()
    assert world.list_errors() == []


def test_disabled_features_change_nothing() -> None:
    world = World(
        make_node_class(),
        make_node_pool(),
        make_node_pool("fixed", replicas=2),
        make_overlay("o", "m5.xlarge", price="9"),
    )
    world.apply([make_deployment(1), make_buffer(9)])
    world.wait_until_settled(1)
    world.advance_seconds(70)
    assert len(world.list_nodes()) == 1
    assert get_conditions(world, OVERLAYS, "o") == {}
