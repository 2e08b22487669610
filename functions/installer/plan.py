"""What there is to do, given what exists: pure, so that a plan can be read before it is carried out.

Definitions that somebody else made, as those of a Karpenter installation, are used as they are and never written. All
other names are ours: what has one of them without our mark was applied by hand, and becomes ours. A second installation
of the same manifests does nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from functions.installer.compare import described, is_within, merge_patch
from functions.installer.manifests import (
    COLLECTIONS,
    DEFINITION,
    Manifest,
    digest_of,
    is_going,
    is_ours,
    name_of,
    objects_of,
    path_of,
    titled,
)
from shared.kube.compatibility import unusable

NEEDED: Final = ("ec2nodeclasses.karpenter.k8s.aws", "nodeclaims.karpenter.sh", "nodepools.karpenter.sh")
"""Definitions without which nothing goes; the others are of features that are off unless they are asked for."""
FINALIZERS: Final = ("karpenter.k8s.aws/termination", "karpenter.sh/termination")
"""Ours: nobody takes them off once we are gone."""
KEPT: Final = "Karpenter is at work: finalizers stay"
FIXED: Final = ("roleRef",)
"""What cannot be changed in an object: it is made anew."""


class Create(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """POST *body* to the collection *path*."""

    path: str
    body: Manifest


class Patch(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Merge-patch the object at *path*."""

    path: str
    body: Manifest


class Delete(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Delete the object at *path*, if it is still the one with *uid*."""

    path: str
    uid: str = ""


Step: TypeAlias = Create | Patch | Delete


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Steps in their order; what a person should know; and why nothing should be done at all, if that is so."""

    steps: tuple[Step, ...] = ()
    told: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What exists."""

    live: Mapping[str, Manifest]
    """Of what is installed, by path."""
    counts: Mapping[str, int] = {}
    """How many objects each of our definitions has, by its name; only removing asks."""
    held: tuple[tuple[str, Manifest], ...] = ()
    """Path and object of whatever may have a finalizer of ours; only removing asks."""
    has_keeper: bool = False
    """A Karpenter is at work, for which the same finalizers mean the same."""


def install(wanted: Iterable[Manifest], standing: Standing) -> Plan:
    """Plan to make the cluster have all that is *wanted*, in its order."""
    plan = Plan()
    for one in wanted:
        plan = _joined(plan, _installed(one, standing.live.get(path_of(one))))
    return Plan(refused=plan.refused, told=plan.told) if plan.refused else plan


def remove(wanted: Iterable[Manifest], standing: Standing, *, purge: bool) -> Plan:
    """Plan to take out what `install` made of *wanted*, last first, and our finalizers off whatever has them.

    They stay where a Karpenter goes on: without them it would end nodes before their pods have left. A definition that
    has objects stays, unless *purge*: its objects would go with it.
    """
    plan = Plan(told=(KEPT,)) if standing.has_keeper else _released(standing.held)
    for one in reversed(tuple(wanted)):
        live = standing.live.get(path_of(one))
        if live is not None:
            plan = _joined(plan, _removed(one, live, standing.counts.get(name_of(one), 0), purge=purge))
    return plan


def empty(*some: Iterable[tuple[str, Manifest]]) -> Plan:
    """Plan to end *some* objects, in their order; what is going already is not asked again."""
    found = ((path, one) for each in some for path, one in each)
    going = tuple(Delete(path=path, uid=one["metadata"]["uid"]) for path, one in found if not is_going(one))
    return Plan(steps=going)


def _installed(wanted: Manifest, live: Manifest | None) -> Plan:
    path = path_of(wanted)
    make = Create(path=COLLECTIONS[wanted["kind"]], body=wanted)
    if live is None:
        return Plan(steps=(make,), told=(f"{titled(wanted)} made",))
    if wanted["kind"] == DEFINITION and not is_ours(live):
        reasons = tuple(f"{titled(wanted)} is somebody else's, and {why}" for why in unusable(wanted, live))
        if reasons and name_of(wanted) in NEEDED:
            return Plan(refused=reasons)
        return Plan(told=reasons or (described(wanted, live),))
    if digest_of(live) == digest_of(wanted) and is_within(wanted, live):
        return Plan()
    if any(wanted.get(key) != live.get(key) for key in FIXED):
        gone = Delete(path=path, uid=live["metadata"]["uid"])
        return Plan(steps=(gone, make), told=(f"{titled(wanted)} made anew",))
    return Plan(
        steps=(Patch(path=path, body=merge_patch(live, wanted)),), told=(f"{titled(wanted)} brought up to date",)
    )


def _removed(wanted: Manifest, live: Manifest, count: int, *, purge: bool) -> Plan:
    if is_going(live):
        return Plan()
    if not is_ours(live):
        return Plan(told=(f"{titled(wanted)} is somebody else's and stays",))
    if count and not purge:
        return Plan(told=(f"{titled(wanted)} stays: it has {count} objects ({objects_of(wanted)})",))
    gone = Delete(path=path_of(wanted), uid=live["metadata"]["uid"])
    return Plan(steps=(gone,), told=(f"{titled(wanted)} removed",))


def _released(held: Iterable[tuple[str, Manifest]]) -> Plan:
    plan = Plan()
    for path, one in held:
        metadata = one["metadata"]
        finalizers = metadata.get("finalizers") or []
        left = [each for each in finalizers if each not in FINALIZERS]
        if left == finalizers:
            continue
        # With the version: a finalizer that somebody added since must not be lost.
        kept: dict[str, Any] = {"finalizers": left or None, "resourceVersion": metadata["resourceVersion"]}
        plan = _joined(plan, Plan(steps=(Patch(path=path, body={"metadata": kept}),), told=_orphaned(one)))
    return plan


def _orphaned(one: Manifest) -> tuple[str, ...]:
    """Say what goes on running once *one*, which is on its way out, is let go."""
    instance = (one.get("status") or {}).get("providerID", "")
    if not instance or not is_going(one):
        return ()
    return (f"NodeClaim {name_of(one)} was going, its instance may still run: {instance}",)


def _joined(one: Plan, other: Plan) -> Plan:
    return Plan(steps=one.steps + other.steps, told=one.told + other.told, refused=one.refused + other.refused)
