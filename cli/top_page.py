"""The nodes as a table, however narrow, and for programs."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from cli.installation import Installation
from cli.installation_page import concerns
from cli.paused import paused_lines
from cli.plan_totals import HOURS_PER_MONTH
from cli.ranked import Row
from cli.text import Palette, aligned, count, cut, width_when_aligned
from shared.model.cluster import Cluster
from shared.model.holds import held_in
from shared.model.resources import CPU, MEMORY, quantities_from, resources
from shared.model.units import instant_text

HEAD: Final = ("NODE", "STATE", "TYPE", "CAPACITY", "ZONE", "POOL", "$/H", "CPU", "MEM", "PODS", "AGE", "KEPT BY")
_WORDS: Final = 6
"""Columns that are words: the others are numbers, but for the last."""
_SPARED: Final = ("ZONE", "CAPACITY", "POOL", "AGE", "TYPE", "PODS", "MEM")
"""What a narrow terminal does without, the first one first."""
_KEPT: Final = 20
"""So much of what keeps a node is worth more than another column."""
_UNITS: Final = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_COLOURS: Final = {"going": "yellow", "coming": "cyan", "not ready": "red", "drifted": "yellow"}


def document(cluster: Cluster, rows: Sequence[Row]) -> dict[str, Any]:
    """Answer what a program reads."""
    priced = cluster.catalogue is not None
    return {
        "at": instant_text(cluster.taken_at),
        "usdPerHour": round(sum(one.usd_per_hour for one in rows), 9) if priced else None,
        "nodes": [_document(one, priced=priced) for one in rows],
    }


def summary(cluster: Cluster, rows: Sequence[Row]) -> str:
    """Answer the fleet in a line."""
    states = {name: sum(one.state == name for one in rows) for name in ("ready", *_COLOURS)}
    said = ", ".join(f"{number:,} {name}" for name, number in states.items() if number)
    price = sum(one.usd_per_hour for one in rows)
    money = f", ${price:,.2f}/h (${HOURS_PER_MONTH * price:,.0f} a month)" if cluster.catalogue is not None else ""
    shares = [
        f", {name} {100 * used / has:.0f}%"
        for name, used, has in (
            ("cpu", sum(one.cpu[0] for one in rows), sum(one.cpu[1] for one in rows)),
            ("memory", sum(one.memory[0] for one in rows), sum(one.memory[1] for one in rows)),
        )
        if has
    ]
    waiting = sum(pod.is_provisionable() for pod in cluster.pods)
    pods = f", {count(waiting, 'pod')} waiting" if waiting else ""
    return f"{count(len(rows), 'node')}{f' ({said})' if said else ''}{money}{''.join(shares)}{pods}"


def lines(
    cluster: Cluster, beside: Installation | None, rows: Sequence[Row], palette: Palette, width: int | None
) -> list[str]:
    """Answer what a person reads: summary, what does not go on, heads, and a line for each of *rows*."""
    held, _ = held_in(cluster)
    paused = [
        *concerns(beside, cluster.taken_at, palette, width),
        *paused_lines(held, cluster.taken_at, palette, width),
    ]
    head, *body = _table(rows, width)
    coloured = [palette.paint(_COLOURS.get(row.state, ""), line) for row, line in zip(rows, body, strict=True)]
    said = cut(summary(cluster, rows), width)
    return [palette.paint("bold", said), *paused, palette.paint("bold", head), *coloured]


def short_age(passed: timedelta | None) -> str:
    """Answer how long ago that was, in few letters.

    >>> short_age(timedelta(hours=50)), short_age(timedelta()), short_age(None)
    ('2d', '0s', '-')
    """
    if passed is None:
        return "-"
    whole = int(passed.total_seconds())
    return next((f"{whole // length}{unit}" for unit, length in _UNITS if whole >= length), "0s")


def _table(rows: Sequence[Row], width: int | None) -> list[str]:
    names = _names(rows, width)
    cells = [HEAD, *(_cells(one, name, width) for one, name in zip(rows, names, strict=True))]
    for head in _SPARED:
        if width is None or width_when_aligned([one[:-1] for one in cells]) + 2 + _KEPT <= width:
            break
        place = cells[0].index(head)
        cells = [(*one[:place], *one[place + 1 :]) for one in cells]
    words = sum(head in HEAD[:_WORDS] for head in cells[0])
    front = aligned([one[:-1] for one in cells], left=words)
    wide = max(map(len, front), default=0)
    return [cut(f"{line:{wide}}  {one[-1]}".rstrip(), width) for line, one in zip(front, cells, strict=True)]


def _names(rows: Sequence[Row], width: int | None) -> list[str]:
    """Answer the nodes' names; up to their first dot, where there is not much room and that tells them apart."""
    short = [one.name.partition(".")[0] for one in rows]
    return [one.name for one in rows] if width is None or len(set(short)) < len(short) else short


def _cells(one: Row, name: str, width: int | None) -> tuple[str, ...]:
    reason, message = one.keeps
    return (
        name,
        one.state,
        one.instance_type or "-",
        one.capacity_type or "-",
        one.zone or "-",
        one.pool or "-",
        f"{one.usd_per_hour:.4f}" if one.usd_per_hour else "-",
        f"{100 * one.cpu_share:.0f}%",
        f"{100 * one.memory_share:.0f}%",
        str(one.pods),
        short_age(one.age),
        f"{reason}: {message}" if reason and width is None else reason,
    )


def _document(one: Row, *, priced: bool) -> dict[str, Any]:
    return {
        "node": one.name,
        "nodePool": one.pool,
        "state": one.state,
        "instanceType": one.instance_type,
        "capacityType": one.capacity_type,
        "zone": one.zone,
        "usdPerHour": round(one.usd_per_hour, 9) if priced else None,
        "cpu": _amounts(CPU, one.cpu),
        "memory": _amounts(MEMORY, one.memory),
        "pods": one.pods,
        "ageSeconds": None if one.age is None else int(one.age.total_seconds()),
        "keptBy": {"reason": one.keeps[0], "message": one.keeps[1]} if one.keeps[0] else None,
    }


def _amounts(name: str, some: tuple[int, int]) -> dict[str, str]:
    requested, allocatable = (quantities_from(resources({name: one})).get(name, "0") for one in some)
    return {"requested": requested, "allocatable": allocatable}
