"""Nodes and claims are let go: tainted, deleted, and without our finalizer once nothing of theirs is left."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from shared.lifecycle.drain import drain, evictions
from shared.lifecycle.events import about
from shared.lifecycle.followups import SOONEST
from shared.lifecycle.launching import CLAIM_DELETED
from shared.lifecycle.machines import Change, Machine, View, is_held, is_ours
from shared.model.action import Action, DeleteObject, FollowUp, PatchMetadata, TaintNode
from shared.model.labels import DISRUPTED_TAINT, EXCLUDE_BALANCERS, TERMINATION_FINALIZER
from shared.model.nodes import Node, NodeClaim
from shared.model.pods import Pod
from shared.model.taints import DISRUPTED

FORCEFUL: Final = "Forceful Termination"


def let_go(machine: Machine) -> Change:
    """Take our finalizer off the Nodes, and once they are seen without it, off the claim."""
    held = machine.held_nodes()
    if not held:
        end = release(machine.claim, "its instance is gone")
        return Change(claim=machine.claim, after=(*node_deletions(machine), end), waits=True)
    going = tuple(release(node, "its instance is gone") for node in held if node.meta.deleted_at is not None)
    wake = FollowUp(function="lifecycle", after=SOONEST, why=f"the nodes of {machine.claim.name} are let go")
    return Change(claim=machine.claim, after=(*going, *node_deletions(machine), wake), waits=True)


def leave_node(node: Node, pods: Iterable[Pod], view: View) -> tuple[Action, ...]:
    """Take a Node of ours that has no claim as far as it can go now, if it is deleted or has lost its instance.

    Its instance, if it has one, is garbage.
    """
    instance_id = node.provider_id.rpartition("/")[2]
    gone = view.is_gone(instance_id, node.meta.created_at or view.now) or view.is_ending(instance_id)
    lost = gone and not node.is_ready()
    if is_ours(node) and lost and node.meta.deleted_at is None:
        return (DeleteObject(kind="Node", name=node.name, uid=node.meta.uid, why="its instance is gone"),)
    if node.meta.deleted_at is None or not is_held(node) or not is_ours(node):
        return ()
    if lost:
        return (release(node, "its instance is gone"),)
    wake = FollowUp(function="lifecycle", after=SOONEST, why=f"{node.name} is leaving")
    taints = tainting(node, f"{node.name} is deleted and has no claim")
    if taints:
        return (*taints, FollowUp(function="provision", after=timedelta(), why=f"{node.name} is leaving"), wake)
    plan = drain(pods, None, view.now, view.guards)
    if not plan.waiting:
        return (release(node, "it is drained and has no claim"),)
    said = about("Node", node.meta, "FailedDraining", plan.words(), view.now, type_="Warning")
    return (*evictions(plan.evicted, FORCEFUL), said, wake)


def release(owner: Node | NodeClaim, why: str) -> PatchMetadata:
    """Take our finalizer off."""
    others = tuple(one for one in owner.meta.finalizers if one != TERMINATION_FINALIZER)
    return PatchMetadata(
        kind="Node" if isinstance(owner, Node) else "NodeClaim",
        name=owner.name,
        resource_version=owner.meta.resource_version,
        finalizers=others,
        why=why,
    )


def tainting(node: Node, why: str) -> tuple[TaintNode, ...]:
    """Give it our taint, in the place of its like, and the label that load balancers heed; nothing if it has them."""
    taints = (*(taint for taint in node.taints if taint.key != DISRUPTED_TAINT), DISRUPTED)
    label = (EXCLUDE_BALANCERS, "karpenter")
    if sorted(taints) == sorted(node.taints) and label in node.meta.labels:
        return ()
    version = node.meta.resource_version
    return (TaintNode(name=node.name, resource_version=version, taints=taints, labels=(label,), why=why),)


def node_deletions(machine: Machine) -> tuple[DeleteObject, ...]:
    """Delete the Nodes of a machine that has joined, once."""
    if not machine.has_joined():
        return ()
    return tuple(
        DeleteObject(kind="Node", name=node.name, uid=node.meta.uid, why=CLAIM_DELETED)
        for node in machine.nodes
        if node.meta.deleted_at is None
    )
