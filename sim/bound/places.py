"""Where pods may be: what is sold, and what is there, as tables of numbers.

Which type may hold which pod is what the engine's own filters say; prices and packing are none of its business here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, inf
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from shared.model.cluster import Cluster
from shared.model.labels import RESERVED
from shared.model.resources import CPU, MEMORY, NODES, STORAGE, Axes, Vector, axes_of
from shared.model.state import state_nodes
from shared.model.taints import first_untolerated
from shared.scheduling.limits import remaining
from shared.scheduling.placement import Options, Placement
from shared.scheduling.representatives import with_representatives
from shared.scheduling.shelf import OFFERING_KEYS, Kind, kind_of
from shared.scheduling.standing import Standing, place_of, standing
from shared.scheduling.templates import Template, templates
from shared.scheduling.volumes import volumes_of
from sim.bound.wants import SHARED, Host, Share, Want, Wish, closed_shares, wants_of

Numbers: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Left: TypeAlias = Mapping[str, Mapping[str, int]]
"""What is left of limits, by NodePool and resource."""
_UNITS: Final = {CPU: 1000.0, MEMORY: float(1 << 30), STORAGE: float(1 << 30)}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A type in one offering, which may be bought *most* times."""

    template: int
    index: int
    kind: Kind
    price: float
    room: Vector
    most: float


class Least(msgspec.Struct, frozen=True, kw_only=True):
    """At least *count* pods of *wants* are in *places*."""

    wants: tuple[int, ...]
    places: Flags
    count: int


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """What is bought has no more than *most* together, each row so much as *amounts* say."""

    amounts: Numbers
    most: float


class Tables(msgspec.Struct, frozen=True, kw_only=True):
    """Everything in numbers; places are the rows that are sold, and behind them the nodes that are there."""

    counts: Numbers
    needs: Numbers
    """By want and resource."""
    hosts: tuple[Host | None, ...]
    prices: Numbers
    most: Numbers
    """How many of each row can be bought."""
    rooms: Numbers
    """By place and resource."""
    is_open: Flags
    """By want and place."""
    leasts: tuple[Least, ...]
    limits: tuple[Limit, ...]


def tables(cluster: Cluster, placement: Placement, options: Options) -> Tables:
    """Answer what the pods that *placement* places need, and what there is for them."""
    cluster = with_representatives(cluster)
    names = {name for some in (placement.new_nodes, placement.existing) for one in some for name in one.pods}
    pods = [pod for pod in cluster.pods if pod.name in names]
    axes = axes_of((*(pod.spec.requests for pod in pods), *(one.spec.requests for one in cluster.daemon_sets)))
    used, _, shelves = templates(cluster, axes, options)
    staying = [state for state in state_nodes(cluster) if not state.is_marked()]
    places = {state.name: place_of(state) for state in staying}
    there = standing(staying, places, cluster, axes, shelves, volumes_of(cluster))
    left = remaining(cluster.node_pools, staying, shelves)
    found = wants_of(pods, cluster, axes, options, {key: _domains(key, used, there) for key in SHARED})
    shares = closed_shares(found, cluster)
    split = sorted({OFFERING_KEYS.index(key) for key, *_ in shares})
    rows, rows_open = _sold(list(found), used, axes, left, split)
    needs = _scaled([want.need for want in found], axes)
    rooms = _scaled([*(row.room for row in rows), *(one.free for one in there)], axes)
    asked = needs.any(axis=0)
    needs, rooms = needs[:, asked], rooms[:, asked]
    there_open = _flags([[_admits(one, want.wish) for one in there] for want in found], len(found))
    is_open = np.hstack([rows_open, there_open]) & (needs[:, None, :] <= rooms[None, :, :]).all(axis=2)
    return Tables(
        counts=np.array([float(count) for count in found.values()]),
        needs=needs,
        hosts=tuple(want.host for want in found),
        prices=np.array([row.price for row in rows]),
        most=np.array([row.most for row in rows]),
        rooms=rooms,
        is_open=is_open,
        leasts=tuple(_leasts(shares, list(found), rows, there)),
        limits=tuple(_limits(left, rows, used)),
    )


def _domains(key: str, used: Iterable[Template], there: Iterable[Standing]) -> frozenset[str]:
    """Answer all that the label *key* can be: of nodes that could be made, and of those that are there."""
    made = {
        value
        for one in used
        for value in one.shelf.values(one.start.requirements[key], one.shelf.compatible(one.start.requirements))
    }
    return frozenset(made | {value for one in there for value in one.place.on(key).values})


def _sold(
    wants: Sequence[Want], used: Sequence[Template], axes: Axes, left: Left, split: Sequence[int]
) -> tuple[list[Row], Flags]:
    """Answer what is worth a look, and by want whether it may be there, room aside."""
    rows = [row for number, one in enumerate(used) for row in _rows(number, one)]
    by_wish: dict[Wish, list[bool]] = {}
    for want in wants:
        if want.wish not in by_wish:
            by_wish[want.wish] = _open_to(want.wish, used, rows)
    is_open = _flags([by_wish[want.wish] for want in wants], len(wants))
    worth = np.hstack(
        [_scaled([row.room for row in rows], axes), *(-one.amounts[:, None] for one in _limits(left, rows, used))]
    )
    keep = _undominated(rows, worth, is_open, split)
    return [rows[place] for place in keep], is_open[:, keep]


