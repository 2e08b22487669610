"""Consolidation and nodes that run pods of gangs."""

import pytest
from msgspec.structs import replace

from shared.model.core.labels import GANG, GANG_SIZE
from shared.model.core.metadata import build_pairs
from tests.support.catalogues import make_node_pool
from tests.support.disruption_fleet import decide_disruption, get_verdict, make_fleet, make_node_with_pods, make_web_pod


@pytest.mark.parametrize(("has_gangs", "goes"), [(False, True), (True, False)], ids=["off", "on"])
def test_node_with_a_pod_of_a_gang_is_not_consolidated(*, has_gangs: bool, goes: bool) -> None:
    pod = make_web_pod("1", "1")
    worker = replace(pod, meta=replace(pod.meta, annotations=build_pairs({GANG: "train", GANG_SIZE: "2"})))
    nodes = [make_node_with_pods("a", worker, cpu=4)]
    nodes.append(make_node_with_pods("b", make_web_pod("2", "2"), cpu=8, pool="other"))
    pools = (make_node_pool(budgets=()), make_node_pool("other", consolidate_after=None))
    decision = decide_disruption(replace(make_fleet(*nodes, pools=pools), has_gangs=has_gangs))
    assert bool(decision.commands) is goes
    assert goes or get_verdict(decision, "a")[1:] == (
        "RunsGang",
        "pod shop/1 is in gang shop/train, which runs as a whole",
    )
