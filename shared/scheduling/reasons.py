"""Why a pod found no place: by NodePool, in order of weight, what excluded it first, in words with the remedy."""

from collections.abc import Iterable
from typing import Final

from shared.model.labels import CAPACITY_TYPE, WELL_KNOWN, ZONE
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import CPU, NODES, Axes, Vector, quantities_from, resources, smallest
from shared.model.taints import first_untolerated
from shared.scheduling.demand import PodClass
from shared.scheduling.pack import Packing
from shared.scheduling.placement import Reason
from shared.scheduling.relaxation import Stage
from shared.scheduling.shelf import Mask
from shared.scheduling.templates import LeftOut, Refusal, Template, by_weight

_TOO_MANY_CPUS: Final = 1_000_000 * 1000
"""Thousandths of a cpu: no machine has so many."""
_NEARNESS: Final[tuple[Reason, ...]] = (
    "NoNodePool",
    "TaintNotTolerated",
    "RequirementsNotMet",
    "VolumeNotUsable",
    "NoOffering",
    "NoInstanceTypeFits",
    "MinValuesNotMet",
    "LimitExceeded",
    "TopologyNotSatisfied",
)


def why(pods: PodClass, packing: Packing, left_out: tuple[LeftOut, ...], axes: Axes) -> Refusal:
    """Answer the reason of the pool that came nearest, and what every pool says."""
    refusals = {one.pool.name: one.refusal for one in left_out}
    refusals |= {one.pool.name: _refusal(one, pods, packing, axes) for one in packing.templates}
    pools = by_weight((*(one.pool for one in left_out), *(one.pool for one in packing.templates)))
    if not pools:
        return Refusal(reason="NoNodePool", message="there is no NodePool: create one")
    message = "; ".join(f"pool {pool.name}: {refusals[pool.name].message}" for pool in pools)
    nearest = max(refusals.values(), key=lambda one: _NEARNESS.index(one.reason))
    return Refusal(reason=nearest.reason, message=message)


def _refusal(template: Template, pods: PodClass, packing: Packing, axes: Axes) -> Refusal:
    """Answer why *template* opened no node for the pod, all its preferences given up."""
    stage = pods.stages[-1]
    taint = first_untolerated(template.pool.taints, stage.tolerations)
    if taint is not None:
        return Refusal(reason="TaintNotTolerated", message=f"needs toleration {taint}")
    return (
        _unlike(template, stage)
        or _nowhere(template, pods, stage)
        or _too_small(template, pods, stage, axes)
        or _limited(template, pods, stage, packing)
        or _too_few(template, pods, stage, packing)
        or _crowded(pods, packing)
    )


def _unlike(template: Template, stage: Stage) -> Refusal | None:
    wanted = stage.requirements
    if stage.is_contradictory:
        key = next(item.key for item in wanted if item.operator == "DoesNotExist")
        return Refusal(reason="RequirementsNotMet", message=f"its own requirements on {key} contradict each other")
    key = template.start.requirements.undefined(wanted, WELL_KNOWN)
    if key:
        remedy = "add it to spec.template.metadata.labels or spec.template.spec.requirements"
        message = f"does not define label {key}, which the pod requires ({_text(wanted[key])}): {remedy}"
        return Refusal(reason="RequirementsNotMet", message=message)
    key = template.start.requirements.conflict(wanted)
    if key:
        message = f"the pod requires {_text(wanted[key])}, the pool allows {_text(template.start.requirements[key])}"
        return Refusal(reason="RequirementsNotMet", message=message)
    return _untyped(template, wanted)


def _untyped(template: Template, wanted: Requirements) -> Refusal | None:
    """Answer which requirement leaves no instance type, or no offering."""
    joined = template.start.requirements & wanted
    if template.shelf.compatible(joined) & template.shelf.offered(joined):
        return None
    if template.shelf.compatible(joined):
        message = f"no instance type it allows can be bought{_where(joined)} now: allow more types, zones or spot"
        return Refusal(reason="NoOffering", message=message)
    failing = (item for item in wanted if not template.shelf.compatible(template.start.requirements & _only(item)))
    item = next(failing, None)
    what = _text(item) if item is not None else " and ".join(_text(one) for one in wanted)
    return Refusal(reason="RequirementsNotMet", message=f"no instance type it allows has {what}")


def _nowhere(template: Template, pods: PodClass, stage: Stage) -> Refusal | None:
    joined = template.narrow(template.start, stage.requirements)
    if joined is None or any(template.narrow(joined, one) is not None for one in pods.alternatives):
        return None
    if not pods.alternatives:
        return Refusal(reason="VolumeNotUsable", message="its volumes are in places that exclude each other")
    places = " or ".join(", ".join(_text(item) for item in one) for one in pods.alternatives)
    return Refusal(reason="VolumeNotUsable", message=f"its volumes are where it can make no node ({places})")


