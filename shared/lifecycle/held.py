"""Deleted claims whose NodePools nobody can see.

Whoever deletes the definition of NodePools deletes them all, and the garbage collector of Kubernetes then deletes what
they own: every NodeClaim. An upgrade that went wrong is to cost no node. So a machine whose end nobody has begun waits
until the definition is back, and the NodePools with it that its pods may move to.
"""

from typing import Final

from shared.lifecycle.events import about
from shared.lifecycle.machines import Change, Machine, View
from shared.model.labels import DISRUPTED_TAINT
from shared.model.objects import condition

DEFINITION: Final = "nodepools.karpenter.sh"


def hold(machine: Machine, view: View) -> Change:
    """Let a deleting claim wait whose NodePool cannot be seen, unless its end has begun."""
    claim = machine.claim
    if not view.cluster.lacks(DEFINITION) or _has_begun(machine, view):
        return Change(claim=claim)
    words = f"{DEFINITION} is not served: nothing is ended until it is, apply the CustomResourceDefinitions"
    return Change(
        claim=claim,
        after=(about("NodeClaim", claim.meta, "FailedDraining", words, view.now, type_="Warning"),),
        waits=True,
    )


def _has_begun(machine: Machine, view: View) -> bool:
    """Whether it was tainted for its end, as an interruption does, was drained, or has lost its instance."""
    claim = machine.claim
    tainted = any(taint.key == DISRUPTED_TAINT for node in machine.nodes for taint in node.taints)
    gone = view.is_gone(claim.instance_id, machine.launched_at(view.now)) or view.is_ending(claim.instance_id)
    return tainted or (gone and bool(claim.provider_id)) or condition(claim.conditions, "Drained") is not None
