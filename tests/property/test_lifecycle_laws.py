"""Laws of the lifecycle, for any cluster."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.lifecycle.decide import decide
from shared.lifecycle.interruption import Notice, Unknown, decide_notices, parse_notice
from shared.lifecycle.liveness import REGISTRATION_TIMEOUT
from shared.model import labels
from shared.model.action import (
    EvictPod,
    FollowUp,
    PatchMetadata,
    PublishEvent,
    TerminateInstances,
)
from shared.model.cluster import Cluster
from shared.model.taints import DISRUPTED
from tests.property.lifecycle_world import Little, clusters, orders, survivors
from tests.unit.lifecycle_cases import Case, changed, of

ROUND = timedelta(seconds=15)
ROUNDS = 16
FEW = settings(max_examples=settings().max_examples * 2 // 5)


def run(start: Cluster, rounds: int, keep: Case = None) -> Little:
    little = Little(start)
    go_on(little, rounds, keep)
    return little


def go_on(little: Little, rounds: int, keep: Case = None) -> None:
    for number in range(rounds):
        actions = decide(little.cluster(), cluster_name="prod", hashes={"default": "h"})
        if keep is not None and number < len(keep):
            actions = tuple(one for one, kept in zip(actions, keep[number], strict=False) if kept)
        little.perform(actions)
        little.pass_time(ROUND)


def ended(start: Cluster, rounds: int, keep: Case = None) -> tuple[list[str], list[str], list[str]]:
    """Answer who is left when the last that did not join was given up as well."""
    little = run(start, rounds, keep)
    little.pass_time(REGISTRATION_TIMEOUT)
    go_on(little, ROUNDS)
    return survivors(little)


@given(orders())
def test_the_order_of_lists_changes_no_decision(pair: tuple[Cluster, Cluster]) -> None:
    one, other = pair
    assert decide(one) == decide(one)
    assert decide(one) == decide(other)


@given(clusters())
def test_what_is_not_seen_is_not_gone(start: Cluster) -> None:
    blind = changed(start, instances=None)
    actions = decide(blind)
    launched = {claim.name for claim in start.node_claims if claim.provider_id}
    assert not of(TerminateInstances, actions)
    released = {one.name for one in of(PatchMetadata, actions) if one.kind == "NodeClaim" and one.finalizers == ()}
    assert not released & launched


@given(clusters())
def test_nobody_is_evicted_who_must_not_be_or_from_a_node_without_the_taint(start: Cluster) -> None:
    pods = {pod.meta.uid: pod for pod in start.pods}
    nodes = {node.name: node for node in start.nodes}
    for one in of(EvictPod, decide(start)):
        pod = pods[one.uid]
        assert pod.meta.annotation(labels.DO_NOT_DISRUPT) != "true"
        guarding = [guard for guard in start.budgets if guard.selects(pod)]
        assert len(guarding) < 2
        assert not any(guard.is_fully_blocking() for guard in guarding)
        assert DISRUPTED in nodes[one.node].taints


@given(clusters())
def test_no_action_breaks_the_precondition_of_one_behind_it(start: Cluster) -> None:
    run(start, 4)


@FEW
@given(clusters())
def test_repeated_it_comes_to_rest(start: Cluster) -> None:
    little = run(start, ROUNDS)
    little.perform(last := decide(little.cluster(), cluster_name="prod", hashes={"default": "h"}))
    assert all(isinstance(one, FollowUp | PublishEvent) for one in last), last


@FEW
@given(clusters(), st.lists(st.lists(st.booleans(), min_size=30, max_size=30), max_size=4))
def test_actions_that_did_not_happen_make_no_difference_in_the_end(start: Cluster, keep: list[list[bool]]) -> None:
    assert ended(start, len(keep), keep) == ended(start, len(keep))


@FEW
@given(clusters())
def test_an_instance_outlives_neither_its_claim_nor_the_other_way_round(start: Cluster) -> None:
    little = run(start, ROUNDS)
    if start.instances is not None:
        claimed = {claim.instance_id for claim in little.claims.values()}
        assert set(little.instances) <= claimed


@given(st.text(st.characters(codec="utf-8")) | st.text('{}[]":,0instace-dl ', max_size=60))
def test_any_message_is_read_or_refused(body: str) -> None:
    assert isinstance(parse_notice(body), Notice | Unknown)


@given(orders(), st.lists(st.tuples(st.sampled_from("abx"), st.booleans()), max_size=4), st.randoms())
def test_notices_may_come_twice_and_in_any_order(pair: Case, drawn: list[tuple[str, bool]], chance: Case) -> None:
    one, other = pair
    notices = [
        Notice(kind="spot_interrupted" if spot else "instance_stopped", instance_ids=(f"i-{name}",))
        for name, spot in drawn
    ]
    mixed = [*notices, *notices]
    chance.shuffle(mixed)
    assert decide_notices(one, notices) == decide_notices(other, mixed)
    little = Little(one)
    little.perform(decide_notices(one, notices))
    assert decide_notices(little.cluster(), notices) == ()
