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
REPACKED: Final = 3_000
"""So many pods are repacked on trial in a sweep ..."""
REPACKINGS: Final = 20
"""... in so many sets."""
IN_VAIN: Final = 2
"""After so many sets of one size in vain, one after the other, the next size is tried."""
SMALL: Final = 60
CAREFUL: Final = 20_000
"""So much effort is spent on advice where there are so few candidates ..."""
MIDDLING: Final = 300
FAIR: Final = 3_000
"""... and so much where there are no more than so many."""
MORE: Final = 3
"""So many nodes more than there were may be bought."""
PAYS: Final = 0.95
"""A repacking costs no more than this part of what was there: it moves many pods."""
PAYS_FOR_MORE: Final = 0.8
"""The same, if there are no fewer nodes afterwards."""
FEWEST: Final = 2
"""So many nodes are never replaced by fewer that are several."""


class Repacking:
    """Looks for sets of nodes that cheaper ones do instead of."""

    def __init__(self, hunt: Hunt, count: int) -> None:
        """Look on the ground of *hunt*; the more candidates (*count*) there are, the less is spent on each set."""
        self._hunt = hunt
        if count <= MIDDLING:
            hunt.ground.effort = CAREFUL if count <= SMALL else FAIR

    def find(self, rest: Sequence[Candidate]) -> list[Draft]:
        """Answer sets of nodes that cheaper ones do instead of, several for several."""
        found: list[Draft] = []
        effort, tries = REPACKED, REPACKINGS
        for size in CHUNKS:
            in_vain = 0
            for some in _chunks(
                self._affordable(self._hunt.rest(rest)), size, mixed=not self._hunt.exchanges.spot_to_spot
            ):
                left = self._affordable(self._hunt.rest(some))
                effort -= sum(len(one.reschedulable) for one in left)
                if effort < 0 or tries <= 0 or self._hunt.is_over():
                    return found
                if not left or not self._may_be_bought(left):
                    continue
                tries -= 1
                draft = self._repack(left)
                if draft is not None:
                    found.append(draft)
                    self._hunt.expect((draft,))
                in_vain = in_vain + 1 if draft is None else 0
                if in_vain == IN_VAIN:
                    break
        return found

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

    def _repack(self, targets: list[Candidate]) -> Draft | None:
        ground, base = self._hunt.ground, self._hunt.base()
        frame = ground.begin(may_open=len(targets) + MORE)
        pods = [pod for one in targets for pod in ground.clear(ground.numbers[one.name])]
        price, agreed = price_of(targets), list[Exchange]()
        most = PAYS if len(targets) > FEWEST else PAYS_FOR_MORE
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
