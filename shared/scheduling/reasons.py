"""Why a pod found no place: by NodePool, in order of weight, what excluded it first, in words with the remedy."""

from collections.abc import Iterable, Mapping
from typing import Final

from shared.model.labels import CAPACITY_TYPE, WELL_KNOWN, ZONE
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import CPU, NODES, PODS, Axes, amount_text, resources, smallest
from shared.model.taints import first_untolerated
from shared.scheduling.crowds import told
from shared.scheduling.demand import PodClass
from shared.scheduling.pack import Packing
from shared.scheduling.placement import Reason
from shared.scheduling.relaxation import Stage
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
    return Refusal(reason=max(refusals.values(), key=_nearness).reason, message=message)


def _refusal(template: Template, pods: PodClass, packing: Packing, axes: Axes) -> Refusal:
    """Answer why *template* opened no node for the pod, all its preferences given up: the term that came nearest."""
    last = pods.stages[-1]
    some = (number for number, one in enumerate(pods.stages) if _is_last(one, last))
    return max((_of_stage(template, pods, number, packing, axes) for number in some), key=_nearness)


def _is_last(one: Stage, last: Stage) -> bool:
    """Whether nothing is preferred any more at stage *one*; there is one for each required term."""
    held = (one.affinity, one.anti_affinity, one.spread, one.tolerations)
    bare = (last.affinity, last.anti_affinity, last.spread, last.tolerations)
    return held == bare and one.requirements == one.strict


def _nearness(one: Refusal) -> int:
    return _NEARNESS.index(one.reason)


def _of_stage(template: Template, pods: PodClass, number: int, packing: Packing, axes: Axes) -> Refusal:
    stage = pods.stages[number]
    taint = first_untolerated(template.pool.taints, stage.tolerations)
    if taint is not None:
        return Refusal(reason="TaintNotTolerated", message=f"needs toleration {taint}")
    return (
        _unlike(template, stage)
        or _nowhere(template, pods, stage)
        or _too_small(template, pods, stage, axes)
        or _clashing(template, pods, stage)
        or _limited(template, pods, stage, packing)
        or _too_few(template, pods, stage, packing)
        or _crowded(pods.bound[number], packing)
    )


def _unlike(template: Template, stage: Stage) -> Refusal | None:
    wanted = stage.requirements
    if stage.is_contradictory:
        key = next(item.key for item in wanted if item.operator == "DoesNotExist")
        message = f"its nodeSelector and required node affinity contradict each other on {key}: correct one of them"
        return Refusal(reason="RequirementsNotMet", message=message)
    key = template.start.requirements.undefined(wanted, WELL_KNOWN)
    if key:
        remedy = f"{_meaning(key, template)}add it to spec.template.metadata.labels or spec.template.spec.requirements"
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
    if joined is None or template.holding(mask, pods.need):
        return None
    groups = [group for group in template.overheads if group.mask & mask]
    least = axes.vector(smallest(group.requests for group in groups))
    needed = resources(dict(zip(axes.names, pods.times(1, least), strict=True)))
    alone = {
        name: amount
        for name, amount in needed.amounts
        if not template.shelf.fitting(mask, axes.vector(resources({name: amount})))
    }
    written = alone or {name: amount for name, amount in needed.amounts if name != PODS}
    what = " and ".join(f"{amount_text(name, amount)} {name}" for name, amount in sorted(written.items()))
    together = "" if len(alone) == 1 else " together"
    message = f"no instance type has {what}{together}{_where(joined.requirements)}{_meant(pods)}"
    return Refusal(reason="NoInstanceTypeFits", message=message)


def _clashing(template: Template, pods: PodClass, stage: Stage) -> Refusal | None:
    joined = template.narrow(template.start, stage.requirements)
    if joined is None or template.holding(joined.mask, pods.need, pods.ports):
        return None
    ports = ", ".join(f"{one.port}/{one.protocol}" for one in pods.ports)
    message = f"DaemonSets take a host port of the pod's ({ports}) on every type that has room: choose another"
    return Refusal(reason="NoInstanceTypeFits", message=message)


def _limited(template: Template, pods: PodClass, stage: Stage, packing: Packing) -> Refusal | None:
    left = packing.limits.get(template.pool.name)
    joined = template.narrow(template.start, stage.requirements)
    if left is None or joined is None:
        return None
    if left.get(NODES, 1) < 1:
        message = "its limit of nodes is reached: raise spec.limits.nodes"
        return Refusal(reason="LimitExceeded", message=message)
    rest = _amounts(left)
    if template.holding(joined.mask & template.shelf.within(rest), pods.need):
        return None
    tight = [
        name
        for name, amount in sorted(rest.items())
        if not template.holding(joined.mask & template.shelf.within({name: amount}), pods.need)
    ] or sorted(rest)
    what = ", ".join(f"{name} ({amount_text(name, max(0, rest[name]), is_least=True)} left)" for name in tight)
    message = f"every instance type that fits would exceed its limit of {what}: raise spec.limits"
    return Refusal(reason="LimitExceeded", message=message)


def _amounts(left: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in left.items() if name != NODES}


def _too_few(template: Template, pods: PodClass, stage: Stage, packing: Packing) -> Refusal | None:
    joined = template.narrow(template.start, stage.requirements)
    if joined is None or packing.options.min_values_policy != "Strict":
        return None
    mask = template.holding(joined.mask, pods.need, pods.ports)
    left = packing.limits.get(template.pool.name)
    bought = mask if left is None else mask & template.shelf.within(_amounts(left))
    if template.meets_minima(joined, bought):
        return None
    keys = ", ".join(f"{item.key} ({item.min_values})" for item in joined.minima)
    fit, remedy = "fit", "lower minValues"
    if template.meets_minima(joined, mask):
        fit, remedy = "fit, and that its limits leave,", "raise spec.limits or lower minValues"
    message = f"the instance types that {fit} are less various than minValues asks of {keys}: {remedy}"
    return Refusal(reason="MinValuesNotMet", message=message)


def _crowded(bound: Iterable[int], packing: Packing) -> Refusal:
    what = " and ".join(sorted({told(packing.topology.groups[number]) for number in bound}))
    if what:
        message = f"no domain it can make satisfies {what}: relax the constraint or allow more domains"
        return Refusal(reason="TopologyNotSatisfied", message=message)
    message = "its volumes, limits and minValues leave no room together: see the pod's volumes and spec.limits"
    return Refusal(reason="NoInstanceTypeFits", message=message)


def _meaning(key: str, template: Template) -> str:
    """Ask for the label that may have been meant: a known one with the same last part, or one that *key* is part of."""
    known = sorted({*WELL_KNOWN, *(item.key for item in template.start.requirements)})
    last = key.rpartition("/")[2]
    near = next((one for one in known if key in one or one.rpartition("/")[2] == last), "")
    return f"did you mean {near}? Else " if near else ""


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
