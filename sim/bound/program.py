"""A price that no plan can beat: whole nodes and fluid pods, as a linear program.

What is bought are nodes, of each row a number; what is placed are amounts of each want. A place has room for what is
on it; a node holds no more than the whole pods of one want that fit, and no more of a crowd than the crowd allows. Pods
may be cut, and preferences do not count, nor do rules between pods that are not about one node or even shares: so real
plans cost more.

Of all the wants on all the places only those columns are in the program that it asks for. It ends with what the duals
prove, whether it asks for more or not: prices of room such that no node is worth more than it costs, and what the pods
cost at these prices. Where the program is small nodes are whole, which says more of cheap clusters.
"""

from math import floor, inf
from typing import Final

import highspy
import msgspec
import numpy as np

from shared.model.cluster import Cluster
from shared.scheduling.placement import Options, Placement
from sim.bound.places import Flags, Numbers, Tables, tables
from sim.bound.wants import Host

WHOLE: Final = 15_000
"""So many columns of wants on places are few enough for whole nodes."""
STEPS: Final = 2_000
"""The search for whole nodes ends after so many steps, with a bound."""
FEW: Final = 3
"""So many places are added for a want at a time."""
ROUNDS: Final = 40
CLOSE: Final = 0.999
"""What is proved may be this part of what the columns at hand cost."""
STEADY: Final = 0.6
DEAR: Final = 1e4
"""The price of a pod without a place: there is none in the end."""
PRIMAL: Final = 4
INTEGER: Final = 1
LARGE: Final = 6
"""Of fewer pods than so many that fit, the part of one that is cut counts."""
_PART: Final = 0.05
_NOTHING: Final = 1e-7
_EXACT: Final = 1 - 1e-6
"""As far as the solver's answers can be relied on."""


def lower_bound(cluster: Cluster, placement: Placement, options: Options) -> float:
    """Answer what the pods that *placement* places cost per hour at least, in USD.

    Raises:
        ValueError: the program has no answer: the placement breaks a rule.
    """
    if not placement.new_nodes and not placement.existing:
        return 0.0
    return _Program(tables(cluster, placement, options)).solved() * _EXACT


class _Duals(msgspec.Struct, frozen=True, kw_only=True):
    """What each line of the program is worth, and by how much a node of each row is dearer than its room."""

    lines: Numbers
    spare: Numbers

    def with_part_of(self, calm: "_Duals") -> "_Duals":
        """Answer what lies between these and the best so far: from one round to the next they swing."""
        before = np.concatenate([calm.lines, np.zeros(len(self.lines) - len(calm.lines))])
        return _Duals(
            lines=STEADY * before + (1 - STEADY) * self.lines, spare=STEADY * calm.spare + (1 - STEADY) * self.spare
        )


