"""Deleting claims that have no provider id: was an instance started for them, or may one still come?

A launch group is written down before its CreateFleet is sent. While a claim's group is young, its instance is looked
for by the group's tag; what comes later still has no claim, and is garbage.
"""

from datetime import timedelta
from typing import Final

from shared.lifecycle.followups import SOONEST
from shared.lifecycle.garbage import may_have_a_claim
from shared.lifecycle.machines import ENDING, View
from shared.model.action import Action, FollowUp, TerminateInstances
from shared.model.cluster import LaunchGroup
from shared.model.labels import LAUNCH_GROUP
from shared.model.nodes import NodeClaim

PENDING_FOR: Final = timedelta(minutes=15)
CLAIM_DELETED: Final = "its claim is deleted"


def leave_unlaunched(claim: NodeClaim, view: View) -> tuple[Action, ...] | None:
    """Answer what has to be done before the claim may go; None: it may go now."""
    group = _group_of(claim, view)
    if group is None:
        return None
    if group.result is not None:
        position = group.claims.index(claim.name)
        started = group.result.instances[position : position + 1]
        if not started or view.is_gone(started[0].instance_id, group.created_at):
            return None
        return _end((started[0].instance_id,), view)
    if view.instances is None:
        return _wait(claim)
    loose = loose_instances(group.name, view)
    if not loose:
        return None
    return _wait(claim) if _heirs(group, view) else _end(loose, view)


def loose_instances(group: str, view: View) -> tuple[str, ...]:
    """Answer the running instances of a launch group that no claim has, sorted."""
    assigned = {claim.instance_id for claim in view.cluster.node_claims}
    some = (view.instances or {}).values()
    ours = (one for one in some if one.tag(LAUNCH_GROUP) == group and one.state not in ENDING)
    return tuple(
        sorted(one.instance_id for one in ours if not (one.instance_id in assigned or may_have_a_claim(one, view)))
    )


def _group_of(claim: NodeClaim, view: View) -> LaunchGroup | None:
    young = (
        group
        for group in view.cluster.launch_groups
        if group.is_for(claim) and view.now - group.created_at < PENDING_FOR
    )
    return max(young, key=lambda group: (group.created_at, group.name), default=None)


def _heirs(group: LaunchGroup, view: View) -> bool:
    """Whether a living claim may yet be told that one of the group's instances is its own."""
    return any(
        group.is_for(claim) and not claim.provider_id and not claim.is_deleting() for claim in view.cluster.node_claims
    )


def _wait(claim: NodeClaim) -> tuple[Action, ...]:
    return (FollowUp(function="lifecycle", after=SOONEST, why=f"the launch of {claim.name} is not settled"),)


def _end(instance_ids: tuple[str, ...], view: View) -> tuple[Action, ...]:
    wake = FollowUp(function="lifecycle", after=SOONEST, why="instances are ending")
    running = tuple(one for one in instance_ids if not view.is_ending(one))
    if view.instances is None or not running:
        return (wake,)
    return (TerminateInstances(instance_ids=running, why=CLAIM_DELETED), wake)
