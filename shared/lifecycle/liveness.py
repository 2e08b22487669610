"""Reasons for a living claim to go that are nobody's choice: it did not start, it is too old, its instance is gone."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from shared.lifecycle.events import about_machine
from shared.lifecycle.followups import SOONEST, look_at
from shared.lifecycle.machines import Change, Machine, View, is_held
from shared.model.action import Action, DeleteObject, FollowUp
from shared.model.nodes import NodeClaim
from shared.model.objects import condition, is_true

LAUNCH_TIMEOUT: Final = timedelta(minutes=5)
REGISTRATION_TIMEOUT: Final = timedelta(minutes=15)
_HALTED: Final = {
    "shutting-down": "instance_terminated",
    "stopped": "instance_stopped",
    "stopping": "instance_stopped",
    "terminated": "instance_terminated",
}

Cause: TypeAlias = Callable[[Machine, View], str]


def depart(machine: Machine, view: View) -> Change:
    """Delete the claim for the first cause that holds; its finalizer does the rest."""
    claim = machine.claim
    why = next((why for cause in CAUSES if (why := cause(machine, view))), "")
    if not why:
        return Change(claim=claim, after=(*_expiry_call(claim, view.now), *_deadline_calls(claim, view.now)))
    words = _WORDS[why]
    said = about_machine(claim, machine.nodes, "DisruptionTerminating", f"Deleting {claim.name}: {words}", view.now)
    actions: tuple[Action, ...] = (
        DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, why=why),
        *said,
        FollowUp(function="lifecycle", after=SOONEST, why=f"{claim.name} is deleted"),
    )
    return Change(claim=claim, after=actions)


def launch_timeout(machine: Machine, view: View) -> str:
    """Nothing was launched for it in time."""
    claim = machine.claim
    late = not is_true(claim.conditions, "Launched") and _waited(claim, "Launched", view.now) >= LAUNCH_TIMEOUT
    return "launch_timeout" if late and not claim.provider_id else ""


def registration_timeout(machine: Machine, view: View) -> str:
    """Its node did not join in time."""
    claim = machine.claim
    waiting = not is_true(claim.conditions, "Registered")
    late = waiting and _waited(claim, "Registered", view.now) >= REGISTRATION_TIMEOUT
    return "registration_timeout" if late and not view.may_hide_a_node(claim) else ""


def expired(machine: Machine, view: View) -> str:
    """It is as old as it may be, whatever runs on it."""
    due = _expiry(machine.claim)
    return "expired" if due is not None and due <= view.now else ""


def garbage_collected(machine: Machine, view: View) -> str:
    """Its instance was seen to be gone."""
    claim = machine.claim
    gone = view.is_gone(claim.instance_id, machine.launched_at(view.now)) and bool(claim.provider_id)
    return "garbage_collected" if gone and claim.is_registered() and _is_lost(machine, view) else ""


def halted(machine: Machine, view: View) -> str:
    """Its instance was seen to end or to stand still, and the notice that says so has not come."""
    instance = (view.instances or {}).get(machine.claim.instance_id)
    why = _HALTED.get(instance.state, "") if instance is not None else ""
    return why if why and _is_lost(machine, view) else ""


def node_deleted(machine: Machine, view: View) -> str:  # noqa: ARG001 - one signature for all causes
    """Somebody deleted its Node, which our finalizer holds."""
    return "node_deleted" if any(node.meta.deleted_at is not None and is_held(node) for node in machine.nodes) else ""


CAUSES: Final[tuple[Cause, ...]] = (
    launch_timeout,
    registration_timeout,
    expired,
    garbage_collected,
    halted,
    node_deleted,
)
_WORDS: Final = {
    "launch_timeout": "no instance was launched within 5 minutes",
    "registration_timeout": "no node joined within 15 minutes",
    "expired": "it has reached its expireAfter",
    "garbage_collected": "its instance is gone",
    "instance_stopped": "its instance is stopped",
    "instance_terminated": "its instance is terminated",
    "node_deleted": "its node was deleted",
}


def _is_lost(machine: Machine, view: View) -> bool:
    """Whether no Node of it is Ready, as far as they can be read."""
    return not any(node.is_ready() for node in machine.nodes) and not view.may_hide_a_node(machine.claim)


def _waited(claim: NodeClaim, type_: str, now: datetime) -> timedelta:
    known = condition(claim.conditions, type_)
    return now - ((known.since if known is not None else None) or claim.meta.created_at or now)


def _deadline_calls(claim: NodeClaim, now: datetime) -> Iterator[FollowUp]:
    """Wake the lifecycle at the moment at which the claim is given up, if it is not launched or not joined by then."""
    for type_, patience in (("Launched", LAUNCH_TIMEOUT), ("Registered", REGISTRATION_TIMEOUT)):
        if not is_true(claim.conditions, type_):
            due = now + patience - _waited(claim, type_, now)
            yield from look_at(due, now, f"{claim.name} is given up unless it is {type_.lower()}")


def _expiry(claim: NodeClaim) -> datetime | None:
    created = claim.meta.created_at
    return created + claim.expire_after if created is not None and claim.expire_after is not None else None


def _expiry_call(claim: NodeClaim, now: datetime) -> tuple[FollowUp, ...]:
    due = _expiry(claim)
    return look_at(due, now, f"{claim.name} expires") if due is not None else ()
