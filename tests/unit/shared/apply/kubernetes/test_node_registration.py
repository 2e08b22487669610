"""A node is opened with its places taken: pods are told, it is seen that they were, and only then others may come."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from shared.apply.executor import apply_actions
from shared.model.core.taints import UNREGISTERED, Taint
from shared.model.decisions.action import NominatePod, RegisterNode
from shared.model.decisions.action_outcome import Outcome
from sim.fault_tap import PortCall
from tests.support.actions_world import Outside

TEAM = Taint(key="team", effect="NoSchedule")
NODE = "/api/v1/nodes/n"
STATUS = "/api/v1/namespaces/default/pods/{}/status"


def create_closed_node(outside: Outside, *pods: str) -> None:
    """Create a node that has joined and is still closed, and *pods* that wait for it."""
    outside.create_node()
    outside.api.patch("nodes", "n", {"spec": {"taints": [{"key": UNREGISTERED.key, "effect": UNREGISTERED.effect}]}})
    for name in pods:
        outside.api.create("pods", {"metadata": {"name": name, "namespace": "default"}, "spec": SPEC})


SPEC: dict[str, Any] = {"containers": [{"name": "main", "image": "x"}]}


def make_hint(outside: Outside, name: str, uid: str = "") -> NominatePod:
    uid = uid or outside.api.get("pods", name, "default")["metadata"]["uid"]
    return NominatePod(namespace="default", name=name, uid=uid, node="n")


def make_registration(
    outside: Outside, *hints: NominatePod, version: str = "", observed_taints: tuple[Taint, ...] = ()
) -> RegisterNode:
    return RegisterNode(
        name="n",
        resource_version=version or outside.api.get("nodes", "n")["metadata"]["resourceVersion"],
        taints=(),
        labels=(),
        annotations=(),
        finalizers=("karpenter.sh/termination",),
        owners=(),
        nominations=hints,
        observed_taints=observed_taints,
    )


def apply_registration(
    outside: Outside, action: RegisterNode, tap: Callable[[PortCall], None] | None = None
) -> Outcome:
    [outcome] = apply_actions((action,), outside.build_world(tap=tap))
    return outcome


def list_patches(outside: Outside) -> list[str]:
    """Return what was written, in order."""
    return [call.detail for call in outside.calls if call.method == "patch" and call.phase == "before"]


def get_nominated_node(outside: Outside, pod: str) -> str:
    return str(outside.api.get("pods", pod, "default")["status"].get("nominatedNodeName", ""))


def drop_hint(outside: Outside, pod: str) -> None:
    outside.api.patch("pods", pod, {"status": {"nominatedNodeName": None}}, "default", "status")


def test_pods_are_nominated_once_each_before_the_node_is_registered() -> None:
    outside = Outside()
    create_closed_node(outside, "a", "b")
    assert (
        apply_registration(outside, make_registration(outside, make_hint(outside, "a"), make_hint(outside, "b"))).result
        == "done"
    )
    assert list_patches(outside) == [STATUS.format("a"), STATUS.format("b"), NODE]
    assert (get_nominated_node(outside, "a"), get_nominated_node(outside, "b")) == ("n", "n")


def test_pod_that_is_already_nominated_is_not_patched_again() -> None:
    outside = Outside()
    create_closed_node(outside, "a", "b")
    outside.api.patch("pods", "a", {"status": {"nominatedNodeName": "n"}}, "default", "status")
    apply_registration(outside, make_registration(outside, make_hint(outside, "a"), make_hint(outside, "b")))
    assert list_patches(outside) == [STATUS.format("b"), NODE]


def test_dropped_nomination_is_set_again_before_and_after_registration() -> None:
    outside = Outside()
    create_closed_node(outside, "a", "b")
    pending_writes = [STATUS.format("b"), NODE]

    def drop_after_patch(call: PortCall) -> None:
        if call.phase == "after" and call.method == "patch" and call.detail in pending_writes:
            pending_writes.remove(call.detail)
            drop_hint(outside, "a")

    assert (
        apply_registration(
            outside, make_registration(outside, make_hint(outside, "a"), make_hint(outside, "b")), drop_after_patch
        ).result
        == "done"
    )
    a, b = STATUS.format("a"), STATUS.format("b")
    assert list_patches(outside) == [a, b, a, NODE, a]
    assert get_nominated_node(outside, "a") == "n"


def test_node_is_registered_even_if_nominations_are_dropped_repeatedly() -> None:
    outside = Outside()
    create_closed_node(outside, "a")

    def drop_after_every_patch(call: PortCall) -> None:
        if call.phase == "after" and call.detail == STATUS.format("a"):
            drop_hint(outside, "a")

    assert (
        apply_registration(outside, make_registration(outside, make_hint(outside, "a")), drop_after_every_patch).result
        == "done"
    )
    assert list_patches(outside) == [STATUS.format("a")] * 4 + [NODE, STATUS.format("a")]


def test_bound_deleted_or_recreated_pods_are_not_nominated() -> None:
    outside = Outside()
    create_closed_node(outside, "elsewhere", "gone", "another")
    hints = [make_hint(outside, name) for name in ("elsewhere", "gone")]

    def bind_or_delete(call: PortCall) -> None:
        if call.phase == "after" and call.detail == STATUS.format("elsewhere"):
            outside.api.bind("default", "elsewhere", "other")
        if call.phase == "before" and call.detail == STATUS.format("gone"):
            outside.api.delete("pods", "gone", "default", grace_period_seconds=0)

    action = make_registration(outside, *hints, make_hint(outside, "another", "of an older one"))
    assert apply_registration(outside, action, bind_or_delete).result == "done"
    assert [get_nominated_node(outside, name) for name in ("elsewhere", "another")] == ["", ""]
    assert list_patches(outside).count(STATUS.format("elsewhere")) == 1


def test_node_without_nominations_is_registered_in_one_patch() -> None:
    outside = Outside()
    create_closed_node(outside)
    apply_registration(outside, make_registration(outside))
    assert [call.method for call in outside.calls if call.phase == "before"] == ["patch"]


def test_registration_is_merged_into_a_newer_version_of_the_node() -> None:
    outside = Outside()
    create_closed_node(outside)
    removed_taint, new = Taint(key="not-ready", effect="NoSchedule"), {"key": "came", "effect": "NoSchedule"}
    action = replace(
        make_registration(outside, observed_taints=(UNREGISTERED, removed_taint)), taints=(removed_taint, TEAM)
    )
    unregistered = {"key": UNREGISTERED.key, "effect": UNREGISTERED.effect}
    change = {"metadata": {"finalizers": ["somebody/holds"]}, "spec": {"taints": [unregistered, new]}}
    outside.api.patch("nodes", "n", change)
    assert apply_registration(outside, action).result == "done"
    node = outside.api.get("nodes", "n")
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["came", "team"]
    assert node["metadata"]["finalizers"] == ["somebody/holds", "karpenter.sh/termination"]


@pytest.mark.parametrize("observed_taints", [(), (UNREGISTERED,)], ids=["no observed taints", "node is being deleted"])
def test_newer_node_version_is_skipped_without_observed_taints_or_if_deleting(
    observed_taints: tuple[Taint, ...],
) -> None:
    outside = Outside()
    create_closed_node(outside)
    action = make_registration(outside, observed_taints=observed_taints)
    outside.api.patch("nodes", "n", {"metadata": {"finalizers": ["somebody/holds"]}})
    if observed_taints:
        outside.api.delete("nodes", "n")
    assert apply_registration(outside, action).result == "skipped"
    assert outside.api.get("nodes", "n")["spec"]["taints"]


def test_registration_of_a_deleted_node_is_skipped() -> None:
    outside = Outside()
    create_closed_node(outside)
    action = make_registration(outside, observed_taints=(UNREGISTERED,))
    outside.api.delete("nodes", "n")
    assert apply_registration(outside, action).result == "skipped"
