"""What all ways of consolidating share: the ground, who judges, what goes already, and why the others stay."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from shared.disruption.candidates import Candidate
from shared.disruption.drafts import Draft, price_of
from shared.disruption.exchange import Exchanges, Refused
from shared.disruption.layout import Layout
from shared.disruption.rooms import Rooms
from shared.disruption.verdicts import Kept

REASON: Final = "Underutilized"
Approval = Callable[[Sequence[Candidate], float], Refused | None]
"""Whether so much saved is worth that these nodes go; else why not."""


class Hunt:
    """What was found is gone from the ground."""

    def __init__(
        self,
        layout: Layout,
        judges: tuple[Exchanges, Rooms, Approval],
        extras: Mapping[str, float],
        is_over: Callable[[], bool],
    ) -> None:
        """Hunt on the ground of *layout*; *extras*: what nodes cost besides their instances, by pool."""
        self.layout, self.ground = layout, layout.ground
        self.exchanges, self.rooms, self.approve = judges
        self.extras, self.is_over = extras, is_over
        self.kept: dict[str, Kept] = {}
        self.unreached: list[str] = []
        """Names of candidates that were not looked at in time, in order."""
        self.gone: set[str] = set()
        self.expecting: dict[str, str] = {}

    def expect(self, drafts: Iterable[Draft]) -> None:
        """Remember what goes, and where its pods are expected: these nodes stay for now."""
        for draft in drafts:
            self.rooms.take(draft.targets)
            self.gone.update(one.name for one in draft.targets)
            for pod, home in draft.moves:
                self.expecting.setdefault(home, pod)
        for name in self.gone:
            self.kept.pop(name, None)

    def rest(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Answer what is left of *candidates*."""
        found: list[Candidate] = []
        for one in candidates:
            if one.name in self.expecting:
                message = f"pods of nodes that go are expected there, {self.expecting[one.name]} among them"
                self.kept[one.name] = Kept(node=one.name, reason="Expecting", message=message)
            elif one.name not in self.gone and one.name not in self.unreached:
                found.append(one)
        return found

    def unplannable(self, one: Candidate) -> str:
        """Name a pod that would have to move and cannot be planned for, "" if there is none."""
        return next((pod.name for pod in one.state.pods if pod.name in self.layout.faults), "")

    def base(self) -> int:
        """Count the new nodes that there are."""
        return len(self.ground.opened)

    def deletion(self, some: Sequence[Candidate], moves: tuple[tuple[str, str], ...]) -> Draft:
        """Answer that *some* go without anything new; *moves*: where their pods do."""
        saved = price_of(some)
        what = "its pods have" if len(some) == 1 else f"the pods of all {len(some)} have"
        return Draft(
            method="SingleNode" if len(some) == 1 else "MultiNode",
            reason=REASON,
            targets=tuple(some),
            moves=moves,
            price_usd_per_hour=saved,
            why=f"{what} room elsewhere: ${saved:.4f} per hour are saved",
        )
