"""Pods stay until their new node is fit for use, while the machine below them lasts."""

from datetime import timedelta

import pytest

from shared.lifecycle.decide import decide
from shared.lifecycle.handover import ends_at
from shared.model import labels
from shared.model.action import EvictPod, FollowUp, PublishEvent
from shared.model.cluster import Cluster
from shared.model.pods import PodSpec
from shared.model.taints import Toleration
from shared.model.units import instant_text
from tests.unit.lifecycle_cases import (
    NOW,
    STAGES,
    Case,
    ago,
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

AWAITED = {"shop/cart": "new"}


def drained(
    seconds: float, *pods: Case, end: float | None = None, grace: float | None = None, **fields: Case
) -> Cluster:
    """Answer a world whose drain was announced so many seconds ago and whose machine ends in *end* seconds."""
    notes = {labels.ENDS_AT: instant_text(NOW + timedelta(seconds=end))} if end is not None else {}
    mine = claim(
        deleted=ago(seconds=seconds),
        conditions=(*true(*STAGES), unknown("Drained", "Draining", ago(seconds=seconds))),
        termination_grace_period=timedelta(seconds=grace) if grace is not None else None,
    )
    going = node(going=True, deleted=ago(seconds=seconds), annotations=notes, **fields)
    return cluster(node_claims=(mine,), nodes=(going,), pods=pods or (pod(),), instances=(instance(),))


def leaving(world: Cluster, awaited: Case = AWAITED) -> list[str]:
    return [one.name for one in of(EvictPod, decide(world, awaited=awaited))]


def test_a_pod_stays_until_its_new_node_is_fit_for_use() -> None:
    world = drained(30, pod("cart"), pod("other"))
    assert leaving(world) == ["other"]
    assert leaving(world, {}) == ["cart", "other"]


@pytest.mark.parametrize(("seconds", "leaves"), [(119, False), (120, True)])
@pytest.mark.parametrize("end", [None, 3600])
def test_a_new_node_that_does_not_come_is_waited_for_two_minutes(
    seconds: float,
    leaves: bool,  # noqa: FBT001
    end: float | None,
) -> None:
    assert bool(leaving(drained(seconds, end=end))) is leaves


@pytest.mark.parametrize(
    ("pods", "needs"),
    [
        ([pod()], 45),
        ([pod(grace_period=timedelta(seconds=60)), pod("other")], 75),
        ([pod(), pod("top", priority_class="system-cluster-critical", grace_period=timedelta(seconds=10))], 55),
        ([pod(), pod("agent", daemon=True, grace_period=timedelta(seconds=300))], 45),
        ([pod(), pod("done", phase="Succeeded", grace_period=timedelta(seconds=300))], 45),
        (
            [
                pod(),
                pod("tough", spec=PodSpec(tolerations=(Toleration(operator="Exists"),)), grace_period=timedelta(300)),
            ],
            45,
        ),
    ],
)
@pytest.mark.parametrize("given", ["end", "grace"])
def test_before_a_machine_ends_the_pods_of_each_tier_keep_their_grace_periods(
    pods: Case, needs: float, given: str
) -> None:
    late = {"end": needs} if given == "end" else {"grace": needs + 20}
    early = {key: value + 1 for key, value in late.items()}
    assert "cart" in leaving(drained(20, *pods, **late))
    assert "cart" not in leaving(drained(20, *pods, **early))


@pytest.mark.parametrize(("seconds", "leaves"), [(14, False), (15, True)])
def test_who_plans_has_a_moment_for_the_pods_of_a_machine_that_is_taken_back(
    seconds: float,
    leaves: bool,  # noqa: FBT001
) -> None:
    assert bool(leaving(drained(seconds, end=100), {})) is leaves
    assert leaving(drained(seconds), {}) == ["cart"]
    assert leaving(drained(seconds, pod("agent", daemon=True), end=100), {}) == ["agent"]


def test_on_a_node_that_does_not_run_nobody_waits() -> None:
    assert leaving(drained(30, ready=False)) == ["cart"]


def test_an_end_that_cannot_be_read_is_none() -> None:
    assert ends_at((node(annotations={labels.ENDS_AT: "soon"}), node("b"))) is None


def test_a_drain_that_waits_says_for_what_and_looks_again_soon() -> None:
    actions = decide(drained(90), awaited=AWAITED)
    words = "pod shop/cart waits until the node of new is fit for use"
    assert words in statuses(actions)["conditions"]["Drained"]["message"]
    said = [(one.kind, one.message) for one in of(PublishEvent, actions) if one.reason == "DisruptionWaitingReadiness"]
    assert said == [
        ("NodeClaim", f"1 pods stay until they have another node: {words}"),
        ("Node", f"1 pods stay until they have another node: {words}"),
    ]
    assert [one.after.total_seconds() for one in of(FollowUp, actions)] == [5]