def _rows(number: int, one: Template) -> Iterator[Row]:
    shelf, start = one.shelf, one.start
    allowed = frozenset(shelf.kinds(start.requirements))
    for index, offerings in enumerate(shelf.offerings):
        group = next((group for group in one.overheads if group.mask >> index & 1), None)
        if group is None or not start.mask >> index & 1:
            continue
        room = tuple(have - need for have, need in zip(shelf.rooms[index], group.needs, strict=True))
        for offering in offerings:
            if kind_of(offering) in allowed and min(room) >= 0:
                most = float(offering.reservation_capacity) if offering.capacity_type == RESERVED else inf
                price = offering.price_usd_per_hour
                yield Row(template=number, index=index, kind=kind_of(offering), price=price, room=room, most=most)


def _open_to(wish: Wish, used: Sequence[Template], rows: Iterable[Row]) -> list[bool]:
    stages, alternatives = wish
    found: dict[int, list[tuple[int, frozenset[Kind]]]] = {number: [] for number in range(len(used))}
    for number, one in enumerate(used):
        for stage in stages:
            if stage.is_contradictory or first_untolerated(one.pool.taints, stage.tolerations) is not None:
                continue
            for alternative in alternatives:
                first = one.narrow(one.start, stage.requirements)
                state = None if first is None else one.narrow(first, alternative)
                if state is not None:
                    found[number].append((state.mask, frozenset(one.shelf.kinds(state.requirements))))
    return [any(mask >> row.index & 1 and row.kind in some for mask, some in found[row.template]) for row in rows]


def _undominated(rows: Sequence[Row], worth: Numbers, is_open: Flags, split: Sequence[int]) -> list[int]:
    """Answer the places of rows than which no cheaper one for the same pods is worth as much in all respects.

    *split*: what of an offering is not all the same. Reserved ones are all kept.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for place in sorted(range(len(rows)), key=lambda place: (rows[place].price, -float(worth[place].sum()), place)):
        own = place if rows[place].most < inf else -1
        key = (own, *(rows[place].kind[at] for at in split), is_open[:, place].tobytes())
        groups.setdefault(key, []).append(place)
    kept: list[int] = []
    for some in groups.values():
        mine = np.empty((0, worth.shape[1]))
        for place in some:
            if not (mine >= worth[place]).all(axis=1).any():
                mine = np.vstack([mine, worth[place]])
                kept.append(place)
    return sorted(place for place in kept if is_open[:, place].any())


def _admits(one: Standing, wish: Wish) -> bool:
    stages, alternatives = wish
    is_let_in = any(one.admits(stage) and not stage.is_contradictory for stage in stages)
    return is_let_in and any(one.satisfies(alternative) for alternative in alternatives)


def _leasts(
    shares: Mapping[Share, int], wants: Sequence[Want], rows: Sequence[Row], there: Sequence[Standing]
) -> Iterator[Least]:
    """Answer what even shares mean: no domain has less than the greatest allows."""
    for share, count in shares.items():
        key, skew, _, domains = share
        least = ceil((count - skew * (len(domains) - 1)) / len(domains)) if domains else 0
        own = tuple(number for number, want in enumerate(wants) if share in want.shares)
        at = OFFERING_KEYS.index(key)
        for domain in domains if least > 0 else ():
            sold = [row.kind[at] == domain for row in rows]
            stands = [one.place.on(key).values == {domain} for one in there]
            yield Least(wants=own, places=np.array([*sold, *stands]), count=least)


def _limits(left: Left, rows: Sequence[Row], used: Sequence[Template]) -> Iterator[Limit]:
    for number, one in enumerate(used):
        for name, most in sorted(left.get(one.pool.name, {}).items()):
            unit = _UNITS.get(name, 1.0)
            amounts = [
                (1.0 if name == NODES else one.shelf.types[row.index].capacity[name] / unit)
                if row.template == number
                else 0.0
                for row in rows
            ]
            yield Limit(amounts=np.array(amounts), most=most / unit)


def _scaled(some: Sequence[Vector], axes: Axes) -> Numbers:
    """Answer amounts of a size that a solver likes, a line each."""
    units = [_UNITS.get(name, 1.0) for name in axes.names]
    lines = [[amount / unit for amount, unit in zip(one, units, strict=True)] for one in some]
    return np.array(lines, dtype=np.float64).reshape(len(lines), len(units))


def _flags(some: Sequence[Sequence[bool]], count: int) -> Flags:
    """Answer a table of *count* lines, also where they are empty."""
    return np.array(some, dtype=np.bool_).reshape(count, -1 if count and some[0] else 0)
