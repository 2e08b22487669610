"""The best node for one shape of pod, or the message that says why there is none."""

from typing import Final

from sim.cluster.scheduler_around import Surroundings
from sim.cluster.scheduler_filter import Candidates, Refusal
from sim.cluster.scheduler_nodes import Nodes
from sim.cluster.scheduler_nominator import Asking
from sim.cluster.scheduler_shape import Shape
from sim.cluster.scheduler_volumes import Plan, Volumes

_MOST_SHAPES: Final = 256


class Finder:
    """It remembers, per shape, what the nodes said, and that there was no place as long as no node changes."""

    def __init__(self, nodes: Nodes, volumes: Volumes) -> None:
        """Look among *nodes*."""
        self.nodes, self.volumes = nodes, volumes
        self._candidates: dict[Shape, Candidates] = {}
        self._hopeless: dict[Shape, tuple[int, str]] = {}

    def forget(self) -> None:
        """Something changed that is not in the log of the nodes."""
        self._hopeless.clear()

    def find(self, shape: Shape, plan: Plan | None, asking: Asking | None = None) -> tuple[str | None, str]:
        """Answer the best node for a pod, or none and the message; *asking* minds nominations, its own first."""
        moment = len(self.nodes.log)
        alone = plan is None and asking is None
        if alone and self._hopeless.get(shape, (-1, ""))[0] == moment:
            return None, self._hopeless[shape][1]
        if not self.nodes.known:
            return None, "no nodes available to schedule pods"
        if plan is not None and plan.problem:
            return None, self._message(shape, [plan.problem], 0)
        candidates = self._candidates_of(shape)
        surroundings = Surroundings(shape, self.nodes)
        if alone and surroundings.is_empty:
            best, refused = candidates.best(), list[Refusal]()
        else:
            best, refused = self._best_placed(candidates, surroundings, plan, asking)
        if best is not None:
            return best, ""
        message = self._refusals(candidates, refused)
        if alone:
            self._hopeless[shape] = (moment, message)
        return None, message

    def _candidates_of(self, shape: Shape) -> Candidates:
        candidates = self._candidates.pop(shape, None)
        if candidates is None:
            candidates = Candidates(shape, self.nodes)
            if len(self._candidates) >= _MOST_SHAPES:
                del self._candidates[next(iter(self._candidates))]
        else:
            candidates.refresh()
        self._candidates[shape] = candidates
        return candidates

    def _best_placed(
        self, candidates: Candidates, around: Surroundings, plan: Plan | None, asking: Asking | None
    ) -> tuple[str | None, list[Refusal]]:
        refused: list[Refusal] = []
        fits: list[str] = []
        for name in sorted(candidates.scores):
            node = self.nodes.known[name]
            why = (self.volumes.refusal(plan, node) if plan is not None else None) or around.refusal(node)
            why = why or (asking.refusal(node) if asking is not None else None)
            if why is None:
                fits.append(name)
            else:
                refused.append(why)
        if asking is not None and asking.node in fits:
            return asking.node, refused
        soft = around.scores(fits)
        return min(fits, key=lambda name: (-candidates.scores[name] - soft[name], name), default=None), refused

    def _refusals(self, candidates: Candidates, refused: list[Refusal]) -> str:
        reasons, for_good = candidates.histogram()
        for why in refused:
            reasons.update(why.reasons)
            for_good += why.for_good
        texts = sorted(f"{count} {reason}" for reason, count in reasons.items() if count)
        return self._message(candidates.shape, texts, len(self.nodes.known) - for_good)

    def _message(self, shape: Shape, texts: list[str], helpful: int) -> str:
        total = len(self.nodes.known)
        said = f"0/{total} nodes are available: {', '.join(texts)}."
        if not shape.can_preempt:
            return f"{said} preemption: not eligible due to preemptionPolicy=Never."
        counts = (
            (helpful, "No preemption victims found for incoming pod"),
            (total - helpful, "Preemption is not helpful for scheduling"),
        )
        answers = sorted(f"{count} {text}" for count, text in counts if count)
        return f"{said} preemption: 0/{total} nodes are available: {', '.join(answers)}."