class _Program:
    """Columns: nodes of each row, then wants on places, as they are added."""

    def __init__(self, known: Tables) -> None:
        """Write down what there is to buy, and all the rules."""
        self._known = known
        self._sold = len(known.prices)
        self._model = highspy.Highs()  # type: ignore[no-untyped-call]  # it has no annotations
        self._model.silent()
        self._model.setOptionValue("threads", 1)
        for price, most in zip(known.prices, known.most, strict=True):
            self._model.addCol(float(price), 0.0, float(most), 0, [], [])
        self._demand = [self._line(float(count), float(count)) for count in known.counts]
        places, axes = known.rooms.shape
        self._room = [[self._room_of(place, axis) for axis in range(axes)] for place in range(places)]
        self._least = [self._line(float(one.count), inf) for one in known.leasts]
        self._lost = [self._spare(line) for line in (*self._demand, *self._least)]
        for limit in known.limits:
            line = self._line(-inf, limit.most)
            for row in np.flatnonzero(limit.amounts):
                self._model.changeCoeff(line, int(row), float(limit.amounts[row]))
        self._crowds: dict[tuple[Host, int], int] = {}
        self._cut: dict[tuple[int, int], int] = {}
        """By want and place: the line for the pods that are whole."""
        hosts = dict.fromkeys(host for host in known.hosts if host is not None)
        self._of = {host: np.array([other == host for other in known.hosts]) for host in hosts}
        self._has = np.zeros_like(known.is_open)

    def solved(self) -> float:
        """Answer the least price.

        Raises:
            ValueError: there is none.
        """
        is_small = int(self._known.is_open.sum()) <= WHOLE
        self._add(self._known.is_open if is_small else self._first())
        best, calm = 0.0, None
        for _ in range(ROUNDS):
            price, duals = self._run(), self._duals()
            missing = np.zeros_like(self._has)
            for some in [duals] if calm is None else [duals.with_part_of(calm), duals]:
                asked = self._asked(some)
                proved = self._proved(some, asked)
                if proved > best:
                    best, calm = proved, some
                missing = missing if missing.any() else self._missing(some, asked)
            if best >= CLOSE * price or not missing.any():
                break
            self._add(missing)
        self._check()
        return max(best, self._whole()) if is_small else best

    def _check(self) -> None:
        """Raise unless all pods have a place.

        Raises:
            ValueError: some have none.
        """
        values = np.array(self._model.getSolution().col_value)
        if values[self._lost].max(initial=0.0) > _NOTHING:
            raise ValueError("not all of these pods can be placed together")

    def _line(self, least: float, most: float) -> int:
        self._model.addRow(least, most, 0, [], [])
        return int(self._model.getNumRow()) - 1

    def _spare(self, line: int) -> int:
        """Let *line* be met without a node."""
        self._model.addCol(DEAR, 0.0, inf, 1, [line], [1.0])
        return int(self._model.getNumCol()) - 1

    def _room_of(self, place: int, axis: int) -> int:
        """Write down how much of a resource is there: what stands has it, what is bought brings it."""
        room = float(self._known.rooms[place, axis])
        return self._line(-inf, room) if place >= self._sold else self._per_node(place, room)

    def _per_node(self, place: int, most: float) -> int:
        line = self._line(-inf, 0.0)
        self._model.changeCoeff(line, place, -most)
        return line

    def _first(self) -> Flags:
        """Answer where each want costs least by the largest part of a node that one pod takes."""
        known = self._known
        parts = (known.needs[:, None, :] / np.maximum(known.rooms, _NOTHING)[None, :, :]).max(axis=2)
        parts = np.maximum(parts, np.array([0.0 if host is None else 1 / host[0] for host in known.hosts])[:, None])
        prices = np.concatenate([known.prices, np.zeros(len(known.rooms) - self._sold)])
        return _least_of(np.where(known.is_open, parts * prices, inf))

    def _asked(self, duals: "_Duals") -> Numbers:
        """Answer what a pod of each want pays for its place, by want and place, if no node earns less than it costs."""
        known, lines = self._known, duals.lines
        rents = np.maximum(-lines[np.array(self._room)], 0.0)
        usual = rents[: self._sold].sum(axis=0) + _NOTHING
        spare = np.maximum(duals.spare, 0.0)
        rents[: self._sold] += (spare / (known.rooms[: self._sold] @ usual))[:, None] * usual
        asked = known.needs @ rents.T
        for line, one in zip(self._least, known.leasts, strict=True):
            asked[np.ix_(np.array(one.wants), np.flatnonzero(one.places))] -= lines[line]
        for (host, place), line in self._crowds.items():
            asked[self._of[host], place] -= lines[line]
        for (want, place), line in self._cut.items():
            asked[want, place] -= lines[line]
        return np.where(known.is_open, asked, inf)

    def _proved(self, duals: "_Duals", asked: Numbers) -> float:
        """Answer what the pods pay, each where it is cheapest, less what is not for nodes that are bought."""
        known, model, lines = self._known, self._model.getLp(), duals.lines.copy()
        lines[self._demand] = 0.0
        ends = np.where(lines > 0, np.array(model.row_lower_), np.array(model.row_upper_))
        short = np.where(np.isfinite(known.most), np.minimum(duals.spare, 0.0), 0.0)
        used = short < 0
        rest = lines[lines != 0] @ ends[lines != 0] + short[used] @ known.most[used]
        return float(asked.min(axis=1) @ known.counts + rest)

    def _missing(self, duals: "_Duals", asked: Numbers) -> Flags:
        """Answer columns that would lower the price, the best of each want."""
        gain = asked - duals.lines[self._demand][:, None]
        return _least_of(np.where(~self._has & (gain < -_NOTHING), gain, inf))

    def _duals(self) -> "_Duals":
        """Answer the duals, without such as are of the wrong sign by a hair."""
        found, model = self._model.getSolution(), self._model.getLp()
        lines = np.array(found.row_dual)
        is_wrong = np.where(lines > 0, np.isinf(np.array(model.row_lower_)), np.isinf(np.array(model.row_upper_)))
        return _Duals(lines=np.where(is_wrong, 0.0, lines), spare=np.array(found.col_dual[: self._sold]))

    def _add(self, some: Flags) -> None:
        for want, place in np.argwhere(some):
            self._column(int(want), int(place))
        self._has |= some

    def _column(self, want: int, place: int) -> None:
        known = self._known
        entries = {self._demand[want]: 1.0}
        entries |= {self._room[place][axis]: float(some) for axis, some in enumerate(known.needs[want]) if some}
        entries |= {
            line: 1.0
            for line, one in zip(self._least, known.leasts, strict=True)
            if want in one.wants and one.places[place]
        }
        host = known.hosts[want]
        if host is not None:
            entries[self._crowd(host, place)] = 1.0
        fits = _fits(known.rooms[place], known.needs[want])
        if place < self._sold and fits < LARGE and fits % 1 > _PART:
            self._cut[want, place] = self._per_node(place, floor(fits))
            entries[self._cut[want, place]] = 1.0
        self._model.addCol(0.0, 0.0, inf, len(entries), list(entries), list(entries.values()))

    def _crowd(self, host: Host, place: int) -> int:
        if (host, place) not in self._crowds:
            most = float(host[0])
            line = self._line(-inf, most) if place >= self._sold else self._per_node(place, most)
            self._crowds[host, place] = line
        return self._crowds[host, place]

    def _run(self) -> float:
        self._model.run()
        status = self._model.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise ValueError(f"no least price: {self._model.modelStatusToString(status)}")
        self._model.setOptionValue("simplex_strategy", PRIMAL)  # columns come, lines do not: it goes on where it was
        return float(self._model.getInfo().objective_function_value)

    def _whole(self) -> float:
        """Answer what is known of the price if nodes are whole."""
        rows = np.arange(self._sold, dtype=np.int32)
        self._model.changeColsIntegrality(self._sold, rows, np.full(self._sold, INTEGER, dtype=np.uint8))
        self._model.setOptionValue("mip_max_nodes", STEPS)
        self._model.setOptionValue("mip_rel_gap", 1e-3)
        self._model.run()
        return float(self._model.getInfo().mip_dual_bound)


def _least_of(costs: Numbers) -> Flags:
    """Answer, by line, the few least that are finite."""
    few = np.argsort(costs, axis=1, kind="stable")[:, :FEW]
    found = np.zeros(costs.shape, dtype=np.bool_)
    np.put_along_axis(found, few, values=True, axis=1)
    return found & np.isfinite(costs)


def _fits(room: Numbers, need: Numbers) -> float:
    """Answer how many pods have room, and the part of one that is left over."""
    asked = need > 0
    return float((room[asked] / need[asked]).min(initial=inf))
