"""New nodes are converted to NodeClaims."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.scheduling.templates.node_claim_builder import build_node_claims
from shared.decide.scheduling.templates.node_pool_hash import compute_node_pool_hash
from shared.model.core.labels import (
    CAPACITY_TYPE,
    HASH_VERSION,
    HOSTNAME,
    INSTANCE_TYPE,
    MIN_VALUES_RELAXED,
    NODECLASS,
    NODECLASS_HASH,
    NODEPOOL,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
    TERMINATION_FINALIZER,
)
from shared.model.core.metadata import ObjectMeta
from shared.model.core.resources import build_resources
from shared.model.core.selectors import EVERYTHING
from shared.model.core.taints import Taint, Toleration
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.kubernetes.pod import AffinityTerm
from tests.support.catalogues import make_cluster_snapshot, make_node_pool, make_pod, make_requirements
from tests.support.snapshot_decisions import solve

TAINT = Taint(key="mine", effect="NoSchedule")
FULL = make_node_pool(
    labels=(("team", "a"),),
    annotations=(("note", "x"),),
    requirements=make_requirements(("rack", "In", ("r2", "r1")), ("slot", "Gt", ("4",)), ("old", "DoesNotExist", ())),
    taints=(TAINT,),
    startup_taints=(replace(TAINT, key="start"),),
    expire_after=timedelta(hours=5),
    termination_grace_period=timedelta(minutes=5),
)
POD = make_pod("one", tolerations=(Toleration(operator="Exists"),))


def build_claim(**fields: object) -> NodeClaim:
    cluster = replace(make_cluster_snapshot(POD, node_pools=(FULL,)), **fields)
    return build_node_claims(solve(cluster), cluster)[0]


def test_node_claim_has_the_fields_of_the_node_pool_template() -> None:
    claim = build_claim()
    assert claim.taints == (TAINT,)
    assert claim.startup_taints == FULL.startup_taints
    assert claim.expire_after == timedelta(hours=5)
    assert claim.termination_grace_period == timedelta(minutes=5)
    assert claim.node_class == FULL.node_class
    assert claim.meta.finalizers == (TERMINATION_FINALIZER,)
    assert [(owner.kind, owner.uid) for owner in claim.meta.owners] == [("NodePool", "uid-default")]
    assert not claim.provider_id
    assert claim.requests["cpu"] == 1000


def test_custom_requirement_keys_become_labels_with_one_value() -> None:
    assert dict(build_claim().meta.labels) == {
        "team": "a",
        "rack": "r1",
        "slot": "5",
        NODEPOOL: "default",
        NODECLASS: "default",
    }


def test_node_claim_has_annotations_with_node_pool_and_node_class_hashes() -> None:
    claim = build_claim()
    assert claim.meta.get_annotation("note") == "x"
    assert claim.meta.get_annotation(NODEPOOL_HASH) == compute_node_pool_hash(FULL)
    assert claim.meta.get_annotation(NODEPOOL_HASH_VERSION) == HASH_VERSION
    assert claim.meta.get_annotation(NODECLASS_HASH) == "4711"
    assert claim.meta.get_annotation(MIN_VALUES_RELAXED) == "false"


def test_unknown_node_class_leaves_no_hash_annotation() -> None:
    cluster = make_cluster_snapshot(POD, node_pools=(FULL,), node_classes=())
    (claim,) = build_node_claims(solve(cluster, options=SchedulingOptions(readiness="Assumed")), cluster)
    assert not claim.meta.get_annotation(NODECLASS_HASH)


def test_node_claim_lists_instance_types_and_capacity_types_with_min_values() -> None:
    node_pool = make_node_pool(
        requirements=make_requirements((INSTANCE_TYPE, "NotIn", ("m.02",)), minimum={INSTANCE_TYPE: 2})
    )
    apart = AffinityTerm(topology_key=HOSTNAME, selector=EVERYTHING)
    cluster = make_cluster_snapshot(make_pod("one", pod_anti_affinity=(apart,)), node_pools=(node_pool,))
    (claim,) = build_node_claims(solve(cluster), cluster)
    assert claim.requirements[INSTANCE_TYPE].values == {"m.04", "m.08", "m.16"}
    assert claim.requirements[INSTANCE_TYPE].min_values == 2
    assert claim.requirements[CAPACITY_TYPE].values == {"on-demand"}
    assert HOSTNAME not in claim.requirements


def test_relaxed_min_values_are_marked_with_an_annotation() -> None:
    node_pool = make_node_pool(
        requirements=make_requirements((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 9})
    )
    cluster = make_cluster_snapshot(make_pod("one"), node_pools=(node_pool,))
    (claim,) = build_node_claims(solve(cluster, options=SchedulingOptions(min_values_policy="BestEffort")), cluster)
    assert claim.meta.get_annotation(MIN_VALUES_RELAXED) == "true"


def test_node_claim_name_is_deterministic() -> None:
    assert build_claim().name == build_claim().name
    assert build_claim().name.startswith("default-")
    assert len(build_claim().name) == len("default-") + 10


def test_node_claim_name_of_a_deleting_node_claim_is_not_reused() -> None:
    going = NodeClaim(
        meta=ObjectMeta(name=build_claim().name, deleted_at=make_cluster_snapshot().taken_at),
        node_class=NodeClassRef(name="default"),
    )
    assert build_claim(node_claims=(going,)).name != build_claim().name


@pytest.mark.parametrize(
    ("fields", "is_equal"),
    [
        ({"labels": (("team", "b"),)}, False),
        ({"annotations": ()}, False),
        ({"taints": ()}, False),
        ({"startup_taints": ()}, False),
        ({"expire_after": None}, False),
        ({"termination_grace_period": None}, False),
        ({"node_class": NodeClassRef(name="other")}, False),
        ({"requirements": make_requirements()}, True),
        ({"limits": build_resources({"cpu": 1})}, True),
        ({"weight": 9}, True),
        ({"consolidate_after": None}, True),
        ({"taints": (replace(TAINT, key="b"), TAINT)}, False),
    ],
)
def test_node_pool_hash_covers_the_template_without_requirements(fields: dict[str, object], *, is_equal: bool) -> None:
    assert (compute_node_pool_hash(replace(FULL, **fields)) == compute_node_pool_hash(FULL)) is is_equal


def test_node_pool_hash_does_not_depend_on_the_order_of_lists() -> None:
    taints = (TAINT, replace(TAINT, key="other"))
    assert compute_node_pool_hash(make_node_pool(taints=taints)) == compute_node_pool_hash(
        make_node_pool(taints=taints[::-1])
    )
    assert compute_node_pool_hash(make_node_pool()) == "f0574bf7446e5def"
