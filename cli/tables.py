"""A plan as a table that a person reads."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from cli.left_out import NAMED, left_out_lines
from cli.plan_totals import is_fixed, notes, totals
from cli.planned import Planned
from cli.text import Palette, aligned, count, cut, folded, some, width_when_aligned
from shared.model.catalogue import InstanceType
from shared.model.cluster import Cluster
from shared.model.resources import CPU, MEMORY
from shared.scheduling.placement import NewNode

MOST: Final = 15
"""Rows of a list that is not asked for whole."""
_HEAD: Final = (
    "POOL",
    "TYPE",
    "ZONE",
    "CAPACITY",
    "NODES",
    "PODS EACH",
    "CPU",
    "MEMORY",
    "OR ANY OF",
    "$/H EACH",
    "$/H",
)
_LEFT: Final = 4
_SPARED: Final = (
    ("OR ANY OF", ""),
    ("$/H EACH", ""),
    ("PODS EACH", "PODS"),
    ("MEMORY", ""),
    ("CPU", ""),
    ("PODS", ""),
)
"""What a narrow terminal does without, the first one first: columns, or the second half of their heads."""
_SHORTEST: Final = 8


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """How much room there is, and how much is wanted."""

    width: int | None = None
    """Columns of the terminal; None: no limit, nothing is cut."""
    is_whole: bool = False
    """Every row and every name."""

    @property
    def most(self) -> int | None:
        """How many rows a list may have."""
        return None if self.is_whole else MOST

    @property
    def named(self) -> int | None:
        """How many names a row may have."""
        return None if self.is_whole else NAMED


def table(planned: Planned, palette: Palette, look: Look) -> str:
    """Answer what a person reads."""
    parts = (
        _summary(planned, look),
        _nodes(planned, palette, look),
        _existing(planned, palette, look),
        _left_out(planned, palette, look),
        totals(planned, palette, look.width),
        notes(planned, palette, look.width),
    )
    shown = [lines for part in parts if (lines := list(part))]
    return "\n\n".join("\n".join(lines) for lines in shown) + "\n"


def _summary(planned: Planned, look: Look) -> Iterator[str]:
    waiting = planned.on_new + planned.on_existing + len(planned.left_out)
    if not waiting:
        yield "no pod waits for a node"
        return
    new, existing = len(planned.placement.new_nodes), len(planned.placement.existing)
    said = ", ".join(
        words
        for number, words in (
            (planned.on_new, f"{planned.on_new:,} on {count(new, 'new node')}"),
            (planned.on_existing, f"{planned.on_existing:,} on {count(existing, 'existing node')}"),
            (len(planned.left_out), f"{len(planned.left_out):,} left out"),
        )
        if number
    )
    yield from folded(f"{count(waiting, 'pod')} without a node: {said}", look.width, "")


def _nodes(planned: Planned, palette: Palette, look: Look) -> Iterator[str]:
    """Iterate over lines, one for each kind of new node, dearest first."""
    kinds: dict[tuple[str, ...], list[NewNode]] = {}
    for node in planned.placement.new_nodes:
        kinds.setdefault(_kind(node), []).append(node)
    if not kinds:
        return
    ranked = sorted(kinds.items(), key=lambda pair: (-_price(pair[1]), pair[0]))
    shown = [same for _, same in ranked[: look.most]]
    types = types_of(planned.cluster, (same[0] for same in shown))
    rows = _narrowed([_HEAD, *(_row(same, types) for same in shown)], look.width)
    head, *lines = aligned(rows, left=_LEFT)
    yield palette.paint("bold", head)
    yield from lines
    rest = [node for _, same in ranked[len(shown) :] for node in same]
    if rest:
        more = (
            f"{count(len(ranked) - len(shown), 'more kind')}, {count(len(rest), 'node')}, ${_price(rest):.4f} per hour"
        )
        yield palette.paint("dim", f"… and {more} (--all shows them)")


def _narrowed(rows: list[tuple[str, ...]], width: int | None) -> list[tuple[str, ...]]:
    """Answer *rows* without the columns for which *width* has no room; if that is not enough, names are cut."""
    for head, short in _SPARED:
        if width is None or width_when_aligned(rows) <= width:
            return rows
        place = rows[0].index(head)
        if short:
            rows = [(*rows[0][:place], short, *rows[0][place + 1 :]), *rows[1:]]
        else:
            rows = [(*row[:place], *row[place + 1 :]) for row in rows]
    over = width_when_aligned(rows) - (width or 0)
    longest = max(len(row[0]) for row in rows)
    return [(cut(row[0], max(longest - max(over, 0), _SHORTEST)), *row[1:]) for row in rows]


def _kind(node: NewNode) -> tuple[str, ...]:
    choice = node.cheapest
    return (node.node_pool, choice.instance_type, choice.zone, choice.capacity_type)


def _row(same: list[NewNode], types: Mapping[tuple[str, str], InstanceType]) -> tuple[str, ...]:
    choice = same[0].cheapest
    room = types[same[0].node_pool, choice.instance_type].allocatable
    # a zone is a fact only where the node can be in no other
    zone = choice.zone if all(is_fixed(node) for node in same) else f"{choice.zone}*"
    return (
        same[0].node_pool,
        choice.instance_type,
        zone,
        choice.capacity_type,
        str(len(same)),
        _span(len(node.pods) for node in same),
        *(_share(sum(node.requests[name] for node in same), room[name] * len(same)) for name in (CPU, MEMORY)),
        _span(len(node.instance_types) for node in same),
        f"{choice.price_usd_per_hour:.4f}",
        f"{_price(same):.4f}",
    )


def _existing(planned: Planned, palette: Palette, look: Look) -> Iterator[str]:
    fits = sorted(planned.placement.existing, key=lambda one: (-len(one.pods), one.node))
    if not fits:
        return
    yield palette.paint("bold", "EXISTING NODES")
    shown = fits[: look.most]
    rows = [(fit.node, count(len(fit.pods), "pod"), some(fit.pods, look.named)) for fit in shown]
    yield from (cut(f"  {line}", look.width) for line in aligned(rows, left=3))
    rest = fits[len(shown) :]
    if rest:
        pods = count(sum(len(fit.pods) for fit in rest), "pod")
        yield palette.paint("dim", f"  … and {pods} on {count(len(rest), 'more node')} (--all shows them)")


def _left_out(planned: Planned, palette: Palette, look: Look) -> Iterator[str]:
    if planned.left_out:
        yield palette.paint("bold", "LEFT OUT")
        yield from left_out_lines(planned.left_out, planned.pods(), palette, width=look.width, most=look.most)


def types_of(cluster: Cluster, nodes: Iterable[NewNode]) -> dict[tuple[str, str], InstanceType]:
    """Answer the cheapest type of each node, by NodePool and name, as the pool's node class sees it."""
    wanted = {(node.node_pool, node.cheapest.instance_type) for node in nodes}
    sold = () if cluster.catalogue is None else cluster.node_pools
    return {
        (pool.name, one.name): one
        for pool in sold
        for one in (
            cluster.catalogue.types_for(pool.node_class.name, pool.name) if cluster.catalogue is not None else ()
        )
        if (pool.name, one.name) in wanted
    }


def _price(nodes: Iterable[NewNode]) -> float:
    return sum(node.cheapest.price_usd_per_hour for node in nodes)


def _span(numbers: Iterable[int]) -> str:
    ordered = sorted(set(numbers))
    return str(ordered[0]) if len(ordered) == 1 else f"{ordered[0]}-{ordered[-1]}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}%" if whole else "-"
