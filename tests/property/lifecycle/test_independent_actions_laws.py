"""Parallel execution gives what sequential execution gives, whatever the actions are."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.apply import executor
from shared.apply.executor import apply_actions
from shared.apply.independent_actions import group_independent_actions
from shared.model.core.metadata import ObjectMeta, OwnerReference
from shared.model.core.taints import Taint
from shared.model.decisions import action as a
from shared.model.decisions.action_outcome import Outcome
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from sim.fault_tap import Killed, PortCall, Tap
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.support.actions_world import Outside
from tests.support.parallel_world import make_parallel

INDEXES = range(4)
CLAIM_BY_NODE = {f"node-{index}": f"claim-{index}" for index in INDEXES}
TAINT = Taint(key="karpenter.sh/disrupted", value="", effect="NoSchedule")
COLLECTIONS = ("nodes", "nodeclaims.karpenter.sh", "pods", "events")


def build_actions(index: int) -> tuple[a.Action, ...]:
    """Return every kind of action on one NodeClaim, its Node and its pod, and on what the NodeClaims share."""
    node, claim, pod = f"node-{index}", f"claim-{index}", f"pod-{index}"
    owner = OwnerReference(api_version="karpenter.sh/v1", kind="NodeClaim", name=claim, uid="u")
    nomination = a.NominatePod(namespace="default", name=pod, uid="", node=node)
    return (
        a.CreateNodeClaim(
            claim=NodeClaim(meta=ObjectMeta(name=f"new-{index}"), node_class=NodeClassRef(name="default"))
        ),
        a.TaintNode(name=node, resource_version="", taints=(TAINT,)),
        a.TaintNode(name=node, resource_version="", taints=(), labels=(("untainted", "1"),)),
        a.RegisterNode(
            name=node,
            resource_version="",
            taints=(),
            labels=(("registered", "1"),),
            annotations=(),
            finalizers=("karpenter.sh/termination",),
            owners=(owner,),
        ),
        a.PatchMetadata(kind="Node", name=node, finalizers=()),
        a.PatchMetadata(kind="NodeClaim", name=claim, annotations=(("a", node),)),
        a.PatchMetadata(kind="NodePool", name="default", annotations=((f"a{index}", "1"),)),
        a.PatchStatus(kind="NodeClaim", name=claim, status=f'{{"nodeName":"{node}"}}'),
        a.DeleteObject(kind="Node", name=node, message="test"),
        a.DeleteObject(kind="NodeClaim", name=claim, message="test"),
        a.EvictPod(namespace="default", name=pod, uid="", node=node),
        a.DeletePod(namespace="default", name=pod, uid="", node=node, grace_seconds=1),
        a.SetDeletionCost(namespace="default", name=pod, uid="", resource_version="", node=node, cost=index),
        nomination,
        a.PublishEvent(kind="Node", name=node, reason="Test", message=f"about {index % 2}", at=DEFAULT_START_TIME),
        a.PublishEvent(kind="NodePool", name="default", reason="Test", message="again", at=DEFAULT_START_TIME),
        a.TerminateInstances(instance_ids=(), message=f"test {index}"),
        a.FollowUp(function="provision", after=a.MAX_FOLLOW_UP_DELAY / (index + 1)),
    )


ANY_ACTION = st.sampled_from(INDEXES).flatmap(lambda index: st.sampled_from(build_actions(index)))
ACTIONS = st.lists(ANY_ACTION, max_size=30).map(tuple)


def list_names(text: str) -> set[str]:
    """Return the indexes of the NodeClaims that *text* is about."""
    return {str(index) for index in INDEXES if any(f"{kind}-{index}" in text for kind in ("node", "claim", "pod"))}


@given(ACTIONS)
def test_every_action_is_in_one_group_and_stages_are_in_order(actions: tuple[a.Action, ...]) -> None:
    stages = group_independent_actions(actions, CLAIM_BY_NODE)
    assert [sorted(position for group in stage for position in group) for stage in stages] == [
        list(range(min(map(min, stage)), max(map(max, stage)) + 1)) for stage in stages
    ]
    assert sorted(position for stage in stages for group in stage for position in group) == list(range(len(actions)))
    assert all(list(group) == sorted(group) for stage in stages for group in stage)


@given(ACTIONS)
def test_actions_on_one_node_claim_are_never_performed_at_the_same_time(actions: tuple[a.Action, ...]) -> None:
    for stage in group_independent_actions(actions, CLAIM_BY_NODE):
        for one_group, other_group in combinations(stage, 2):
            one_names, other_names = (
                set().union(*(list_names(msgspec.json.encode(actions[position]).decode()) for position in group))
                for group in (one_group, other_group)
            )
            assert not one_names & other_names


@given(ACTIONS)
def test_actions_outside_kubernetes_are_alone_in_their_stage(actions: tuple[a.Action, ...]) -> None:
    for stage in group_independent_actions(actions, CLAIM_BY_NODE):
        types = {type(actions[position]) for group in stage for position in group}
        if types & {a.TerminateInstances, a.FollowUp}:
            assert stage == ((min(map(min, stage)),),)


def build_outside() -> Outside:
    outside = Outside()
    for index in INDEXES:
        outside.create_node(f"node-{index}")
        outside.create_pod(f"pod-{index}", on=f"node-{index}")
        node_class = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
        spec: dict[str, Any] = {"nodeClassRef": node_class, "requirements": []}
        outside.api.create("nodeclaims.karpenter.sh", {"metadata": {"name": f"claim-{index}"}, "spec": spec})
    return outside


def describe_state(outside: Outside) -> list[tuple[str, Any]]:
    """Return all objects without what depends on the order of independent writes: versions and uids."""

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: strip(child) for key, child in value.items() if key not in {"resourceVersion", "uid"}}
        return [strip(child) for child in value] if isinstance(value, list) else value

    return [
        (collection, sorted((strip(stored) for stored in outside.api.list(collection)), key=repr))
        for collection in COLLECTIONS
    ]


def describe_call(call: PortCall) -> str:
    return f"{call.method} {call.detail} {call.phase}"


def perform(
    outside: Outside, actions: tuple[a.Action, ...], max_parallel_calls: int, tap: Tap | None = None
) -> tuple[Outcome, ...]:
    world, _ = make_parallel(outside.build_world(tap=tap), max_parallel_calls, seconds=0)
    return apply_actions(actions, world, claim_by_node=CLAIM_BY_NODE)


@pytest.fixture(autouse=True)
def _use_threads_for_few_groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patches:
        patches.setattr(executor, "MIN_PARALLEL_GROUPS", 2)
        yield


@given(ACTIONS)
@settings(max_examples=40)
def test_parallel_actions_have_the_outcomes_and_effects_of_sequential_ones(actions: tuple[a.Action, ...]) -> None:
    one_after_the_other, parallel = build_outside(), build_outside()
    expected_outcomes = perform(one_after_the_other, actions, 1)
    assert perform(parallel, actions, 4) == expected_outcomes
    assert describe_state(parallel) == describe_state(one_after_the_other)
    assert parallel.post.sent == one_after_the_other.post.sent


@given(ACTIONS, st.integers(0, 40), st.sampled_from(("before", "after")))
@settings(max_examples=40)
def test_calls_about_one_node_claim_before_a_kill_are_the_first_calls_of_a_sequential_run(
    actions: tuple[a.Action, ...], kill_at: int, phase: str
) -> None:
    sequential_calls, killed_calls = list[str](), list[str]()
    perform(build_outside(), actions, 1, lambda call: sequential_calls.append(describe_call(call)))

    def kill(call: PortCall) -> None:
        killed_calls.append(describe_call(call))
        if call.phase == phase and len(killed_calls) > kill_at:
            raise Killed(call.method)

    with suppress(Killed):
        perform(build_outside(), actions, 4, kill)
    for index in INDEXES:
        expected_calls = [call for call in sequential_calls if str(index) in list_names(call)]
        actual_calls = [call for call in killed_calls if str(index) in list_names(call)]
        assert actual_calls == expected_calls[: len(actual_calls)]
