"""Claims and Nodes that an older Karpenter made lack the label of their node class, by which they are known as ours."""

from shared.lifecycle.machines import Change, Machine, View
from shared.model.action import Kind, PatchMetadata
from shared.model.labels import NODECLASS, REGISTERED


def hydrate(machine: Machine, view: View) -> Change:  # noqa: ARG001 - one signature for all steps
    """Write the label where it is missing; a Node gets its labels when it is registered, so only later."""
    claim = machine.claim
    poor: list[tuple[Kind, str]] = [] if claim.meta.label(NODECLASS) else [("NodeClaim", claim.name)]
    nodes = (node for node in machine.nodes if node.meta.label(REGISTERED) == "true")
    poor += [("Node", node.name) for node in nodes if not node.meta.label(NODECLASS)]
    label = ((NODECLASS, claim.node_class.name),)
    why = "it was made before there was that label"
    return Change(
        claim=claim, after=tuple(PatchMetadata(kind=kind, name=name, labels=label, why=why) for kind, name in poor)
    )
