"""What would go is told of nodes and NodePools, and of nothing else."""

from shared.disruption.candidates import Blocked
from shared.disruption.events import describe_verdicts
from shared.disruption.planned import LET, as_planned, describe_planned
from shared.disruption.verdicts import Disrupted, Kept, Verdict
from shared.model.action import PublishEvent
from tests.unit.command_cases import seen
from tests.unit.lifecycle_cases import claim, node, of

BLOCKED = Blocked(node="node-b", reason="Budget", message="none is allowed")
KEPT = Kept(node="node-c", reason="NotConsolidatable", message="it is not quiet yet")
GOING = Disrupted(node="node-a", reason="Empty", message="nobody needs it", price_usd_per_hour=0.1)


def events(*verdicts: Verdict) -> set[str]:
    scene = seen((claim(), node()))
    told = (*describe_verdicts(verdicts, verdicts, scene), *describe_planned(verdicts, scene))
    return {f"{one.kind}: {one.reason}: {one.message}" for one in of(PublishEvent, told)}


def test_only_what_would_go_is_said_otherwise() -> None:
    blocked, planned, kept = as_planned((BLOCKED, GOING, KEPT))
    assert (blocked, kept) == (BLOCKED, KEPT)
    assert (planned.verdict, planned.node) == ("kept", "node-a")
    assert planned.why == f"Planned: it would go, Empty: nobody needs it; {LET}"


def test_the_machine_and_its_pool_hear_of_it() -> None:
    words = f"DisruptionPlanned: Kept: it would go, Empty: nobody needs it; {LET}"
    assert events(*as_planned((GOING,))) == {
        f"Node: {words}",
        f"NodeClaim: {words}",
        f"NodePool: DisruptionPlanned: 1 of its nodes would go, `joiner explain node NAME` says why; {LET}",
    }


def test_a_pool_hears_nothing_of_nodes_that_go_or_stay_or_are_nobodys() -> None:
    assert not any("Planned" in one for one in events(GOING, KEPT))
    assert not events(*as_planned((Disrupted(node="node-z", reason="Empty", message="of nobody"),)))
