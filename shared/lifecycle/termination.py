"""The end of a machine: taint, drain, detach, terminate, let go. Each call does what can be done now.

Replacement comes first: with the taint, provisioning is woken to make room for the pods, and no pod is asked to leave
before the drain was announced (`Drained` Unknown) for as long as a drain lasts at least, and its new node is fit for
use, while there is time for that (`handover`). What is over is read from the world: an instance is gone when EC2 was
seen not to have it.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.lifecycle.drain import Drain, deletions, drain, evictions, next_forced
from shared.lifecycle.events import about, about_machine
from shared.lifecycle.farewell import FORCEFUL, let_go, node_deletions, release, tainting
from shared.lifecycle.followups import SOONEST, look_again, look_at
from shared.lifecycle.handover import held_back
from shared.lifecycle.launching import CLAIM_DELETED, leave_unlaunched
from shared.lifecycle.machines import Change, Machine, Step, View, follow
from shared.lifecycle.volumes import attached
from shared.model.action import Action, FollowUp, PatchMetadata, TerminateInstances
from shared.model.conditions import with_condition
from shared.model.labels import TERMINATION_FINALIZER, TERMINATION_TIMESTAMP
from shared.model.nodes import NodeClaim
from shared.model.objects import condition
from shared.model.units import instant_text, parse_instant

MINIMUM_DRAIN: Final = timedelta(seconds=5)


def leave(machine: Machine, view: View) -> Change:
    """Take a deleting claim as far as it can go now."""
    claim = machine.claim
    if TERMINATION_FINALIZER not in claim.meta.finalizers:
        return Change(claim=claim)
    if not claim.provider_id:
        blocked = leave_unlaunched(claim, view)
        return Change(claim=claim, after=(release(claim, "it has no instance"),) if blocked is None else blocked)
    gone = view.is_gone(claim.instance_id, machine.launched_at(view.now))
    if gone and not any(node.is_ready() for node in machine.held_nodes()):
        return let_go(machine)
    if not machine.nodes and view.may_hide_a_node(claim) and not gone:
        return _hidden(claim, view.now)
    draining: tuple[Step, ...] = (empty, detach) if machine.held_nodes() else ()
    change = follow((announce, *draining, terminate), machine, view)
    wake = look_again(_last_step(change.claim, view.now), view.now, f"{claim.name} is leaving")
    return msgspec.structs.replace(change, after=(*change.after, *wake))


def _hidden(claim: NodeClaim, now: datetime) -> Change:
    """Wait: there may be pods on a Node that cannot be read."""
    words = f"Node {claim.node_name} cannot be read: it is not drained and its instance is not ended".replace("  ", " ")
    return Change(claim=claim, after=(about("NodeClaim", claim.meta, "FailedDraining", words, now, type_="Warning"),))


def announce(machine: Machine, view: View) -> Change:
    """Write down when the termination grace period ends, and delete the Nodes, which our finalizer holds."""
    claim = machine.claim
    deadline = deadline_of(claim)
    after: tuple[Action, ...] = ()
    if deadline is not None and not claim.meta.annotation(TERMINATION_TIMESTAMP):
        text = instant_text(deadline)
        why = f"its termination grace period ends at {text}"
        note = ((TERMINATION_TIMESTAMP, text),)
        words = f"All pods will be deleted by {text}"
        said = about_machine(claim, machine.nodes, "TerminationGracePeriodExpiring", words, view.now, type_="Warning")
        after = (PatchMetadata(kind="NodeClaim", name=claim.name, annotations=note, why=why), *said)
    return Change(claim=claim, after=(*after, *node_deletions(machine)))


def empty(machine: Machine, view: View) -> Change:
    """Taint the Nodes, announce the drain, and ask the pods to leave once it was announced long enough."""
    claim, now = machine.claim, view.now
    drained = condition(claim.conditions, "Drained")
    if drained is not None and drained.status == "True":
        return Change(claim=claim)
    deadline = deadline_of(claim)
    since = drained.since if drained is not None else None
    held = held_back(machine, view, since, deadline)
    plan = drain(machine.pods, deadline, now, view.guards, held)
    taints = tuple(taint for node in machine.held_nodes() for taint in tainting(node, f"{claim.name} is leaving"))
    announced = not taints and since is not None and now - since >= MINIMUM_DRAIN
    unread = view.unread_pods(machine.nodes) if deadline is None or now <= deadline else ()
    if announced and not plan.waiting and not unread:
        return Change(claim=_mark(claim, now, "Drained", "True"))
    forced = deletions(plan.forced, deadline, now, reason_of(claim)) if deadline is not None else ()
    said = tuple(
        about("Pod", pod.meta, "Disrupted", "Deleted: the termination grace period of its node ends", now)
        for pod in plan.forced
    )
    return Change(
        claim=_mark(claim, now, "Drained", "Unknown", "Draining", plan.words()),
        before=(*taints, *forced, *(evictions(plan.evicted, reason_of(claim)) if announced else ())),
        after=(
            *said,
            *_patience(machine, held, now),
            *_drain_calls(machine, plan, view, tainted=bool(taints), announced=announced),
        ),
        waits=True,
    )


def detach(machine: Machine, view: View) -> Change:
    """Wait until the volumes of the pods that left are detached, but not past the deadline."""
    claim, now = machine.claim, view.now
    known = condition(claim.conditions, "VolumesDetached")
    if known is not None and known.status != "Unknown":
        return Change(claim=claim)
    names = attached(view.cluster, (node.name for node in machine.nodes), machine.pods, now)
    deadline = deadline_of(claim)
    if not names:
        return Change(claim=_mark(claim, now, "VolumesDetached", "True"))
    if deadline is not None and now > deadline:
        return Change(claim=_mark(claim, now, "VolumesDetached", "False", "TerminationGracePeriodElapsed"))
    words = "Waiting for volumes to be detached: " + ", ".join(names)
    said = tuple(about("Node", node.meta, "AwaitingVolumeDetachment", words, now) for node in machine.nodes)
    wake = look_at(deadline, now, f"{claim.name} waits for volumes no longer") if deadline is not None else ()
    marked = _mark(claim, now, "VolumesDetached", "Unknown", "AwaitingVolumeDetachment")
    return Change(claim=marked, after=(*said, *wake), waits=True)


def terminate(machine: Machine, view: View) -> Change:
    """End the instance, again and again until it is seen to end; then let the objects go."""
    claim = machine.claim
    if view.is_gone(claim.instance_id, machine.launched_at(view.now)):
        return let_go(machine)
    if view.instances is None:
        return Change(claim=claim, waits=True)
    end = TerminateInstances(instance_ids=(claim.instance_id,), why=CLAIM_DELETED)
    before = () if view.is_ending(claim.instance_id) else (end,)
    return Change(claim=_mark(claim, view.now, "InstanceTerminating", "True"), before=before, waits=True)


def deadline_of(claim: NodeClaim) -> datetime | None:
    """Answer when the termination grace period of a deleting claim ends; what its annotation says comes first."""
    try:
        return parse_instant(claim.meta.annotation(TERMINATION_TIMESTAMP))
    except ValueError:
        grace, deleted = claim.termination_grace_period, claim.meta.deleted_at
        return deleted + grace if grace is not None and deleted is not None else None


def reason_of(claim: NodeClaim) -> str:
    """Answer what its pods are told: why it is disrupted, if it was a decision."""
    known = condition(claim.conditions, "DisruptionReason")
    return known.reason if known is not None and known.status == "True" else FORCEFUL


def _patience(machine: Machine, held: Mapping[str, str], now: datetime) -> tuple[Action, ...]:
    """Say that pods wait for their new nodes, and look again soon."""
    if not held:
        return ()
    words = f"{len(held)} pods stay until they have another node: {held[min(held)]}"
    wake = FollowUp(function="lifecycle", after=SOONEST, why=f"pods of {machine.claim.name} wait for their new nodes")
    return (*about_machine(machine.claim, machine.nodes, "DisruptionWaitingReadiness", words, now), wake)


def _drain_calls(machine: Machine, plan: Drain, view: View, *, tainted: bool, announced: bool) -> tuple[Action, ...]:
    claim, now = machine.claim, view.now
    calls: list[Action] = []
    if tainted:
        calls.append(FollowUp(function="provision", after=timedelta(), why=f"{claim.name} is leaving"))
    if announced:
        unread = view.unread_pods(machine.nodes)
        words = plan.words() + (f"; cannot be read: {', '.join(unread)}" if unread else "")
        calls.extend(
            about("Node", node.meta, "FailedDraining", words, now, type_="Warning") for node in machine.held_nodes()
        )
    else:
        calls.append(FollowUp(function="lifecycle", after=SOONEST, why=f"{claim.name} may be drained"))
    deadline = deadline_of(claim)
    if deadline is not None:
        calls.extend(look_at(next_forced(plan.waiting, deadline), now, f"the time of {claim.name} is up"))
    return tuple(calls)


def _last_step(claim: NodeClaim, now: datetime) -> datetime:
    known = (condition(claim.conditions, name) for name in ("Drained", "InstanceTerminating", "VolumesDetached"))
    moved = [one.since for one in known if one is not None and one.since is not None]
    return max(moved, default=claim.meta.deleted_at or now)


def _mark(claim: NodeClaim, now: datetime, type_: str, status: str, reason: str = "", message: str = "") -> NodeClaim:
    some = with_condition(claim.conditions, type_, status, reason, message, now, claim.meta.generation)
    return msgspec.structs.replace(claim, conditions=some)
