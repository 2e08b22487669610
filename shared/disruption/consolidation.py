"""Consolidation: nodes whose pods have room elsewhere, or on one new node that costs less than they do.

Karpenter tries the first n candidates together for some n, then each alone. Here nodes go one after the other, each on
top of those before it, as long as their pods find room; then sets grow from each node that is left, as long as each
more that goes saves more. What was found is played through once more from the beginning: pods are placed in an order
in which they can be bound.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from shared.disruption.candidates import Candidate
from shared.disruption.deletions import Deletions
from shared.disruption.drafts import Draft, price_of
from shared.disruption.exchange import Exchange, Exchanges, Refused
from shared.disruption.hunt import REASON, Approval, Hunt
from shared.disruption.layout import Layout
from shared.disruption.moves import moves_of
from shared.disruption.repacking import Repacking
from shared.disruption.rooms import Rooms
from shared.disruption.verdicts import Kept
from shared.model.pods import Pod
from shared.scheduling.demand import PodClass
from shared.scheduling.opened import Opened

EFFORT: Final = 1500
"""So many nodes are added to sets on trial in a sweep ..."""
FEWEST: Final = 1
MOST: Final = 60
"""... between so many and so many to each."""
LEAST_USD: Final = 1e-6


class Search:
    """Looks for what may go, in one way after the other."""

    def __init__(
        self,
        layout: Layout,
        judges: tuple[Exchanges, Rooms, Approval],
        extras: Mapping[str, float],
        is_over: Callable[[], bool],
    ) -> None:
        """Search on the ground of *layout*; *extras*: what nodes cost besides their instances, by pool."""
        self._hunt = Hunt(layout, judges, extras, is_over)
        self.over_budget: list[Candidate] = []
        self._singles: dict[str, float] = {}

    @property
    def kept(self) -> dict[str, Kept]:
        """Who stays, and why."""
        return self._hunt.kept

    @property
    def unreached(self) -> list[str]:
        """Names of candidates that were not looked at in time, in order."""
        return self._hunt.unreached

    def delete(self, candidates: Sequence[Candidate]) -> list[Draft]:
        """Answer what goes of *candidates* without a new node; they are tried in their order."""
        found = Deletions(self._hunt).find(candidates)
        self._hunt.expect(found)
        return found

    def exchange(self, candidates: Sequence[Candidate]) -> list[Draft]:
        """Answer what else goes of *candidates*, for new nodes that cost less."""
        hunt = self._hunt
        found = Repacking(hunt).find(hunt.rest(candidates))
        found += self._exchanged(hunt.rest(candidates))
        return found

    def _exchanged(self, rest: list[Candidate]) -> list[Draft]:
        found: list[Draft] = []
        for place, one in enumerate(rest):
            if self._hunt.is_over():
                self._hunt.unreached = self._hunt.unreached or [other.name for other in rest[place:]]
                rest = rest[:place]
                break
            self._singles[one.name] = self._alone(one)
        tries = min(max(EFFORT // max(len(rest), 1), FEWEST), MOST)
        for place, seed in enumerate(rest):
            if self._hunt.is_over():
                break
            if not self._hunt.rest((seed,)):
                continue
            draft = self._grown(seed, self._hunt.rest(rest[place + 1 :]), tries)
            if draft is not None:
                found.append(draft)
                self._hunt.expect((draft,))
        return found

    def _alone(self, one: Candidate) -> float:
        """Answer what is saved if *one* goes alone, 0 if it cannot; and remember why."""
        if not self._hunt.rooms.has_room_for((one,), REASON):
            self.over_budget.append(one)
            return 0.0
        ground = self._hunt.ground
        ground.begin(may_open=1)
        judged = self._trial([one], self._hunt.base(), ground.clear(ground.numbers[one.name]))
        ground.undo()
        if isinstance(judged, Refused):
            self._hunt.kept[one.name] = Kept(node=one.name, reason=judged.reason, message=judged.message)
            return 0.0
        return judged

    def _trial(self, targets: Sequence[Candidate], base: int, pods: Iterable[Pod]) -> float | Refused:
        """Place *pods*; answer what is saved if *targets* go."""
        left = self._hunt.ground.house(pods)
        unplannable = next((name for one in targets if (name := self._hunt.unplannable(one))), "")
        if unplannable:
            return Refused(
                reason="PodNotPlannable", message=f"pod {unplannable}: {self._hunt.layout.faults[unplannable].message}"
            )
        if left:
            return self._homeless(left)
        price = price_of(targets)
        opened = self._hunt.ground.opened[base:]
        if not opened:
            return self._hunt.approve(targets, price) or price
        judged = self._hunt.exchanges.cheaper(opened[0], targets)
        if isinstance(judged, Refused):
            return self._explained(judged, opened[0], price)
        saved = price - judged.cheapest.price_usd_per_hour
        return self._hunt.approve(targets, saved) or saved

    def _homeless(self, left: Sequence[PodClass]) -> Refused:
        opened = bool(self._hunt.ground.may_open == 0)
        pods = sum(len(one.pods) for one in left)
        words = "more than one new node would be needed" if opened else "no new node can hold them"
        return Refused(reason="NoRoom", message=f"{pods} pods have no room elsewhere, and {words}")

    def _explained(self, refused: Refused, node: Opened, price: float) -> Refused:
        memory = node.used[1] / 2**30
        pods = f"{len(node.pods)} pods need {node.used[0]}m cpu and {memory:.1f} GiB"
        return Refused(
            reason=refused.reason, message=f"{refused.message}: {pods} elsewhere, for less than ${price:.4f}"
        )

    def _grown(self, seed: Candidate, others: Iterable[Candidate], tries: int) -> Draft | None:
        ground, base = self._hunt.ground, self._hunt.base()
        if not self._hunt.rooms.has_room_for((seed,), REASON):
            return None
        targets, saved = [seed], self._singles.get(seed.name, 0.0)
        ground.begin(may_open=1)
        if ground.house(ground.clear(ground.numbers[seed.name])) or self._hunt.unplannable(seed):
            ground.undo()
            return None
        for one in others:
            if tries <= 0 or self._hunt.is_over():
                break
            if one.price_usd_per_hour <= 0 or not self._hunt.rooms.has_room_for((*targets, one), REASON):
                continue
            tries -= 1
            ground.begin(may_open=1 - (len(ground.opened) - base))
            judged = self._trial([*targets, one], base, ground.clear(ground.numbers[one.name]))
            if isinstance(judged, Refused) or judged <= saved + self._singles.get(one.name, 0.0) + LEAST_USD:
                ground.undo()
                continue
            ground.keep()
            targets.append(one)
            saved = judged
        ground.undo()
        return self._confirmed(targets) if saved > LEAST_USD else None

    def _confirmed(self, targets: list[Candidate]) -> Draft | None:
        ground = self._hunt.ground
        while targets:
            base, frame = self._hunt.base(), ground.begin(may_open=1)
            pods = [pod for one in targets for pod in ground.clear(ground.numbers[one.name])]
            judged = self._trial(targets, base, pods)
            if isinstance(judged, float) and judged > LEAST_USD:
                draft = self._drafted(targets, base, frame.moves)
                ground.keep()
                ground.seal_opened()
                return draft
            ground.undo()
            targets = targets[:-1]
        return None

    def _drafted(self, targets: list[Candidate], base: int, moves: list[tuple[Pod, int]]) -> Draft:
        ground = self._hunt.ground
        opened = ground.opened[base:]
        exchange = self._hunt.exchanges.cheaper(opened[0], targets) if opened else None
        if not isinstance(exchange, Exchange):
            return self._hunt.deletion(targets, moves_of(ground, moves, {}))
        node = self._hunt.exchanges.agree(exchange, self._hunt.ground.everybody)
        names = {len(ground.standing) + base: node.name}
        price = price_of(targets)
        choice = node.cheapest
        which = f"{choice.instance_type} {choice.capacity_type} in {choice.zone} for ${choice.price_usd_per_hour:.4f}"
        return Draft(
            method="SingleNode" if len(targets) == 1 else "MultiNode",
            reason=REASON,
            targets=tuple(targets),
            new_nodes=(node,),
            moves=moves_of(ground, moves, names),
            price_usd_per_hour=price,
            why=f"a {which} does instead of what costs ${price:.4f} per hour",
        )
