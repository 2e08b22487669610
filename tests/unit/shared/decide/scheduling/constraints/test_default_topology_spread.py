"""Default topology spread: which pods get it, with which selector, and which configurations are invalid."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.decide.scheduling.constraints.default_topology_spread import apply_default_spread, parse_default_constraints
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import ZONE
from shared.model.core.metadata import ObjectMeta, OwnerReference, build_pairs
from shared.model.core.selectors import LabelSelector, SelectorExpression, build_label_selector
from shared.model.kubernetes.pod import Pod, SpreadConstraint
from shared.model.kubernetes.workloads import Service, Workload, WorkloadKind
from tests.support.catalogues import count_pods_per_new_node, make_cluster_snapshot, make_instance_type, make_pod
from tests.support.snapshot_decisions import solve

ZONAL = '{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}'
CONFIG = f'{{"podTopologySpread": {{"defaultConstraints": [{ZONAL}]}}}}'
LABELS = {"app": "web", "tier": "front"}


def make_service(namespace: str = "shop", **labels: str) -> Service:
    return Service(meta=ObjectMeta(name="web", namespace=namespace), selector=build_pairs(labels))


def make_owner_and_workload(kind: WorkloadKind, selector: LabelSelector | None) -> tuple[OwnerReference, Workload]:
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    owner = OwnerReference(api_version=version, kind=kind, name="web", uid="u", controller=True)
    return owner, Workload(kind=kind, meta=ObjectMeta(name="web", namespace="shop"), selector=selector)


def compute_spread(pod: Pod, **fields: Any) -> tuple[SpreadConstraint, ...]:
    cluster = apply_default_spread(make_cluster_snapshot(pod, **fields), parse_default_constraints(CONFIG))
    return cluster.pods[0].spec.spread


def test_default_spread_selector_combines_the_selectors_of_all_matching_services() -> None:
    services = (make_service(app="web"), make_service(tier="front"), make_service(app="other"), make_service())
    [constraint] = compute_spread(make_pod("x", labels=LABELS), services=services)
    assert (constraint.topology_key, constraint.max_skew, constraint.selector) == (
        ZONE,
        1,
        build_label_selector(LABELS),
    )


@pytest.mark.parametrize(
    ("kind", "field", "selector"),
    [
        (
            "ReplicaSet",
            "replica_sets",
            build_label_selector({"app": "web"}, (SelectorExpression(key="tier", operator="Exists"),)),
        ),
        ("StatefulSet", "stateful_sets", build_label_selector({"app": "web"})),
        ("ReplicationController", "replication_controllers", build_label_selector({"app": "web"})),
    ],
)
def test_default_spread_selector_is_the_selector_of_the_pod_controller(
    kind: WorkloadKind, field: str, selector: LabelSelector
) -> None:
    owner, workload = make_owner_and_workload(kind, selector)
    [constraint] = compute_spread(make_pod("x", labels=LABELS, owners=(owner,)), **{field: (workload,)})
    assert constraint.selector == selector


def test_default_spread_selector_combines_service_and_controller_selectors() -> None:
    owner, workload = make_owner_and_workload("ReplicaSet", build_label_selector({"app": "web"}))
    [constraint] = compute_spread(
        make_pod("x", labels=LABELS, owners=(owner,)), replica_sets=(workload,), services=(make_service(tier="front"),)
    )
    assert constraint.selector == build_label_selector(LABELS)


def test_pod_without_service_or_controller_selector_gets_no_default_spread() -> None:
    owner, empty = make_owner_and_workload("ReplicaSet", None)
    assert compute_spread(make_pod("x", labels=LABELS)) == ()
    assert (
        compute_spread(make_pod("x", labels=LABELS), services=(make_service(), make_service("other", app="web"))) == ()
    )
    assert compute_spread(make_pod("x", labels=LABELS, owners=(owner,)), replica_sets=(empty,)) == ()
    assert compute_spread(make_pod("x", labels=LABELS, owners=(owner,))) == ()
    loose = replace(owner, controller=False)
    assert (
        compute_spread(
            make_pod("x", labels=LABELS, owners=(loose,)),
            replica_sets=(make_owner_and_workload("ReplicaSet", build_label_selector(LABELS))[1],),
        )
        == ()
    )


def test_pod_with_its_own_topology_spread_keeps_it() -> None:
    spread = (SpreadConstraint(topology_key="rack", max_skew=3),)
    assert compute_spread(make_pod("x", labels=LABELS, spread=spread), services=(make_service(app="web"),)) == spread


def test_pods_are_unchanged_without_default_constraints() -> None:
    cluster = make_cluster_snapshot(make_pod("x", labels=LABELS), services=(make_service(app="web"),))
    assert parse_default_constraints(" ") == ()
    assert apply_default_spread(cluster, ()) is cluster


def test_default_spread_distributes_pods_of_a_service_over_zones() -> None:
    def build_cluster() -> ClusterSnapshot:
        pods = tuple(make_pod(f"p{number}", labels=LABELS) for number in range(3))
        return make_cluster_snapshot(*pods, types=(make_instance_type("m", 8),), services=(make_service(app="web"),))

    assert count_pods_per_new_node(solve(build_cluster())) == [3]
    assert count_pods_per_new_node(solve(apply_default_spread(build_cluster(), parse_default_constraints(CONFIG)))) == [
        1,
        1,
        1,
    ]


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
def test_invalid_default_constraint_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_default_constraints(text)
