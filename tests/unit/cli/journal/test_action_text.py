"""The text of each action in the journal: what it changed, and why; and which actions are about the same subject."""

from datetime import timedelta
from typing import Any, get_args

import msgspec
import pytest

from cli.journal.action_text import build_action_key, describe_action
from shared.model.core.taints import Taint
from shared.model.decisions import action as actions
from shared.model.decisions.action import Action

POD: dict[str, Any] = {"namespace": "shop", "name": "cart", "uid": "u"}
WHY: dict[str, Any] = {"message": "why"}

CASES: list[tuple[Action, str, str]] = [
    (actions.DeleteObject(kind="NodeClaim", name="c", **WHY), "NodeClaim c deleted", "why"),
    (actions.PatchStatus(kind="NodeClaim", name="c", status="{}", **WHY), "NodeClaim c status updated", "why"),
    (
        actions.PatchMetadata(kind="NodeClaim", name="c", labels=(("a", "1"),), removed_labels=("b",), **WHY),
        "NodeClaim c metadata updated",
        "a, b: why",
    ),
    (
        actions.PatchMetadata(kind="NodeClaim", name="c", finalizers=("x",), **WHY),
        "NodeClaim c finalizers set",
        "why",
    ),
    (
        actions.PatchMetadata(kind="NodeClaim", name="c", finalizers=(), **WHY),
        "NodeClaim c finalizers removed",
        "why",
    ),
    (
        actions.TaintNode(
            name="n", resource_version="1", taints=(Taint(key="karpenter.sh/disrupted", effect="NoSchedule"),), **WHY
        ),
        "Node n tainted: karpenter.sh/disrupted",
        "why",
    ),
    (actions.TaintNode(name="n", resource_version="1", taints=(), **WHY), "Node n taints removed", "why"),
    (actions.FollowUp(function="disrupt", after=timedelta(minutes=2), **WHY), "disrupt invoked in 2m", "why"),
    (actions.TerminateInstances(instance_ids=("i-1", "i-2"), **WHY), "i-1, i-2 terminated", "why"),
    (actions.TagInstance(instance_id="i-1", tags=(("Name", "n"),), **WHY), "i-1 tagged", "Name: why"),
    (actions.DeleteLaunchTemplate(name="t", **WHY), "launch template t deleted", "why"),
    (actions.EvictPod(**POD, node="n", **WHY), "Pod shop/cart evicted from n", "why"),
    (
        actions.DeletePod(**POD, node="n", grace_seconds=30, **WHY),
        "Pod shop/cart deleted on n",
        "why; grace period 30s",
    ),
    (actions.NominatePod(**POD, node="n", **WHY), "Pod shop/cart nominated for n", "why"),
    (
        actions.SetDeletionCost(**POD, resource_version="1", node="n", cost=-5, **WHY),
        "deletion cost of Pod shop/cart on n set to -5",
        "why",
    ),
    (
        actions.SetDeletionCost(**POD, resource_version="1", node="n", cost=None, **WHY),
        "deletion cost of Pod shop/cart on n removed",
        "why",
    ),
    (
        actions.RestartDeployment(namespace="shop", name="cart", resource_version="1", restart="r", **WHY),
        "Deployment shop/cart restarted",
        "why",
    ),
    (
        actions.ScaleWorkload(
            kind="Deployment", namespace="shop", name="cart", resource_version="1", replicas=0, memory=None, **WHY
        ),
        "Deployment shop/cart scaled to 0",
        "why",
    ),
    (
        actions.ScaleWorkload(
            kind="StatefulSet", namespace="shop", name="cart", resource_version="1", replicas=None, memory="", **WHY
        ),
        "StatefulSet shop/cart kept at its replicas",
        "why",
    ),
    (
        actions.RegisterNode(
            name="n", resource_version="1", taints=(), labels=(), annotations=(), finalizers=(), owners=(), **WHY
        ),
        "Node n registered",
        "why",
    ),
]


@pytest.mark.parametrize(("action", "expected_effect", "expected_reason"), CASES)
def test_text_names_the_subject_the_effect_and_the_reason(
    action: Action, expected_effect: str, expected_reason: str
) -> None:
    assert describe_action(action) == (expected_effect, expected_reason)


@pytest.mark.parametrize("action", [case[0] for case in CASES])
def test_actions_with_other_messages_are_about_the_same_subject_and_those_with_other_names_are_not(
    action: Action,
) -> None:
    key = build_action_key(action)
    if not isinstance(action, actions.TerminateInstances):  # its message stands for all instances of one decision
        assert build_action_key(msgspec.structs.replace(action, message="another reason")) == key
    renamed_field = next((name for name in ("name", "instance_id", "function", "message") if hasattr(action, name)), "")
    other_name = "lifecycle" if renamed_field == "function" else "other"
    assert build_action_key(msgspec.structs.replace(action, **{renamed_field: other_name})) != key


def test_every_kind_of_action_has_a_case_except_those_that_contain_whole_objects() -> None:
    kinds_with_objects = {
        actions.CreateNodeClaim,
        actions.LaunchInstances,
        actions.MarkUnavailable,
        actions.PublishEvent,
        actions.RecordOfferingEvents,
    }
    assert {type(case[0]) for case in CASES} | kinds_with_objects == set(get_args(Action))
