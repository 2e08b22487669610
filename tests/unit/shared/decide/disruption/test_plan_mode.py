"""In plan mode, nodes and NodePools get events about planned disruption, and no other object does."""

from shared.decide.disruption.events import describe_verdicts
from shared.decide.disruption.plan_mode import ENABLE_HINT, convert_to_planned, describe_planned
from shared.model.decisions.action import PublishEvent
from shared.model.decisions.disruption_verdict import BlockedVerdict, DisruptedVerdict, KeptVerdict, Verdict
from tests.support.command_cases import make_command_context
from tests.support.lifecycle_cases import filter_actions, make_claim, make_node

BLOCKED_VERDICT = BlockedVerdict(node="node-b", reason="Budget", message="none is allowed")
KEPT_VERDICT = KeptVerdict(node="node-c", reason="NotConsolidatable", message="it is not quiet yet")
DISRUPTED_VERDICT = DisruptedVerdict(node="node-a", reason="Empty", message="nobody needs it", price_usd_per_hour=0.1)


def format_events(*verdicts: Verdict) -> set[str]:
    scene = make_command_context((make_claim(), make_node()))
    actions = (*describe_verdicts(verdicts, verdicts, scene), *describe_planned(verdicts, scene))
    return {f"{event.kind}: {event.reason}: {event.message}" for event in filter_actions(PublishEvent, actions)}


def test_plan_mode_changes_only_verdicts_of_disrupted_nodes() -> None:
    blocked, planned, kept_verdict = convert_to_planned((BLOCKED_VERDICT, DISRUPTED_VERDICT, KEPT_VERDICT))
    assert (blocked, kept_verdict) == (BLOCKED_VERDICT, KEPT_VERDICT)
    assert (planned.verdict, planned.node) == ("kept", "node-a")
    assert planned.summary == f"Planned: would be disrupted, Empty: nobody needs it; {ENABLE_HINT}"


def test_planned_disruption_is_reported_on_the_node_node_claim_and_node_pool() -> None:
    words = f"DisruptionPlanned: Kept: would be disrupted, Empty: nobody needs it; {ENABLE_HINT}"
    assert format_events(*convert_to_planned((DISRUPTED_VERDICT,))) == {
        f"Node: {words}",
        f"NodeClaim: {words}",
        (
            "NodePool: DisruptionPlanned: 1 of its nodes would be disrupted, `joiner explain node "
            f"NAME` shows why; {ENABLE_HINT}"
        ),
    }


def test_node_pool_gets_no_planned_event_for_executed_kept_or_unmanaged_nodes() -> None:
    assert not any("Planned" in text for text in format_events(DISRUPTED_VERDICT, KEPT_VERDICT))
    assert not format_events(
        *convert_to_planned((DisruptedVerdict(node="node-z", reason="Empty", message="of nobody"),))
    )
