"""Laws of the lifecycle, for any cluster."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.decide.lifecycle.interruption.interruption import decide_interruptions
from shared.decide.lifecycle.interruption.messages import parse_interruption_message
from shared.decide.lifecycle.node_claim.liveness import REGISTRATION_TIMEOUT
from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.core.taints import DISRUPTED
from shared.model.decisions.action import EvictPod, FollowUp, PatchMetadata, PublishEvent, TerminateInstances
from shared.model.decisions.interruption_message import InterruptionMessage, UnknownMessage
from shared.state.cluster_state import ClusterState
from tests.property.lifecycle.lifecycle_world import (
    Little,
    generate_cluster,
    generate_reordered_clusters,
    list_survivors,
)
from tests.support.lifecycle_cases import Case, filter_actions, replace_fields
from tests.support.snapshot_decisions import decide_lifecycle

ROUND_INTERVAL = timedelta(seconds=15)
ROUND_COUNT = 16
REDUCED_EXAMPLES = settings(max_examples=settings().max_examples * 2 // 5)


def run(start: ClusterSnapshot, rounds: int, keep: Case = None) -> Little:
    little = Little(start)
    run_rounds(little, rounds, keep)
    return little


def run_rounds(little: Little, rounds: int, keep: Case = None) -> None:
    for number in range(rounds):
        actions = decide_lifecycle(little.build_snapshot(), cluster_name="prod", hashes={"default": "h"})
        if keep is not None and number < len(keep):
            actions = tuple(action for action, is_kept in zip(actions, keep[number], strict=False) if is_kept)
        little.perform(actions)
        little.advance_time(ROUND_INTERVAL)


def run_to_end(start: ClusterSnapshot, rounds: int, keep: Case = None) -> tuple[list[str], list[str], list[str]]:
    """Return the survivors after claims that never registered have passed the registration timeout."""
    little = run(start, rounds, keep)
    little.advance_time(REGISTRATION_TIMEOUT)
    run_rounds(little, ROUND_COUNT)
    return list_survivors(little)


@given(generate_reordered_clusters())
def test_input_list_order_does_not_change_decisions(pair: tuple[ClusterSnapshot, ClusterSnapshot]) -> None:
    snapshot, reordered = pair
    assert decide_lifecycle(snapshot) == decide_lifecycle(snapshot)
    assert decide_lifecycle(snapshot) == decide_lifecycle(reordered)


@given(generate_cluster())
def test_unread_instances_are_not_treated_as_terminated(start: ClusterSnapshot) -> None:
    blind = replace_fields(start, instances=None)
    actions = decide_lifecycle(blind)
    launched = {claim.name for claim in start.node_claims if claim.provider_id}
    assert not filter_actions(TerminateInstances, actions)
    released = {
        patch.name
        for patch in filter_actions(PatchMetadata, actions)
        if patch.kind == "NodeClaim" and patch.finalizers == ()
    }
    assert not released & launched


@given(generate_cluster())
def test_evictions_respect_do_not_disrupt_and_pdbs_and_need_the_disrupted_taint(start: ClusterSnapshot) -> None:
    pods = {pod.meta.uid: pod for pod in start.pods}
    nodes = {node.name: node for node in start.nodes}
    for eviction in filter_actions(EvictPod, decide_lifecycle(start)):
        pod = pods[eviction.uid]
        assert pod.meta.get_annotation(labels.DO_NOT_DISRUPT) != "true"
        guarding = [guard for guard in start.budgets if guard.is_match(pod)]
        assert len(guarding) < 2
        assert not any(guard.is_fully_blocking() for guard in guarding)
        assert DISRUPTED in nodes[eviction.node].taints


@given(generate_cluster())
def test_no_action_breaks_the_precondition_of_a_later_action(start: ClusterSnapshot) -> None:
    run(start, 4)


@REDUCED_EXAMPLES
@given(generate_cluster())
def test_repeated_lifecycle_reaches_a_fixed_point(start: ClusterSnapshot) -> None:
    little = run(start, ROUND_COUNT)
    little.perform(last := decide_lifecycle(little.build_snapshot(), cluster_name="prod", hashes={"default": "h"}))
    assert all(isinstance(action, FollowUp | PublishEvent) for action in last), last


@REDUCED_EXAMPLES
@given(generate_cluster(), st.lists(st.lists(st.booleans(), min_size=30, max_size=30), max_size=4))
def test_skipped_actions_do_not_change_the_final_state(start: ClusterSnapshot, keep: list[list[bool]]) -> None:
    assert run_to_end(start, len(keep), keep) == run_to_end(start, len(keep))


@REDUCED_EXAMPLES
@given(generate_cluster())
def test_every_remaining_instance_has_a_nodeclaim(start: ClusterSnapshot) -> None:
    little = run(start, ROUND_COUNT)
    if start.instances is not None:
        claimed = {claim.instance_id for claim in little.claims.values()}
        assert set(little.instances) <= claimed


@given(st.text(st.characters(codec="utf-8")) | st.text('{}[]":,0instace-dl ', max_size=60))
def test_any_interruption_message_is_parsed_or_reported_as_unknown(body: str) -> None:
    assert isinstance(parse_interruption_message(body), InterruptionMessage | UnknownMessage)


@given(
    generate_reordered_clusters(), st.lists(st.tuples(st.sampled_from("abx"), st.booleans()), max_size=4), st.randoms()
)
def test_interruption_messages_can_be_duplicated_and_reordered(
    pair: Case, names_and_kinds: list[tuple[str, bool]], chance: Case
) -> None:
    snapshot, reordered = pair
    notices = [
        InterruptionMessage(kind="spot_interrupted" if spot else "instance_stopped", instance_ids=(f"i-{name}",))
        for name, spot in names_and_kinds
    ]
    mixed = [*notices, *notices]
    chance.shuffle(mixed)
    assert decide_interruptions(ClusterState(snapshot), notices) == decide_interruptions(ClusterState(reordered), mixed)
    little = Little(snapshot)
    little.perform(decide_interruptions(ClusterState(snapshot), notices))
    assert decide_interruptions(ClusterState(little.build_snapshot()), notices) == ()
