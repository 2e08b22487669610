"""Hydration: adds the missing node class label to NodeClaims and Nodes of an older Karpenter.

The label identifies objects of Joiner.
"""

from shared.decide.lifecycle.reconcile_context import LifecycleContext, StepResult
from shared.model.core.labels import NODECLASS, REGISTERED
from shared.model.decisions.action import Kind, PatchMetadata
from shared.state.node_claim_state import NodeClaimState


def add_node_class_label(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:  # noqa: ARG001 - one signature for all steps
    """Add the missing label; to a Node only after its registration, which sets the Node's labels."""
    claim = claim_state.claim
    unlabeled_objects: list[tuple[Kind, str]] = [] if claim.meta.get_label(NODECLASS) else [("NodeClaim", claim.name)]
    nodes = (node for node in claim_state.nodes if node.meta.get_label(REGISTERED) == "true")
    unlabeled_objects += [("Node", node.name) for node in nodes if not node.meta.get_label(NODECLASS)]
    label = ((NODECLASS, claim.node_class.name),)
    message = "the NodeClaim is older than the label"
    return StepResult(
        claim=claim,
        after=tuple(
            PatchMetadata(kind=kind, name=name, labels=label, message=message) for kind, name in unlabeled_objects
        ),
    )
