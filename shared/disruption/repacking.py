"""Several new nodes for several that cost more: their pods are placed anew, as the solver advises."""

from collections.abc import Iterator, Sequence
from typing import Final

from shared.disruption.candidates import Candidate
from shared.disruption.drafts import Draft, price_of
from shared.disruption.exchange import Exchange
from shared.disruption.hunt import REASON, Hunt
from shared.disruption.moves import moves_of
from shared.model.commands import TARGETS_MAX
from shared.model.labels import SPOT
from shared.scheduling.opened import Opened

CHUNKS: Final = (25, 8, 2, 1)
"""So many nodes are repacked together, one size after the other."""
REPACKED: Final = 20_000
"""So many pods are repacked on trial in a sweep."""
IN_VAIN: Final = 2
"""After so many sets of one size in vain, one after the other, the next size is tried."""
PAYS: Final = 0.95
"""A repacking costs no more than this part of what was there: it moves many pods."""
PAYS_FOR_MORE: Final = 0.8
"""The same, if there are no fewer nodes afterwards."""
PARTS: Final = tuple(part / 20 for part in range(15, 0, -1))
FEWEST: Final = 2
"""So many nodes are never replaced by fewer that are several."""


class Repacking:
    """Looks for sets of nodes that cheaper ones do instead of."""

    def __init__(self, hunt: Hunt) -> None:
        """Look on the ground of *hunt*."""
        self._hunt, self._pods = hunt, REPACKED
        self._tried: set[frozenset[str]] = set()

    def find(self, rest: Sequence[Candidate]) -> list[Draft]:
        """Answer sets of nodes that cheaper ones do instead of, several for several."""
        ground = self._hunt.ground
        ground.value(ground.on(one.name for one in self._affordable(rest)))
        return [draft for size in CHUNKS for draft in self._of_size(size, rest)]

    def _of_size(self, size: int, rest: Sequence[Candidate]) -> Iterator[Draft]:
        in_vain, mixed = 0, not self._hunt.exchanges.spot_to_spot
        for some in _chunks(self._affordable(self._hunt.rest(rest)), size, mixed=mixed):
            left = self._affordable(self._hunt.rest(some))
            self._pods -= sum(len(one.reschedulable) for one in left)
            if in_vain == IN_VAIN or self._pods < 0 or self._hunt.is_over():
                return
            names = frozenset(one.name for one in left)
            most = self._most(left) if left and names not in self._tried and self._may_be_bought(left) else 0.0
            if most > 0:
                self._tried.add(names)
                draft = self._repack(left, most)
                in_vain = 0 if draft is not None else in_vain + 1
                if draft is not None:
                    self._hunt.expect((draft,))
                    yield draft

    def _may_be_bought(self, some: Sequence[Candidate]) -> bool:
        return self._hunt.exchanges.spot_to_spot or any(one.capacity_type != SPOT for one in some)

    def _affordable(self, some: Sequence[Candidate]) -> list[Candidate]:
        """Answer those of *some* that may go together, as far as budgets say."""
        found: list[Candidate] = []
        for one in some:
            if (
                one.price_usd_per_hour > 0
                and not self._hunt.unplannable(one)
                and self._hunt.rooms.has_room_for((one,), REASON)
            ):
                found.append(one)
                self._hunt.rooms.take((one,))
        self._hunt.rooms.release(found)
        return found

    def _most(self, targets: Sequence[Candidate]) -> float:
        """Answer what part of their price the new nodes may cost for *targets* to go, in steps; 0: none is approved."""
        price = price_of(targets)
        steps = (PAYS if len(targets) > FEWEST else PAYS_FOR_MORE, *PARTS)
        return next((part for part in steps if self._hunt.approve(targets, price * (1 - part)) is None), 0.0)

    def _repack(self, targets: list[Candidate], most: float) -> Draft | None:
        ground, base = self._hunt.ground, self._hunt.base()
        frame = ground.begin()
        pods = [pod for one in targets for pod in ground.clear(ground.numbers[one.name])]
        ground.may_open = len(pods)
        price, agreed = price_of(targets), list[Exchange]()
        left = ground.house_advised(pods, most * price)
        opened = [node for node in ground.opened[base:] if node.pods]
        if len(opened) > 1 and not left:  # what one new node can do is found below, with more types to choose from
            pays = PAYS if len(opened) < len(targets) else PAYS_FOR_MORE
            agreed = self._agreed(targets, opened, pays * price)
        saved = price - sum(one.cheapest.price_usd_per_hour for one in agreed)
        if not agreed or self._hunt.approve(targets, saved) is not None:
            ground.undo()
            return None
        nodes = [self._hunt.exchanges.agree(one, ground.everybody) for one in agreed]
        names = {len(ground.standing) + one.node.number: node.name for one, node in zip(agreed, nodes, strict=True)}
        moves = moves_of(ground, frame.moves, names)
        ground.keep()
        ground.seal_opened()
        return Draft(
            method="SingleNode" if len(targets) == 1 else "MultiNode",
            reason=REASON,
            targets=tuple(targets),
            new_nodes=tuple(nodes),
            moves=moves,
            price_usd_per_hour=price,
            why=f"{len(nodes)} new nodes do instead of {len(targets)} that cost ${price:.4f} per hour",
        )

    def _agreed(self, targets: Sequence[Candidate], opened: Sequence[Opened], most: float) -> list[Exchange]:
        """Answer how *opened* nodes may be bought so that all cost less than *most*, whatever is launched; or none."""
        least = [self._hunt.exchanges.least(node) for node in opened]
        extra = sum(self._hunt.extras.get(node.template.pool.name, 0.0) for node in opened)
        extra -= sum(self._hunt.extras.get(one.pool.name, 0.0) for one in targets)
        share = (most - extra) / sum(least) if sum(least) > 0 else 0.0
        if share <= 1:
            return []
        units, pairs = self._hunt.exchanges.units(), zip(opened, least, strict=True)
        judged = [self._hunt.exchanges.cheaper(node, targets, share * low, units) for node, low in pairs]
        agreed = [one for one in judged if isinstance(one, Exchange)]
        worst = sum(one.worst_usd_per_hour for one in agreed)
        return agreed if len(agreed) == len(judged) and worst < most - extra else []


def _chunks(some: Sequence[Candidate], size: int, *, mixed: bool) -> Iterator[list[Candidate]]:
    """Part *some* into sets of about *size*; *mixed*: each with a node that is not spot, as far as there are any."""
    dear = [one for one in some if one.capacity_type != SPOT]
    others = [one for one in some if one.capacity_type == SPOT]
    count = max(1, -(-len(some) // size))
    if mixed:
        count = max(1, min(count, len(dear)))
    for number in range(count):
        yield [*dear[number::count], *others[number::count]][:TARGETS_MAX]
