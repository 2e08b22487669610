"""The interrupt cycle: what it requests first."""

from msgspec.structs import replace

from shared.apply.independent_actions import group_independent_actions
from shared.cycles.interrupt import handle_interruptions
from shared.cycles.setup.time_limit import Deadline
from shared.model.decisions.action import MarkUnavailable, TaintNode
from shared.model.decisions.decision_requests import PerformActions
from shared.model.decisions.interruption_message import InterruptionMessage
from shared.report.journal.decision_record import build_inputs
from shared.settings import Settings
from tests.support.lifecycle_cases import NOW, make_claim, make_cluster, make_instance, make_node


def test_taints_of_all_interrupted_nodes_are_parallel_and_their_offerings_are_recorded_together() -> None:
    names = ("a", "b", "c")
    cluster = make_cluster(
        node_claims=tuple(make_claim(name) for name in names),
        nodes=tuple(make_node(name) for name in names),
        instances=tuple(make_instance(name) for name in names),
    )
    messages = tuple(
        InterruptionMessage(kind="spot_interrupted", instance_ids=(f"i-{name}",), at=NOW) for name in names
    )
    inputs = replace(build_inputs(Settings(cluster_name="demo", region="us-east-1")), messages=messages)
    request = next(handle_interruptions(cluster, inputs, Deadline()))
    assert isinstance(request, PerformActions)
    assert [type(action) for action in request.actions] == [TaintNode] * 3 + [MarkUnavailable] * 3
    assert group_independent_actions(request.actions) == (((0,), (1,), (2,)), ((3, 4, 5),))
