"""Whether a pool's nodes join, whether a node is what was bought, and nodes of an older Karpenter."""

import json
from datetime import datetime

import pytest

from shared.lifecycle.consistency import check
from shared.lifecycle.decide import decide
from shared.lifecycle.machines import machines_of, view_of
from shared.model import labels
from shared.model.action import DeleteObject, EvictPod, PatchMetadata, PublishEvent, TaintNode, TerminateInstances
from shared.model.nodepools import NodePool
from shared.model.objects import Condition, Owner, condition, pairs
from shared.model.resources import parse_resources
from tests.unit.lifecycle_cases import (
    BIRTH,
    LABELS,
    NODE_CLASS,
    POOL,
    STAGES,
    Case,
    ago,
    changed,
    claim,
    cluster,
    instance,
    node,
    of,
    pod,
    statuses,
    true,
    unknown,
)

HEALTHY = "NodeRegistrationHealthy"


def pool(status: str = "", failed: dict[str, datetime] | None = None, *, of_: str = "1/1", **fields: Case) -> NodePool:
    """Answer a pool that says *status* of itself and remembers the claims that *failed*."""
    text = json.dumps(
        {"of": of_, "since": BIRTH.isoformat(), "failed": {name: at.isoformat() for name, at in (failed or {}).items()}}
    )
    said = (Condition(type=HEALTHY, status=status, reason="Because", since=BIRTH, observed_generation=1),)
    meta = changed(POOL.meta, annotations=((labels.REGISTRATION_HEALTH, text),))
    return changed(POOL, meta=meta, conditions=said if status else (), **fields)


def joined(name: str, minutes: float) -> Case:
    since = ago(minutes=minutes)
    return claim(name, conditions=(*true("Launched"), *true("Registered", since=since)))


def lost(name: str, minutes: float, **fields: Case) -> Case:
    """Answer a claim that was launched so long ago, and has not joined."""
    at = ago(minutes=minutes)
    waits = unknown("Registered", "NodeNotFound", at)
    return claim(name, created=at, conditions=(*true("Launched", since=at), waits), **fields)


def judged(mine: NodePool, *claims: Case, **fields: Case) -> tuple[str, str, dict[str, str]]:
    """Answer status, reason, and what the pool remembers afterwards."""
    actions = decide(cluster(**({"node_pools": (mine,), "node_claims": claims} | fields)))
    told = statuses(actions, "NodePool")["conditions"][HEALTHY]
    notes = [dict(one.annotations) for one in of(PatchMetadata, actions) if one.kind == "NodePool"]
    text = next((one[labels.REGISTRATION_HEALTH] for one in notes if labels.REGISTRATION_HEALTH in one), "")
    text = text or mine.meta.annotation(labels.REGISTRATION_HEALTH)
    return told["status"], told["reason"], json.loads(text)["failed"]


FIVE, SIX, SEVEN = ago(minutes=5), ago(minutes=6), ago(minutes=7)


@pytest.mark.parametrize(
    ("mine", "claims", "status"),
    [
        (pool(), [], "Unknown"),
        (pool(), [joined("a", 5)], "True"),
        (pool(), [joined("a", 61)], "Unknown"),
        (pool("True"), [], "True"),
        (pool(), [lost("a", 14)], "Unknown"),
        (pool("True"), [lost("a", 16)], "True"),
        (pool(), [lost("a", 16)], "Unknown"),
        (pool("True"), [lost("a", 16), lost("b", 16)], "False"),
        (pool("True", {"x": FIVE}), [lost("a", 16)], "False"),
        (pool("False", {"x": FIVE, "y": SIX}), [], "False"),
        (pool("False", {"x": FIVE, "y": SIX}), [joined("a", 1), joined("b", 2)], "False"),
        (pool("False", {"x": FIVE, "y": SIX}), [joined("a", 1), joined("b", 2), joined("c", 3)], "True"),
        (pool("True", {"x": FIVE, "y": SIX}, of_="2/1"), [], "Unknown"),
        (pool("True", {"x": FIVE, "y": SIX}, of_="1/2"), [joined("a", 5)], "Unknown"),
    ],
)
def test_a_pool_is_healthy_unless_two_of_its_last_four_nodes_did_not_join(
    mine: NodePool, claims: Case, status: str
) -> None:
    assert judged(mine, *claims)[0] == status


def test_failures_are_remembered_while_they_are_among_the_last_four_and_counted_once() -> None:
    mine = pool("True", {"x": SEVEN})
    assert set(judged(mine, lost("a", 16))[2]) == {"a", "x"}
    assert set(judged(pool("True", {"a": ago(minutes=1)}), lost("a", 16))[2]) == {"a"}
    assert judged(mine, *(joined(name, 3) for name in "abcd"))[2] == {}
    dying = lost("a", 30, deleted=ago(minutes=10))
    assert set(judged(pool(), dying)[2]) == {"a"}
    assert judged(pool(), lost("a", 30, deleted=ago(minutes=20)))[2] == {}


