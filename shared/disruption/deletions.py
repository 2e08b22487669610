"""Nodes whose pods have room elsewhere: one goes after the other, each on top of those before it."""

from collections.abc import Iterable, Sequence

from shared.disruption.candidates import Candidate
from shared.disruption.drafts import Draft
from shared.disruption.hunt import REASON, Hunt
from shared.disruption.moves import moves_of
from shared.model.commands import TARGETS_MAX


class Deletions:
    """Looks for nodes that go without a new one; what was found is played through once more from the beginning."""

    def __init__(self, hunt: Hunt) -> None:
        """Look on the ground of *hunt*."""
        self._hunt = hunt

    def find(self, candidates: Sequence[Candidate]) -> list[Draft]:
        """Answer what goes of *candidates*, which are tried in their order."""
        ground, found = self._hunt.ground, list[Candidate]()
        ground.begin()
        for place, one in enumerate(candidates):
            if self._hunt.is_over():
                self._hunt.unreached = [other.name for other in candidates[place:]]
                break
            if not self._hunt.rooms.has_room_for((one,), REASON):
                continue
            if self._hunt.approve((one,), one.price_usd_per_hour) is None and self._is_deletable(one):
                found.append(one)
                self._hunt.rooms.take((one,))
        self._hunt.rooms.release(found)
        homes = self._homes(found)
        ground.undo()
        return self._confirmed_deletions(found, homes)

    def _is_deletable(self, one: Candidate) -> bool:
        ground = self._hunt.ground
        ground.begin()
        left = ground.house(ground.clear(ground.numbers[one.name]))
        if left or self._hunt.unplannable(one):
            ground.undo()
            return False
        ground.keep()
        return True

    def _homes(self, some: Iterable[Candidate]) -> dict[str, int]:
        wanted = {pod.name for one in some for pod in one.state.pods}
        residents = self._hunt.ground.residents
        return {name: number for number, there in residents.items() for name in there if name in wanted}

    def _confirmed_deletions(self, found: list[Candidate], homes: dict[str, int]) -> list[Draft]:
        drafts: list[Draft] = []
        while found:
            some = found[:TARGETS_MAX]
            frame = self._hunt.ground.begin()
            if self._housed(some, homes):
                drafts.append(self._hunt.deletion(some, moves_of(self._hunt.ground, frame.moves, {})))
                self._hunt.ground.keep()
                found = found[TARGETS_MAX:]
            else:
                self._hunt.ground.undo()
                found = found[: max(len(some) - 1, 0) * 3 // 4]
        return drafts

    def _housed(self, some: Iterable[Candidate], homes: dict[str, int]) -> bool:
        """Clear *some*, and place their pods, at home if they may be there; whether all have a place."""
        ground = self._hunt.ground
        pods = [pod for one in some for pod in ground.clear(ground.numbers[one.name])]
        return not ground.house_at(pods, homes)
