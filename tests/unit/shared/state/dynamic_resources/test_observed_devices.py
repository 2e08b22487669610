"""What nodes of a kind publish, and how long it is remembered."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.devices import NodeDevices, ObservedDevices
from shared.model.core.labels import INSTANCE_TYPE, NODEPOOL
from shared.model.kubernetes.node import Node
from shared.state.dynamic_resources.observed_devices import has_changed_devices, observe_devices
from tests.support.catalogues import NOW, make_node
from tests.support.device_cases import DRIVER, make_device, make_device_cluster, make_devices, make_slice, observe

KIND = ("m.08", "default")


def make_aged_node(name: str, minutes: int = 60, pool: str = "default") -> Node:
    node = make_node(name, labels={INSTANCE_TYPE: "m.08", NODEPOOL: pool})
    return replace(node, meta=replace(node.meta, created_at=NOW - timedelta(minutes=minutes)))


def make_observed_cluster(*earlier: ObservedDevices, nodes: tuple[Node, ...] = (), **slices: Any) -> ClusterSnapshot:
    cluster = make_device_cluster(nodes=nodes)
    assert cluster.catalog is not None
    return replace(
        cluster,
        catalog=replace(cluster.catalog, observed_devices=earlier),
        resource_slices=tuple(make_slice(node, devices) for node, devices in slices.items()),
    )


def test_devices_are_known_by_instance_type_and_node_pool() -> None:
    nodes = (make_aged_node("a"), make_aged_node("b", pool="other"), make_aged_node("c", pool=""))
    devices = make_devices(1).devices
    observed = observe_devices(make_observed_cluster(nodes=nodes, a=devices, b=devices, c=devices))
    assert [(item.instance_type, item.node_pool, len(item.devices)) for item in observed] == [
        ("m.08", "default", 1),
        ("m.08", "other", 1),
    ]


def test_the_node_with_the_most_devices_represents_its_kind() -> None:
    nodes = (make_aged_node("a"), make_aged_node("b"))
    cluster = make_observed_cluster(nodes=nodes, a=make_devices(7).devices, b=make_devices(8).devices)
    [item] = observe_devices(cluster)
    assert len(item.devices) == 8
    assert {device.pool for device in item.devices} == {"000"}


def test_attributes_that_differ_between_nodes_are_left_out_also_later() -> None:
    nodes = (make_aged_node("a"), make_aged_node("b"))
    devices = [(make_device("x", attributes={"model": "m", "host": name, "uuid": "0"}),) for name in ("one", "two")]
    cluster = make_observed_cluster(nodes=nodes, a=devices[0], b=devices[1])
    [item] = observe_devices(cluster)
    assert item.devices[0].attributes == ((f"{DRIVER}/model", "string", "m"),)
    [later] = observe_devices(make_observed_cluster(item, nodes=nodes[:1], a=devices[0]))
    assert later.devices == item.devices


def test_pcie_root_is_expected_of_new_nodes_unless_it_differs_between_nodes() -> None:
    attribute = ("resource.kubernetes.io/pcieRoot", "string", "pci0000:10")
    nodes = (make_aged_node("a"), make_aged_node("b"))
    device = replace(make_device("x"), attributes=(attribute,))
    [item] = observe_devices(make_observed_cluster(nodes=nodes, a=(device,), b=(device,)))
    assert item.devices[0].attributes == (attribute,)
    other_device = replace(device, attributes=((*attribute[:2], "pci0000:20"),))
    [item] = observe_devices(make_observed_cluster(nodes=nodes, a=(device,), b=(other_device,)))
    assert item.devices[0].attributes == ()


def test_an_observation_outlives_its_nodes_for_sixty_days() -> None:
    earlier = observe("m.08", make_devices(2))
    assert observe_devices(make_observed_cluster(earlier)) == (earlier,)
    old = replace(earlier, at=NOW - timedelta(days=60))
    assert observe_devices(make_observed_cluster(old)) == ()


def test_a_node_that_publishes_nothing_counts_if_devices_were_expected_of_it() -> None:
    earlier = observe("m.08", make_devices(2))
    nodes = (make_aged_node("a"),)
    [item] = observe_devices(make_observed_cluster(earlier, nodes=nodes))
    assert (item.devices, item.at) == ((), NOW)
    assert observe_devices(make_observed_cluster(nodes=nodes)) == ()
    assert [item.devices for item in observe_devices(make_observed_cluster(nodes=nodes), [KIND])] == [()]
    young = (make_aged_node("a", minutes=9),)
    assert observe_devices(make_observed_cluster(earlier, nodes=young)) == (earlier,)
    expired = replace(item, at=NOW - timedelta(hours=24))
    assert observe_devices(make_observed_cluster(expired)) == ()


def test_a_new_kind_or_other_devices_are_to_be_stored() -> None:
    cluster = make_observed_cluster(observe("m.08", make_devices(2)))
    repeated = replace(observe("m.08", make_devices(2)), at=NOW)
    assert not has_changed_devices(cluster.catalog, (repeated,))
    assert not has_changed_devices(cluster.catalog, ())
    assert has_changed_devices(cluster.catalog, (observe("m.08", make_devices(3)),))
    assert has_changed_devices(cluster.catalog, (repeated, observe("m.16", make_devices(1))))
    assert not has_changed_devices(None, (repeated,))


def test_counters_keep_their_pool() -> None:
    device = make_device("a", counters=(("card", "memory", 1),))
    cluster = make_observed_cluster(nodes=(make_aged_node("n"),))
    slices = (make_slice("n", (device,), counters=(("card", "memory", 8),)),)
    [item] = observe_devices(replace(cluster, resource_slices=slices))
    assert item.counters == ((DRIVER, "000", "card", "memory", 8),)
    assert NodeDevices(devices=item.devices, counters=item.counters).devices[0].pool == "000"
