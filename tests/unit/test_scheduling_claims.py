"""New nodes as NodeClaims."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.model.labels import (
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
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Meta
from shared.model.pods import AffinityTerm
from shared.model.resources import resources
from shared.model.selectors import EVERYTHING
from shared.model.taints import Taint, Toleration
from shared.scheduling.hashes import node_pool_hash
from shared.scheduling.placement import Options
from shared.scheduling.solve import claims, solve
from tests.unit.catalogues import needs, pod, pool, world

TAINT = Taint(key="mine", effect="NoSchedule")
FULL = pool(
    labels=(("team", "a"),),
    annotations=(("note", "x"),),
    requirements=needs(("rack", "In", ("r2", "r1")), ("slot", "Gt", ("4",)), ("old", "DoesNotExist", ())),
    taints=(TAINT,),
    startup_taints=(replace(TAINT, key="start"),),
    expire_after=timedelta(hours=5),
    termination_grace_period=timedelta(minutes=5),
)
POD = pod("one", tolerations=(Toleration(operator="Exists"),))


def made(**fields: object) -> NodeClaim:
    cluster = replace(world(POD, node_pools=(FULL,)), **fields)
    return claims(solve(cluster), cluster)[0]


def test_a_claim_has_what_the_template_says() -> None:
    claim = made()
    assert claim.taints == (TAINT,)
    assert claim.startup_taints == FULL.startup_taints
    assert claim.expire_after == timedelta(hours=5)
    assert claim.termination_grace_period == timedelta(minutes=5)
    assert claim.node_class == FULL.node_class
    assert claim.meta.finalizers == (TERMINATION_FINALIZER,)
    assert [(owner.kind, owner.uid) for owner in claim.meta.owners] == [("NodePool", "uid-default")]
    assert not claim.provider_id
    assert claim.requests["cpu"] == 1000


def test_custom_keys_become_labels_with_one_value() -> None:
    assert dict(made().meta.labels) == {
        "team": "a",
        "rack": "r1",
        "slot": "5",
        NODEPOOL: "default",
        NODECLASS: "default",
    }


def test_a_claim_remembers_what_it_was_made_from() -> None:
    claim = made()
    assert claim.meta.annotation("note") == "x"
    assert claim.meta.annotation(NODEPOOL_HASH) == node_pool_hash(FULL)
    assert claim.meta.annotation(NODEPOOL_HASH_VERSION) == HASH_VERSION
    assert claim.meta.annotation(NODECLASS_HASH) == "4711"
    assert claim.meta.annotation(MIN_VALUES_RELAXED) == "false"


def test_a_class_that_is_not_known_leaves_no_hash() -> None:
    cluster = world(POD, node_pools=(FULL,), node_classes=())
    (claim,) = claims(solve(cluster, options=Options(readiness="Assumed")), cluster)
    assert not claim.meta.annotation(NODECLASS_HASH)


def test_a_claim_lists_types_and_capacity_types_and_keeps_min_values() -> None:
    some = pool(requirements=needs((INSTANCE_TYPE, "NotIn", ("m.02",)), minimum={INSTANCE_TYPE: 2}))
    apart = AffinityTerm(topology_key=HOSTNAME, selector=EVERYTHING)
    cluster = world(pod("one", pod_anti_affinity=(apart,)), node_pools=(some,))
    (claim,) = claims(solve(cluster), cluster)
    assert claim.requirements[INSTANCE_TYPE].values == {"m.04", "m.08", "m.16"}
    assert claim.requirements[INSTANCE_TYPE].min_values == 2
    assert claim.requirements[CAPACITY_TYPE].values == {"on-demand"}
    assert HOSTNAME not in claim.requirements


def test_relaxed_min_values_are_marked() -> None:
    some = pool(requirements=needs((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 9}))
    cluster = world(pod("one"), node_pools=(some,))
    (claim,) = claims(solve(cluster, options=Options(min_values_policy="BestEffort")), cluster)
    assert claim.meta.annotation(MIN_VALUES_RELAXED) == "true"


def test_the_same_decision_has_the_same_name() -> None:
    assert made().name == made().name
    assert made().name.startswith("default-")
    assert len(made().name) == len("default-") + 10


def test_a_name_that_is_taken_is_not_used_again() -> None:
    going = NodeClaim(meta=Meta(name=made().name, deleted_at=world().taken_at), node_class=NodeClassRef(name="default"))
    assert made(node_claims=(going,)).name != made().name


@pytest.mark.parametrize(
    ("fields", "same"),
    [
        ({"labels": (("team", "b"),)}, False),
        ({"annotations": ()}, False),
        ({"taints": ()}, False),
        ({"startup_taints": ()}, False),
        ({"expire_after": None}, False),
        ({"termination_grace_period": None}, False),
        ({"node_class": NodeClassRef(name="other")}, False),
        ({"requirements": needs()}, True),
        ({"limits": resources({"cpu": 1})}, True),
        ({"weight": 9}, True),
        ({"consolidate_after": None}, True),
        ({"taints": (replace(TAINT, key="b"), TAINT)}, False),
    ],
)
def test_the_hash_is_of_the_template_without_its_requirements(fields: dict[str, object], *, same: bool) -> None:
    assert (node_pool_hash(replace(FULL, **fields)) == node_pool_hash(FULL)) is same


def test_the_hash_does_not_depend_on_the_order_of_lists() -> None:
    taints = (TAINT, replace(TAINT, key="other"))
    assert node_pool_hash(pool(taints=taints)) == node_pool_hash(pool(taints=taints[::-1]))
    assert node_pool_hash(pool()) == "f0574bf7446e5def"