@pytest.mark.parametrize(
    ("launched", "status", "reason"), [(True, "False", "RegistrationFailed"), (False, "False", "VpcCpuLimit")]
)
def test_why_a_pool_is_not_healthy_is_why_its_last_claim_failed(
    launched: bool,  # noqa: FBT001
    status: str,
    reason: str,
) -> None:
    at = ago(minutes=16)
    stuck = unknown("Launched", "VpcCpuLimit", at)
    last = lost("a", 16) if launched else claim("a", created=at, conditions=(stuck,), launched=False)
    assert judged(pool("True", {"x": ago(minutes=20)}), last)[:2] == (status, reason)


def test_a_pool_that_never_was_judged_counts_what_is_seen_and_one_of_karpenter_keeps_its_word() -> None:
    bare = changed(POOL, meta=changed(POOL.meta, annotations=(), created_at=ago(hours=9)))
    actions = decide(cluster(node_pools=(bare,), node_claims=(joined("a", 30),)))
    assert statuses(actions, "NodePool")["conditions"][HEALTHY]["status"] == "True"
    adopted = changed(bare, conditions=true(HEALTHY))
    actions = decide(cluster(node_pools=(adopted,)))
    assert statuses(actions, "NodePool")["conditions"][HEALTHY]["status"] == "True"


def test_claims_of_a_pool_of_the_same_name_do_not_count() -> None:
    owner = Owner(api_version="karpenter.sh/v1", kind="NodePool", name="default", uid="another")
    foreign = joined("a", 5)
    foreign = changed(foreign, meta=changed(foreign.meta, owners=(owner,)))
    assert judged(pool(), foreign)[0] == "Unknown"


CAPACITY = [("4", None), ("3600m", None), ("3599m", "False")]


@pytest.mark.parametrize(("cpu", "status"), CAPACITY)
def test_a_node_that_has_less_than_was_bought_is_told_so_once(cpu: str, status: str | None) -> None:
    room = parse_resources({"cpu": cpu, "memory": "1Gi", "pods": 30})
    world = cluster(node_claims=(claim(),), nodes=(node(capacity=room),), instances=(instance(),))
    (machine,) = machines_of(world)
    change = check(machine, view_of(world))
    found = condition(change.claim.conditions, "ConsistentStateFound")
    assert found is not None
    assert found.status == (status or "True")
    said = [one.reason for one in of(PublishEvent, change.after)]
    assert said == (["FailedConsistencyCheck"] if status else [])
    again = check(changed(machine, claim=change.claim), view_of(world))
    assert not again.after
    assert again.claim == change.claim


@pytest.mark.parametrize(
    "fields", [{"conditions": true(*STAGES[:2])}, {"launched": False, "conditions": true(*STAGES)}]
)
def test_a_node_that_is_not_fit_for_use_yet_is_not_compared(fields: Case) -> None:
    world = cluster(
        node_claims=(claim(**fields),), nodes=(node(capacity=parse_resources({})),), instances=(instance(),)
    )
    (machine,) = machines_of(world)
    assert check(machine, view_of(world)).claim == machine.claim


def test_claims_and_nodes_of_an_older_karpenter_get_the_label_of_their_class() -> None:
    bare = pairs({key: value for key, value in LABELS.items() if key != labels.NODECLASS})
    mine, its = claim(), node()
    mine = changed(mine, meta=changed(mine.meta, labels=bare))
    its = changed(its, meta=changed(its.meta, labels=pairs((*bare, (labels.REGISTERED, "true")))))
    world = cluster(node_claims=(mine,), nodes=(its,), instances=(instance(),))
    label = ((labels.NODECLASS, "default"),)
    poor = [(one.kind, one.name, one.labels) for one in of(PatchMetadata, decide(world)) if one.labels == label]
    assert poor == [("NodeClaim", "a", label), ("Node", "node-a", label)]


def test_what_an_existing_karpenter_made_is_taken_over_and_nothing_ends() -> None:
    """No digest, no launch group, no tag or annotation of ours: as Karpenter leaves it when it is scaled to zero."""
    tags = {"karpenter.sh/nodepool": "default", "karpenter.sh/nodeclaim": "a", "Name": "node-a"}
    world = cluster(
        node_pools=(changed(POOL, meta=changed(POOL.meta, annotations=())),),
        node_classes=(NODE_CLASS,),
        node_claims=(claim(),),
        nodes=(node(),),
        pods=(pod(),),
        instances=(changed(instance(), tags=pairs(tags)),),
    )
    actions = decide(world, cluster_name="prod", hashes={"default": "h"})
    for kind in (DeleteObject, EvictPod, TaintNode, TerminateInstances):
        assert not of(kind, actions)
