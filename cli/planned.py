"""A plan as a document that other programs check, and as a table that a person reads."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec

from cli.text import Palette
from shared.model.catalogue import InstanceType
from shared.model.cluster import Cluster
from shared.model.labels import ZONE
from shared.model.requirements import written
from shared.model.resources import CPU, MEMORY, quantities_from
from shared.model.taints import Taint
from shared.scheduling.placement import NewNode, Placement, Unschedulable

HOURS_PER_MONTH: Final = 730
_NAMED: Final = 3
"""So many pods or nodes are named where there may be thousands."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A placement, and what is needed to tell of it."""

    cluster: Cluster
    placement: Placement
    unreadable: tuple[Unschedulable, ...]
    """Pods that wait, or may wait, and could not be read."""
    decode_seconds: float
    solve_seconds: float

    @property
    def left_out(self) -> tuple[Unschedulable, ...]:
        """Pods without a place, sorted."""
        return tuple(sorted((*self.placement.unschedulable, *self.unreadable), key=lambda one: one.pod))

    @property
    def on_new(self) -> int:
        """How many pods are on new nodes."""
        return sum(len(node.pods) for node in self.placement.new_nodes)

    @property
    def on_existing(self) -> int:
        """How many pods are on nodes that are there or on their way."""
        return sum(len(fit.pods) for fit in self.placement.existing)


def document(planned: Planned) -> dict[str, Any]:
    """Answer the plan as it is written down: stable keys and order; USD per hour."""
    placement, left_out = planned.placement, planned.left_out
    taints = {pool.name: [_taint(one) for one in pool.taints] for pool in planned.cluster.node_pools}
    scheduled = planned.on_new + planned.on_existing
    return {
        "newNodes": [_new_node(node, taints[node.node_pool]) for node in placement.new_nodes],
        "existingNodes": [{"node": fit.node, "pods": list(fit.pods)} for fit in placement.existing],
        "unschedulable": [{"pod": one.pod, "reason": one.reason, "message": one.message} for one in left_out],
        "approximations": [{"pod": one.pod, "constraint": one.constraint} for one in placement.approximations],
        "totals": {
            "pods": scheduled + len(left_out),
            "scheduled": scheduled,
            "newNodes": len(placement.new_nodes),
            "price": round(placement.price_usd_per_hour, 9),
            "greedyPrice": round(placement.greedy_usd_per_hour, 9),
        },
        "problems": [{"kind": one.kind, "name": one.name, "message": one.message} for one in planned.cluster.problems],
        "seconds": {"decode": round(planned.decode_seconds, 3), "solve": round(planned.solve_seconds, 3)},
    }


def _new_node(node: NewNode, taints: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "name": node.name,
        "nodePool": node.node_pool,
        "instanceTypes": list(node.instance_types),
        "requirements": written(node.requirements),
        "taints": taints,
        "pods": list(node.pods),
        "daemonPods": node.daemon_pods,
        "requests": quantities_from(node.requests),
        "cheapest": {
            "instanceType": node.cheapest.instance_type,
            "zone": node.cheapest.zone,
            "capacityType": node.cheapest.capacity_type,
            "price": node.cheapest.price_usd_per_hour,
        },
    }


def _taint(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, "effect": taint.effect} | ({"value": taint.value} if taint.value else {})


def table(planned: Planned, palette: Palette) -> str:
    """Answer what a person reads."""
    parts = (_summary(planned), _nodes(planned, palette), _existing(planned, palette), _left_out(planned, palette))
    shown = [lines for part in parts if (lines := list(part))]
    return "\n\n".join("\n".join(lines) for lines in (*shown, list(_totals(planned, palette)))) + "\n"


def _summary(planned: Planned) -> Iterator[str]:
    waiting = planned.on_new + planned.on_existing + len(planned.left_out)
    if not waiting:
        yield "no pod waits for a node"
        return
    new, existing = len(planned.placement.new_nodes), len(planned.placement.existing)
    yield f"{_count(waiting, 'pod')} without a node: " + ", ".join(
        words
        for count, words in (
            (planned.on_new, f"{planned.on_new} on {_count(new, 'new node')}"),
            (planned.on_existing, f"{planned.on_existing} on {_count(existing, 'existing node')}"),
            (len(planned.left_out), f"{len(planned.left_out)} left out"),
        )
        if count
    )


def _nodes(planned: Planned, palette: Palette) -> Iterator[str]:
    """Answer a line for each kind of new node, dearest first."""
    kinds: dict[tuple[str, ...], list[NewNode]] = {}
    for node in planned.placement.new_nodes:
        kinds.setdefault(_kind(node), []).append(node)
    if not kinds:
        return
    types = _types(planned.cluster, planned.placement.new_nodes)
    rows: list[tuple[str, ...]] = [
        ("POOL", "TYPE", "ZONE", "CAPACITY", "NODES", "PODS EACH", "CPU", "MEMORY", "OR ANY OF", "$/H EACH", "$/H")
    ]
    for _, some in sorted(kinds.items(), key=lambda pair: (-_price(pair[1]), pair[0])):
        rows.append(_row(some, types))
    head, *lines = _aligned(rows, left=4)
    yield palette.paint("bold", head)
    yield from lines


