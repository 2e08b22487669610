"""Whether a node is what was bought: one that has less of a resource than its type is said to have is told so."""

from typing import Final

import msgspec

from shared.lifecycle.events import about
from shared.lifecycle.machines import Change, Machine, View
from shared.model.conditions import with_condition
from shared.model.nodes import Node, NodeClaim
from shared.model.objects import condition, is_true

ENOUGH_PERCENT: Final = 90
CONSISTENT: Final = "ConsistentStateFound"


def check(machine: Machine, view: View) -> Change:
    """Compare the capacity of an initialized node with its claim's, as far as the claim asked for it."""
    claim = machine.claim
    if len(machine.nodes) != 1 or not claim.provider_id or not is_true(claim.conditions, "Initialized"):
        return Change(claim=claim)
    lacks = _lack(claim, machine.nodes[0])
    found = ("False", "ConsistencyCheckFailed", lacks) if lacks else ("True", "", "")
    known = condition(claim.conditions, CONSISTENT)
    some = with_condition(claim.conditions, CONSISTENT, *found, view.now, claim.meta.generation)
    is_news = lacks and (known is None or known.message != lacks)
    said = about("NodeClaim", claim.meta, "FailedConsistencyCheck", lacks, view.now, type_="Warning")
    return Change(claim=msgspec.structs.replace(claim, conditions=some), after=(said,) if is_news else ())


def _lack(claim: NodeClaim, node: Node) -> str:
    for name in claim.requests.names():
        expected, there = claim.capacity[name], node.capacity[name]
        if expected > 0 and there * 100 < expected * ENOUGH_PERCENT:
            percent = there * 100 // expected
            return f"expected {name} of the instance type's capacity, node {node.name} has {percent} % of it"
    return ""
