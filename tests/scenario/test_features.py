"""Features that are off unless they are asked for, through the whole cycle of the embedded world."""

from typing import Any

import pytest

from shared.ports import World as Ports
from sim.faults import Call, Killed
from tests.scenario.worlds import CLAIMS, Json, World, deployment, node_class, pod, pool

OVERLAYS = "nodeoverlays.karpenter.sh"
BUFFERS = "capacitybuffers.autoscaling.x-k8s.io"
ALL = "NodeOverlay=true,StaticCapacity=true,CapacityBuffer=true"
SPREAD = (
    '{"podTopologySpread": {"defaultConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", '
    '"whenUnsatisfiable": "DoNotSchedule"}]}}'
)


class Featured(World):
    """A world whose functions have features on."""

    gates, config = ALL, ""

    def _world(self, function: str, environment: dict[str, str]) -> Ports:
        return super()._world(function, environment | {"FEATURE_GATES": self.gates, "SCHEDULER_CONFIG": self.config})


class Spread(Featured):
    """Pods are spread by default."""

    gates, config = "", SPREAD


def overlay(name: str, instance_type: str, **spec: Any) -> Json:
    asked = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]}]
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": name},
        "spec": {"requirements": asked} | spec,
    }


def buffer(replicas: int, of: str = "web") -> Json:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "room", "namespace": "default"},
        "spec": {"replicas": replicas, "scalableRef": {"kind": "Deployment", "name": of}},
    }


def status(world: World, resource: str, name: str, namespace: str = "") -> dict[str, tuple[str, str]]:
    conditions = world.live.api.get(resource, name, namespace).get("status", {}).get("conditions", ())
    return {one["type"]: (one["status"], one["reason"]) for one in conditions}


def test_an_overlaid_price_decides_what_is_launched_and_is_noted() -> None:
    types = ("m5.large", "m5.xlarge")
    world = Featured(node_class(), pool(types=types), overlay("dear", "m5.large", price="9"), deployment(1))
    world.settled(1)
    [node] = world.nodes()
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "m5.xlarge"
    world.seconds(70)
    assert status(world, OVERLAYS, "dear")["Ready"] == ("True", "Ready")
    world.apply([overlay("cheap", "m5.large", price="0.0001", weight=5)])
    world.scale(8)
    world.settled(8)
    noted = [one for one in world.claims() if "karpenter.sh/price-overlay-applied" in one["metadata"]["annotations"]]
    assert len(noted) == len(world.claims()) - 1


def test_overlays_in_each_others_way_are_told_so() -> None:
    world = Featured(node_class(), pool(types=("m5.large",)), overlay("one", "m5.large", price="1"))
    world.apply([overlay("two", "m5.large", priceAdjustment="+10%")])
    world.seconds(130)
    assert status(world, OVERLAYS, "two")["Ready"][0] == "True"
    assert status(world, OVERLAYS, "one")["ValidationSucceeded"] == ("False", "Conflict")
    version = world.live.api.get(OVERLAYS, "one")["metadata"]["resourceVersion"]
    world.seconds(130)
    assert world.live.api.get(OVERLAYS, "one")["metadata"]["resourceVersion"] == version
    assert world.errors() == []


def test_a_static_pool_has_its_nodes_without_a_pod_and_loses_them_when_it_shrinks() -> None:
    world = Featured(node_class(), pool("fixed", replicas=2))
    world.until(lambda: len(world.nodes()) == 2)
    world.seconds(130)
    assert (len(world.claims()), len(world.living())) == (2, 2)
    world.live.api.patch("nodepools.karpenter.sh", "fixed", {"spec": {"replicas": 1}})
    world.until(lambda: len(world.living()) == 1)
    world.seconds(130)
    assert (len(world.claims()), len(world.living()), world.errors()) == (1, 1, [])


def test_a_planner_that_dies_between_two_claims_makes_none_twice() -> None:
    world = Featured(node_class())
    deaths: list[str] = []

    def tap(call: Call) -> None:
        is_made = (call.port, call.method, call.when) == ("kube", "create", "after") and "nodeclaims" in call.detail
        if is_made and len(deaths) < 2:
            deaths.append(call.detail)
            raise Killed

    with world.tapped(tap):
        world.apply([pool("fixed", replicas=3)])
        world.until(lambda: len(world.nodes()) == 3)
    world.seconds(130)
    assert (len(deaths), len(world.claims()), len(world.launched)) == (2, 3, 3)


def test_a_static_pool_replaces_what_is_lost_and_keeps_to_its_limit() -> None:
    world = Featured(node_class(), pool("fixed", replicas=5, limits={"nodes": "2"}))
    world.until(lambda: len(world.nodes()) == 2)
    world.live.api.delete(CLAIMS, world.claims()[0]["metadata"]["name"])
    world.seconds(30)
    world.until(lambda: len(world.nodes()) == 2)
    world.seconds(60)
    assert len(world.living()) == 2


def test_a_buffer_keeps_room_that_pods_take_at_once_and_that_comes_back() -> None:
    world = Featured(node_class(), pool(after="10s"), deployment(1), buffer(4))
    world.until(lambda: len(world.nodes()) == 2)
    world.seconds(200)
    assert len(world.nodes()) == 2
    assert status(world, BUFFERS, "room", "default")["Provisioning"] == ("True", "FitsExistingCapacity")
    world.scale(5)
    assert world.settled(5, within=10) < 10
    world.until(lambda: len(world.nodes()) == 3)
    world.live.api.delete(BUFFERS, "room", "default")
    world.until(lambda: len(world.nodes()) == 2, within=400)
    assert (len(world.running()), world.errors()) == (5, [])


def test_pods_of_a_service_are_spread_over_zones_by_default() -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    world = Spread(node_class(), pool(types=("m5.4xlarge",)), service, deployment(3))
    world.settled(3)
    assert len(world.nodes()) == 3
    zones = {one["metadata"]["labels"]["topology.kubernetes.io/zone"] for one in world.nodes()}
    assert len(zones) == 3


@pytest.mark.parametrize("world_type", [World, Featured], ids=["off", "on"])
def test_a_cluster_without_these_definitions_goes_on_without_a_word(world_type: type[World]) -> None:
    world = world_type(node_class(), pool())
    for name in (OVERLAYS, BUFFERS):
        world.live.api.delete("customresourcedefinitions.apiextensions.k8s.io", name)
    world.apply([pod("x")])
    world.settled(1)
    world.seconds(130)
    assert {one for one in world.problems() if not one.startswith("Catalogue ")} == set()
    assert world.errors() == []


def test_features_that_are_off_change_nothing() -> None:
    world = World(node_class(), pool(), pool("fixed", replicas=2), overlay("o", "m5.xlarge", price="9"))
    world.apply([deployment(1), buffer(9)])
    world.settled(1)
    world.seconds(70)
    assert len(world.nodes()) == 1
    assert status(world, OVERLAYS, "o") == {}
