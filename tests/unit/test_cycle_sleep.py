"""Provisioning with nothing to do asks the API server for little, and says so."""

import msgspec

from shared.cycle import provision
from shared.ports import World
from tests.unit.snapshot_world import Lists, a_pod, named, world

GOING = {"name": "n", "deletionTimestamp": "2026-11-21T08:00:00Z"}
FEW = ["Pod", "Node", "NodeClaim", "EC2NodeClass"]


def told(kube: Lists) -> tuple[World, list[str]]:
    lines: list[str] = []
    return msgspec.structs.replace(world(kube), emit=lines.append), lines


def test_with_nothing_to_do_it_looks_at_pods_without_a_node_and_machines() -> None:
    kube = Lists({"Pod": [a_pod("a")], "Node": [named("n")]})
    awake, lines = told(kube)
    report = provision(awake, "schedule")
    assert kube.asked == FEW
    assert kube.selectors["Pod"].startswith("spec.nodeName=,")
    assert report.outcomes == ()
    assert report.counts == {"PendingPods": 0.0, "PlannedNodes": 0.0, "UnschedulablePods": 0.0}
    assert any('"PendingPods"' in line for line in lines)


def test_with_a_node_that_goes_it_looks_at_everything() -> None:
    kube = Lists({"Node": [{"metadata": GOING}]})
    provision(told(kube)[0], "schedule")
    assert len(kube.asked) > len(FEW) + 12
    assert kube.selectors["Pod"] == "status.phase!=Succeeded,status.phase!=Failed"
