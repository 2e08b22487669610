"""Default topology spread: for whom, by which selector, and what cannot be a default."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.model.cluster import Cluster
from shared.model.labels import ZONE
from shared.model.objects import Meta, Owner, pairs
from shared.model.pods import Pod, SpreadConstraint
from shared.model.selectors import Expression, LabelSelector, selector
from shared.model.workloads import Service, Workload, WorkloadKind
from shared.scheduling.solve import solve
from shared.scheduling.spread import default_constraints, spread_by_default
from tests.unit.catalogues import instance_type, pod, sizes, world

ZONAL = '{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}'
CONFIG = f'{{"podTopologySpread": {{"defaultConstraints": [{ZONAL}]}}}}'
LABELS = {"app": "web", "tier": "front"}


def service(namespace: str = "shop", **labels: str) -> Service:
    return Service(meta=Meta(name="web", namespace=namespace), selector=pairs(labels))


def owned(kind: WorkloadKind, chosen: LabelSelector | None) -> tuple[Owner, Workload]:
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    owner = Owner(api_version=version, kind=kind, name="web", uid="u", controller=True)
    return owner, Workload(kind=kind, meta=Meta(name="web", namespace="shop"), selector=chosen)


def found(some: Pod, **more: Any) -> tuple[SpreadConstraint, ...]:
    cluster = spread_by_default(world(some, **more), default_constraints(CONFIG))
    return cluster.pods[0].spec.spread


def test_a_pod_is_spread_by_the_selectors_of_its_services_together() -> None:
    some = (service(app="web"), service(tier="front"), service(app="other"), service())
    [one] = found(pod("x", labels=LABELS), services=some)
    assert (one.topology_key, one.max_skew, one.selector) == (ZONE, 1, selector(LABELS))


@pytest.mark.parametrize(
    ("kind", "field", "chosen"),
    [
        ("ReplicaSet", "replica_sets", selector({"app": "web"}, (Expression(key="tier", operator="Exists"),))),
        ("StatefulSet", "stateful_sets", selector({"app": "web"})),
        ("ReplicationController", "replication_controllers", selector({"app": "web"})),
    ],
)
def test_a_pod_is_spread_by_the_selector_of_its_controller(
    kind: WorkloadKind, field: str, chosen: LabelSelector
) -> None:
    owner, workload = owned(kind, chosen)
    [one] = found(pod("x", labels=LABELS, owners=(owner,)), **{field: (workload,)})
    assert one.selector == chosen


def test_service_and_controller_must_both_agree() -> None:
    owner, workload = owned("ReplicaSet", selector({"app": "web"}))
    [one] = found(pod("x", labels=LABELS, owners=(owner,)), replica_sets=(workload,), services=(service(tier="front"),))
    assert one.selector == selector(LABELS)


def test_nothing_is_asked_where_nothing_can_be_deduced() -> None:
    owner, empty = owned("ReplicaSet", None)
    assert found(pod("x", labels=LABELS)) == ()
    assert found(pod("x", labels=LABELS), services=(service(), service("other", app="web"))) == ()
    assert found(pod("x", labels=LABELS, owners=(owner,)), replica_sets=(empty,)) == ()
    assert found(pod("x", labels=LABELS, owners=(owner,))) == ()
    loose = replace(owner, controller=False)
    assert (
        found(pod("x", labels=LABELS, owners=(loose,)), replica_sets=(owned("ReplicaSet", selector(LABELS))[1],)) == ()
    )


def test_a_pod_that_says_how_it_is_spread_keeps_its_own() -> None:
    own = (SpreadConstraint(topology_key="rack", max_skew=3),)
    assert found(pod("x", labels=LABELS, spread=own), services=(service(app="web"),)) == own


def test_without_the_setting_nothing_changes() -> None:
    cluster = world(pod("x", labels=LABELS), services=(service(app="web"),))
    assert default_constraints(" ") == ()
    assert spread_by_default(cluster, ()) is cluster


def test_pods_of_a_service_are_spread_over_zones() -> None:
    def cluster() -> Cluster:
        some = tuple(pod(f"p{number}", labels=LABELS) for number in range(3))
        return world(*some, types=(instance_type("m", 8),), services=(service(app="web"),))

    assert sizes(solve(cluster())) == [3]
    assert sizes(solve(spread_by_default(cluster(), default_constraints(CONFIG)))) == [1, 1, 1]


@pytest.mark.parametrize(
    "text",
    [
        "podTopologySpread",
        "[]",
        '{"podTopologySpread": {"default": []}}',
        CONFIG.replace('"maxSkew": 1', '"maxSkew": 0'),
        CONFIG.replace("DoNotSchedule", "Perhaps"),
        CONFIG.replace('"topology.kubernetes.io/zone"', '""'),
        CONFIG.replace('"maxSkew": 1', '"maxSkew": 1, "labelSelector": {}'),
        CONFIG.replace('"maxSkew": 1', '"maxSkew": 1, "matchLabelKeys": []'),
        CONFIG.replace(ZONAL, f"{ZONAL}, {ZONAL}"),
    ],
)
def test_what_cannot_be_a_default_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        default_constraints(text)
