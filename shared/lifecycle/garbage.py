"""Instances of ours that no claim knows. What is not seen is not garbage."""

from typing import Final

from shared.lifecycle.events import about
from shared.lifecycle.machines import ENDING, SETTLED, View, is_suspicious
from shared.lifecycle.tagging import NODE_CLAIM_TAG
from shared.model.action import Action, DeleteObject, TerminateInstances
from shared.model.ec2 import Instance
from shared.model.labels import LAUNCH_GROUP

NO_CLAIM: Final = "it has no claim"


def collect(view: View) -> tuple[Action, ...]:
    """Terminate orphans, and delete the Nodes that stand for them."""
    if is_suspicious(view.cluster):
        return _doubt(view)
    claimed = {claim.instance_id for claim in view.cluster.node_claims}
    launching = _launching_groups(view) | view.unread("launch-group")
    orphans = tuple(
        one
        for one in sorted((view.instances or {}).values(), key=lambda one: one.instance_id)
        if one.instance_id not in claimed and _is_orphan(one, launching, view) and not may_have_a_claim(one, view)
    )
    if not orphans:
        return ()
    ids = {one.instance_id for one in orphans}
    nodes = (node for node in view.cluster.nodes if node.provider_id.rpartition("/")[2] in ids)
    deletions = (
        DeleteObject(kind="Node", name=node.name, uid=node.meta.uid, why=NO_CLAIM)
        for node in sorted(nodes, key=lambda node: node.name)
        if node.meta.deleted_at is None
    )
    return (*deletions, TerminateInstances(instance_ids=tuple(sorted(ids)), why=NO_CLAIM))


def _is_orphan(instance: Instance, launching: frozenset[str], view: View) -> bool:
    old = view.now - instance.launched_at > SETTLED
    return old and instance.state not in ENDING and instance.tag(LAUNCH_GROUP) not in launching


def may_have_a_claim(instance: Instance, view: View) -> bool:
    """Whether a NodeClaim that cannot be read is, or may be, that of *instance*."""
    unread = view.unread("NodeClaim")
    owner, token = instance.tag(NODE_CLAIM_TAG), instance.tag(LAUNCH_GROUP)
    if not unread or owner:
        return owner in unread
    group = next((one for one in view.cluster.launch_groups if one.name == token), None)
    return group is None or bool(unread & set(group.claims))


def _launching_groups(view: View) -> frozenset[str]:
    """Answer the launch groups that have a claim which was not told its instance yet."""
    unlaunched = [claim for claim in view.cluster.node_claims if not claim.provider_id]
    labelled = {claim.meta.label(LAUNCH_GROUP) for claim in unlaunched} - {""}
    by_name = {claim.name: claim for claim in unlaunched}
    groups = view.cluster.launch_groups
    asked = {one.name for one in groups if any(one.is_for(by_name[name]) for name in by_name.keys() & set(one.claims))}
    return frozenset(labelled | asked)


def _doubt(view: View) -> tuple[Action, ...]:
    ready = (claim for claim in view.cluster.node_claims if claim.is_registered())
    claim = min(ready, key=lambda claim: claim.name, default=None)
    if claim is None:
        return ()
    words = "EC2 lists no instance of ours while nodes are Ready: the answer is not believed, nothing is collected"
    return (about("NodeClaim", claim.meta, "InstancesNotSeen", words, view.now, type_="Warning"),)
