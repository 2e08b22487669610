"""Which interruption messages are received again."""

import pytest

from shared.apply.executor import LEASE_LOST_MESSAGE
from shared.decide.lifecycle.interruption.interruption import build_annotation_retries, find_unsettled_messages
from shared.model.decisions.action import Action, DeleteObject, FollowUp, PatchMetadata, PublishEvent, TaintNode
from shared.model.decisions.action_outcome import OUT_OF_TIME_MESSAGE, Outcome, Result
from shared.model.decisions.interruption_message import InterruptionMessage, UnknownMessage
from tests.support.lifecycle_cases import NOW, make_claim, make_cluster, make_node

CLUSTER = make_cluster(node_claims=(make_claim(), make_claim("b")), nodes=(make_node(), make_node("b")))
PARSED = (
    UnknownMessage(reason="?"),
    InterruptionMessage(kind="spot_interrupted", instance_ids=("i-a",)),
    InterruptionMessage(kind="spot_interrupted", instance_ids=("i-b",)),
    InterruptionMessage(kind="scheduled_change", instance_ids=("i-a", "i-b")),
)
DELETION = DeleteObject(kind="NodeClaim", name="a", uid="uid-a", message="spot_interrupted")
TAINT = TaintNode(name="node-b", resource_version="8", taints=(), annotations=(("end", "soon"),), message="")
EVENT = PublishEvent(kind="NodeClaim", name="a", reason="SpotInterrupted", message="", at=NOW)


@pytest.mark.parametrize(
    ("action", "result", "message", "expected_messages"),
    [
        (DELETION, "failed", "Unreachable: down", (1, 3)),
        (DELETION, "skipped", OUT_OF_TIME_MESSAGE, (1, 3)),
        (TAINT, "failed", "Throttled", (2, 3)),
        (DELETION, "skipped", "NotFound: a", ()),
        (DELETION, "skipped", LEASE_LOST_MESSAGE, ()),
        (DELETION, "done", "", ()),
        (EVENT, "failed", "Unreachable: down", ()),
        (EVENT, "skipped", OUT_OF_TIME_MESSAGE, ()),
    ],
)
def test_interruption_message_is_received_again_when_its_actions_failed(
    action: Action, result: Result, message: str, expected_messages: tuple[int, ...]
) -> None:
    outcomes = [Outcome(action=action, result=result, message=message)]
    assert find_unsettled_messages(PARSED, outcomes, CLUSTER) == expected_messages


def test_reclaim_time_annotation_is_patched_after_a_taint_conflict() -> None:
    bare = TaintNode(name="node-a", resource_version="8", taints=(), message="")
    wake = FollowUp(function="lifecycle", after=NOW - NOW, message="")
    outcomes = [
        Outcome(action=action, result="skipped", message="Conflict: x") for action in (TAINT, bare, DELETION, wake)
    ]
    assert build_annotation_retries([*outcomes, Outcome(action=TAINT, result="done")]) == (
        PatchMetadata(kind="Node", name="node-b", annotations=(("end", "soon"),), message=""),
    )