def _too_small(template: Template, pods: PodClass, stage: Stage, axes: Axes) -> Refusal | None:
    joined = template.narrow(template.start, stage.requirements)
    mask = 0 if joined is None else joined.mask
    if joined is None or _roomy(template, mask, pods.need):
        return None
    groups = [group for group in template.overheads if group.mask & mask]
    least = axes.vector(smallest(group.requests for group in groups))
    needed = resources(dict(zip(axes.names, pods.times(1, least), strict=True)))
    alone = {
        name: amount
        for name, amount in needed.amounts
        if not template.shelf.fitting(mask, axes.vector(resources({name: amount})))
    }
    written = quantities_from(resources(alone) if alone else needed)
    what = " and ".join(f"{amount} {name}" for name, amount in written.items() if alone or name != "pods")
    together = "" if len(alone) == 1 else " together"
    message = f"no instance type has {what}{together}{_where(joined.requirements)}{_meant(pods)}"
    return Refusal(reason="NoInstanceTypeFits", message=message)


def _roomy(template: Template, mask: Mask, need: Vector) -> Mask:
    found = 0
    for group in template.overheads:
        needed = tuple(one + other for one, other in zip(need, group.needs, strict=True))
        found |= template.shelf.fitting(mask & group.mask, needed)
    return found


def _limited(template: Template, pods: PodClass, stage: Stage, packing: Packing) -> Refusal | None:
    left = packing.limits.get(template.pool.name)
    joined = template.narrow(template.start, stage.requirements)
    if left is None or joined is None:
        return None
    if left.get(NODES, 1) < 1:
        message = "its limit of nodes is reached: raise spec.limits.nodes"
        return Refusal(reason="LimitExceeded", message=message)
    rest = {name: amount for name, amount in left.items() if name != NODES}
    if _roomy(template, joined.mask & template.shelf.within(rest), pods.need):
        return None
    tight = [
        name
        for name, amount in sorted(rest.items())
        if not _roomy(template, joined.mask & template.shelf.within({name: amount}), pods.need)
    ] or sorted(rest)
    written = quantities_from(resources({name: max(0, rest[name]) for name in tight}))
    what = ", ".join(f"{name} ({written.get(name, '0')} left)" for name in tight)
    message = f"every instance type that fits would exceed its limit of {what}: raise spec.limits"
    return Refusal(reason="LimitExceeded", message=message)


def _too_few(template: Template, pods: PodClass, stage: Stage, packing: Packing) -> Refusal | None:
    joined = template.narrow(template.start, stage.requirements)
    if joined is None or packing.options.min_values_policy != "Strict":
        return None
    if template.meets_minima(joined, _roomy(template, joined.mask, pods.need)):
        return None
    keys = ", ".join(f"{item.key} ({item.min_values})" for item in joined.minima)
    message = f"the instance types that fit are less various than minValues asks of {keys}: lower minValues"
    return Refusal(reason="MinValuesNotMet", message=message)


def _crowded(pods: PodClass, packing: Packing) -> Refusal:
    rules = [str(packing.topology.groups[number].rule) for number in pods.bound[-1]]
    what = " and ".join(sorted(set(rules)))
    if what:
        message = f"no domain it can make satisfies {what}: relax the constraint or allow more domains"
        return Refusal(reason="TopologyNotSatisfied", message=message)
    message = "its host ports, volumes and limits leave no room together: see the pod's host ports and spec.limits"
    return Refusal(reason="NoInstanceTypeFits", message=message)


def _meant(pods: PodClass) -> str:
    if pods.spec.requests[CPU] < _TOO_MANY_CPUS:
        return ""
    return ": did you write M (millions) where m (thousandths of a cpu) was meant?"


def _where(wanted: Requirements) -> str:
    said = [wanted[key] for key in (ZONE, CAPACITY_TYPE) if key in wanted and not wanted[key].complement]
    words = [", ".join(sorted(item.values)) for item in said if item.values]
    return "".join(f" {word} {values}" for word, values in zip(("in", "as"), words, strict=False))


def _text(item: Requirement) -> str:
    bounds: Iterable[tuple[str, int | None]] = ((">=", item.gte), ("<=", item.lte))
    numbers = " and ".join(f"{sign} {bound}" for sign, bound in bounds if bound is not None)
    if numbers:
        return f"{item.key} {numbers}"
    values = f" [{', '.join(sorted(item.values))}]" if item.values else ""
    return f"{item.key} {item.operator}{values}"


def _only(item: Requirement) -> Requirements:
    return Requirements(items=(item,))