def _kind(node: NewNode) -> tuple[str, ...]:
    choice = node.cheapest
    return (node.node_pool, choice.instance_type, choice.zone, choice.capacity_type)


def _row(some: list[NewNode], types: Mapping[tuple[str, str], InstanceType]) -> tuple[str, ...]:
    choice = some[0].cheapest
    room = types[some[0].node_pool, choice.instance_type].allocatable
    # a zone is a fact only where the node can be in no other
    zone = choice.zone if all(node.requirements[ZONE].values == {choice.zone} for node in some) else f"{choice.zone}*"
    return (
        some[0].node_pool,
        choice.instance_type,
        zone,
        choice.capacity_type,
        str(len(some)),
        _span(len(node.pods) for node in some),
        *(_share(sum(node.requests[name] for node in some), room[name] * len(some)) for name in (CPU, MEMORY)),
        _span(len(node.instance_types) for node in some),
        f"{choice.price_usd_per_hour:.4f}",
        f"{_price(some):.4f}",
    )


def _existing(planned: Planned, palette: Palette) -> Iterator[str]:
    fits = planned.placement.existing
    if not fits:
        return
    yield palette.paint("bold", "EXISTING NODES")
    rows = [
        (fit.node, _count(len(fit.pods), "pod"), _some(fit.pods))
        for fit in sorted(fits, key=lambda one: (-len(one.pods), one.node))
    ]
    yield from (f"  {line}" for line in _aligned(rows, left=3))


def _left_out(planned: Planned, palette: Palette) -> Iterator[str]:
    """Answer the pods without a place by what kept them out, most pods first."""
    if not planned.left_out:
        return
    by_cause = sorted(planned.left_out, key=lambda one: (one.reason, one.message, one.pod))
    groups = [(cause, list(some)) for cause, some in groupby(by_cause, lambda one: (one.reason, one.message))]
    yield palette.paint("bold", "LEFT OUT")
    for (reason, message), some in sorted(groups, key=lambda pair: (-len(pair[1]), pair[0])):
        words = f"{_count(len(some), 'pod')}  {reason}: {_some([one.pod for one in some])}"
        yield "  " + palette.paint("yellow", words)
        yield from (f"    {part}" for part in message.split("; "))


def _totals(planned: Planned, palette: Palette) -> Iterator[str]:
    price, greedy = planned.placement.price_usd_per_hour, planned.placement.greedy_usd_per_hour
    if planned.placement.new_nodes:
        month = f"${HOURS_PER_MONTH * price:,.2f} per month of {HOURS_PER_MONTH} hours"
        yield palette.paint("bold", f"total ${price:.4f} per hour") + f", {month}"
        if greedy > price > 0:
            saved = f"${HOURS_PER_MONTH * (greedy - price):,.2f} per month saved"
            yield f"the greedy plan: ${greedy:.4f} per hour, {100 * (greedy / price - 1):.0f} % more; {saved}"
        if any(node.requirements[ZONE].values != {node.cheapest.zone} for node in planned.placement.new_nodes):
            yield palette.paint("dim", "* the cheapest of several zones")
    yield palette.paint("dim", f"read in {planned.decode_seconds:.2f} s, planned in {planned.solve_seconds:.2f} s")


def _types(cluster: Cluster, nodes: Iterable[NewNode]) -> dict[tuple[str, str], InstanceType]:
    """Answer the cheapest type of each node, by NodePool and name, as the pool's node class sees it."""
    wanted = {(node.node_pool, node.cheapest.instance_type) for node in nodes}
    sold = () if cluster.catalogue is None else cluster.node_pools
    return {
        (pool.name, one.name): one
        for pool in sold
        for one in (cluster.catalogue.types_for(pool.node_class.name) if cluster.catalogue is not None else ())
        if (pool.name, one.name) in wanted
    }


def _aligned(rows: Sequence[tuple[str, ...]], left: int) -> list[str]:
    """Set *rows* under each other; the first *left* columns begin, the others end, at the same place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _price(some: Iterable[NewNode]) -> float:
    return sum(node.cheapest.price_usd_per_hour for node in some)


def _span(some: Iterable[int]) -> str:
    counts = sorted(Counter(some))
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}%" if whole else "-"


def _some(names: Iterable[str]) -> str:
    every = list(names)
    rest = len(every) - _NAMED
    return ", ".join(every[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
