"""A node is opened with its places taken: pods are told, it is seen that they were, and only then others may come."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from shared.actions.apply import Outcome, apply
from shared.model.action import NominatePod, RegisterNode
from shared.model.taints import UNREGISTERED, Taint
from sim.faults import Call
from tests.unit.actions_world import Outside

TEAM = Taint(key="team", effect="NoSchedule")
NODE = "/api/v1/nodes/n"
STATUS = "/api/v1/namespaces/default/pods/{}/status"


def closed(outside: Outside, *pods: str) -> None:
    """A node that has joined and is still closed, and *pods* that wait for it."""
    outside.node()
    outside.api.patch("nodes", "n", {"spec": {"taints": [{"key": UNREGISTERED.key, "effect": UNREGISTERED.effect}]}})
    for name in pods:
        outside.api.create("pods", {"metadata": {"name": name, "namespace": "default"}, "spec": SPEC})


SPEC: dict[str, Any] = {"containers": [{"name": "main", "image": "x"}]}


def hint(outside: Outside, name: str, uid: str = "") -> NominatePod:
    uid = uid or outside.api.get("pods", name, "default")["metadata"]["uid"]
    return NominatePod(namespace="default", name=name, uid=uid, node="n")


def opening(outside: Outside, *hints: NominatePod, version: str = "", seen: tuple[Taint, ...] = ()) -> RegisterNode:
    return RegisterNode(
        name="n",
        resource_version=version or outside.api.get("nodes", "n")["metadata"]["resourceVersion"],
        taints=(),
        labels=(),
        annotations=(),
        finalizers=("karpenter.sh/termination",),
        owners=(),
        hints=hints,
        seen=seen,
    )


def performed(outside: Outside, action: RegisterNode, tap: Callable[[Call], None] | None = None) -> Outcome:
    [outcome] = apply((action,), outside.world(tap=tap))
    return outcome


def patched(outside: Outside) -> list[str]:
    """Answer what was written, in order."""
    return [call.detail for call in outside.calls if call.method == "patch" and call.when == "before"]


def nominated(outside: Outside, pod: str) -> str:
    return str(outside.api.get("pods", pod, "default")["status"].get("nominatedNodeName", ""))


def drop(outside: Outside, pod: str) -> None:
    outside.api.patch("pods", pod, {"status": {"nominatedNodeName": None}}, "default", "status")


def test_pods_are_told_first_and_each_once() -> None:
    outside = Outside()
    closed(outside, "a", "b")
    assert performed(outside, opening(outside, hint(outside, "a"), hint(outside, "b"))).result == "done"
    assert patched(outside) == [STATUS.format("a"), STATUS.format("b"), NODE]
    assert (nominated(outside, "a"), nominated(outside, "b")) == ("n", "n")


def test_who_was_told_already_is_not_told_again() -> None:
    outside = Outside()
    closed(outside, "a", "b")
    outside.api.patch("pods", "a", {"status": {"nominatedNodeName": "n"}}, "default", "status")
    performed(outside, opening(outside, hint(outside, "a"), hint(outside, "b")))
    assert patched(outside) == [STATUS.format("b"), NODE]


def test_a_hint_that_is_dropped_is_given_again_before_and_after() -> None:
    outside = Outside()
    closed(outside, "a", "b")
    left = [STATUS.format("b"), NODE]

    def tap(call: Call) -> None:
        if call.when == "after" and call.method == "patch" and call.detail in left:
            left.remove(call.detail)
            drop(outside, "a")

    assert performed(outside, opening(outside, hint(outside, "a"), hint(outside, "b")), tap).result == "done"
    a, b = STATUS.format("a"), STATUS.format("b")
    assert patched(outside) == [a, b, a, NODE, a]
    assert nominated(outside, "a") == "n"


def test_a_node_is_opened_though_hints_are_dropped_again_and_again() -> None:
    outside = Outside()
    closed(outside, "a")

    def tap(call: Call) -> None:
        if call.when == "after" and call.detail == STATUS.format("a"):
            drop(outside, "a")

    assert performed(outside, opening(outside, hint(outside, "a")), tap).result == "done"
    assert patched(outside) == [STATUS.format("a")] * 4 + [NODE, STATUS.format("a")]


def test_pods_that_have_a_node_or_are_gone_are_left_alone() -> None:
    outside = Outside()
    closed(outside, "elsewhere", "gone", "another")
    hints = [hint(outside, name) for name in ("elsewhere", "gone")]

    def tap(call: Call) -> None:
        if call.when == "after" and call.detail == STATUS.format("elsewhere"):
            outside.api.bind("default", "elsewhere", "other")
        if call.when == "before" and call.detail == STATUS.format("gone"):
            outside.api.delete("pods", "gone", "default", grace_period_seconds=0)

    action = opening(outside, *hints, hint(outside, "another", "of an older one"))
    assert performed(outside, action, tap).result == "done"
    assert [nominated(outside, name) for name in ("elsewhere", "another")] == ["", ""]
    assert patched(outside).count(STATUS.format("elsewhere")) == 1


def test_without_hints_a_node_is_opened_in_one_write() -> None:
    outside = Outside()
    closed(outside)
    performed(outside, opening(outside))
    assert [call.method for call in outside.calls if call.when == "before"] == ["patch"]


def test_what_was_decided_is_done_to_a_newer_version_of_the_node() -> None:
    outside = Outside()
    closed(outside)
    went, new = Taint(key="not-ready", effect="NoSchedule"), {"key": "came", "effect": "NoSchedule"}
    action = replace(opening(outside, seen=(UNREGISTERED, went)), taints=(went, TEAM))
    unregistered = {"key": UNREGISTERED.key, "effect": UNREGISTERED.effect}
    change = {"metadata": {"finalizers": ["somebody/holds"]}, "spec": {"taints": [unregistered, new]}}
    outside.api.patch("nodes", "n", change)
    assert performed(outside, action).result == "done"
    node = outside.api.get("nodes", "n")
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["came", "team"]
    assert node["metadata"]["finalizers"] == ["somebody/holds", "karpenter.sh/termination"]


@pytest.mark.parametrize("seen", [(), (UNREGISTERED,)], ids=["nobody said what was seen", "it is going"])
def test_a_newer_version_is_left_alone_if(seen: tuple[Taint, ...]) -> None:
    outside = Outside()
    closed(outside)
    action = opening(outside, seen=seen)
    outside.api.patch("nodes", "n", {"metadata": {"finalizers": ["somebody/holds"]}})
    if seen:
        outside.api.delete("nodes", "n")
    assert performed(outside, action).result == "skipped"
    assert outside.api.get("nodes", "n")["spec"]["taints"]


def test_a_node_that_is_gone_is_not_opened() -> None:
    outside = Outside()
    closed(outside)
    action = opening(outside, seen=(UNREGISTERED,))
    outside.api.delete("nodes", "n")
    assert performed(outside, action).result == "skipped"
