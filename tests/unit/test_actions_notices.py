"""Which notices come again."""

import pytest

from shared.actions.apply import LOST, UNDONE, Outcome, Result
from shared.actions.notices import insisting, unsettled
from shared.lifecycle.notices import Notice, Unknown
from shared.model.action import Action, DeleteObject, FollowUp, PatchMetadata, PublishEvent, TaintNode
from tests.unit.lifecycle_cases import NOW, claim, cluster, node

WORLD = cluster(node_claims=(claim(), claim("b")), nodes=(node(), node("b")))
PARSED = (
    Unknown(reason="?"),
    Notice(kind="spot_interrupted", instance_ids=("i-a",)),
    Notice(kind="spot_interrupted", instance_ids=("i-b",)),
    Notice(kind="scheduled_change", instance_ids=("i-a", "i-b")),
)
GONE = DeleteObject(kind="NodeClaim", name="a", uid="uid-a", why="spot_interrupted")
TAINT = TaintNode(name="node-b", resource_version="8", taints=(), annotations=(("end", "soon"),), why="")
SAID = PublishEvent(kind="NodeClaim", name="a", reason="SpotInterrupted", message="", at=NOW)


@pytest.mark.parametrize(
    ("action", "result", "message", "again"),
    [
        (GONE, "failed", "Unreachable: down", (1, 3)),
        (GONE, "skipped", UNDONE, (1, 3)),
        (TAINT, "failed", "Throttled", (2, 3)),
        (GONE, "skipped", "Gone: a", ()),
        (GONE, "skipped", LOST, ()),
        (GONE, "done", "", ()),
        (SAID, "failed", "Unreachable: down", ()),
        (SAID, "skipped", UNDONE, ()),
    ],
)
def test_a_notice_comes_again_if_its_machine_is_not_on_its_way(
    action: Action, result: Result, message: str, again: tuple[int, ...]
) -> None:
    outcomes = [Outcome(action=action, result=result, message=message)]
    assert unsettled(PARSED, outcomes, WORLD) == again


def test_the_end_is_noted_on_a_node_that_has_changed_meanwhile() -> None:
    bare = TaintNode(name="node-a", resource_version="8", taints=(), why="")
    wake = FollowUp(function="lifecycle", after=NOW - NOW, why="")
    some = [Outcome(action=one, result="skipped", message="Conflict: x") for one in (TAINT, bare, GONE, wake)]
    assert insisting([*some, Outcome(action=TAINT, result="done")]) == (
        PatchMetadata(kind="Node", name="node-b", annotations=(("end", "soon"),), why=""),
    )
