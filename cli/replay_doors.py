"""Who answers a replay where the cycle asked the world: what was kept of the answers, and nothing else."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from shared.actions.apply import Outcome
from shared.launch.groups import LaunchPlan
from shared.launch.ledger import Book
from shared.launch.subnets import Addresses
from shared.model.action import Action, LaunchInstances
from shared.model.catalogue import Catalogue
from shared.model.cluster import Cluster
from shared.model.ec2 import LaunchTemplate
from shared.model.nodes import NodeClaim
from shared.report.journal import Done
from shared.report.observed import Kept, Round, renamed


def alike(action: Action) -> Action:
    """Answer *action* as it is compared: of a launch all but user data, and names that come of it."""
    return replace(action, group=renamed(action.group)) if isinstance(action, LaunchInstances) else action


class Results:
    """What became of actions, by what they were; of others that all went well."""

    def __init__(self, done: Iterable[Done]) -> None:
        """Know what the journal knows."""
        self._known: dict[bytes, list[Done]] = defaultdict(list)
        for one in done:
            self._known[_key(one.action)].append(one)

    def perform(
        self, actions: Iterable[Action], *, is_guarded: bool = False, is_last: bool = False
    ) -> tuple[Outcome, ...]:
        """Do nothing, and answer what became of each then."""
        del is_guarded, is_last
        return tuple(self._of(one) for one in actions)

    def _of(self, action: Action) -> Outcome:
        known = self._known.get(_key(action))
        if not known:
            return Outcome(action=action, result="done")
        then = known.pop(0)
        return msgspec.convert({"action": action, "result": then.result, "message": then.message}, Outcome)


def _key(action: Action) -> bytes:
    return msgspec.json.encode(alike(action), order="deterministic")


class Relaunching:
    """The table, the API server and EC2 as a launch found them then; to what was not asked then nobody answers."""

    def __init__(
        self, rounds: Sequence[Round], results: Results, made: Iterable[NodeClaim] = (), unmade: Iterable[str] = ()
    ) -> None:
        """Know *rounds*; *made* are claims that there were not then, *unmade* those that there are not now."""
        self._rounds, self._results = list(rounds), results
        self._made, self._unmade = tuple(made), frozenset(unmade)
        self._seen: Cluster | None = None
        self._round: Round | None = None

    def look(self, cluster: Cluster) -> tuple[Cluster, tuple[Book, ...], Addresses | None]:
        """Answer what was seen next."""
        is_first = self._seen is None
        self._round = self._rounds.pop(0) if self._rounds else None
        self._seen = _after(self._seen or cluster, self._round)
        claims = [one for one in self._seen.node_claims if one.name not in self._unmade]
        if self._round is None:
            claims = [one for one in claims if one.is_launched() or one.is_deleting()]
        if is_first:
            claims += self._made
        seen = replace(self._seen, node_claims=tuple(sorted(claims, key=lambda one: one.name)))
        known = self._round or Round(at=seen.taken_at)
        return seen, known.books, known.addresses

    def promise(self, plan: LaunchPlan, cluster: Cluster) -> LaunchPlan:
        """Answer *plan* without what another function was quicker with then."""
        del cluster
        lost = self._round.overtaken if self._round is not None else ()
        return replace(plan, launches=tuple(one for one in plan.launches if one.group.name not in lost))

    def perform(self, actions: Iterable[Action]) -> tuple[Outcome, ...]:
        """Answer what became of *actions* then, with what EC2 said to launches."""
        return tuple(self._answered(one) for one in self._results.perform(actions))

    def _answered(self, one: Outcome) -> Outcome:
        if not isinstance(one.action, LaunchInstances) or self._round is None:
            return one
        name = one.action.group.name
        answer = dict(self._round.answers).get(name)
        if answer is None:
            return one
        sent = next((each for each in self._round.written if each.name == name), one.action.group)
        return replace(one, group=replace(sent, result=answer))


def _after(cluster: Cluster, known: Round | None) -> Cluster:
    if known is None:
        return cluster
    claims = {one.name: one for one in cluster.node_claims if one.name not in known.gone}
    claims |= {one.name: one for one in known.claims}
    return replace(
        cluster,
        taken_at=known.at,
        node_claims=tuple(one for _, one in sorted(claims.items())),
        unavailable=cluster.unavailable if known.unavailable is None else known.unavailable,
        launch_groups=known.launch_groups,
    )


class Rekept:
    """What `lifecycle` was answered then."""

    def __init__(self, kept: Kept, sold: Catalogue | None) -> None:
        """Know *kept*, and the catalogue that overlays were tried on."""
        self._kept, self._sold = kept, sold

    def spared(self, actions: Iterable[Action], cluster: Cluster) -> tuple[str, ...]:
        """Answer the instances that had a claim after all."""
        del actions, cluster
        return self._kept.spared

    def templates(self) -> tuple[LaunchTemplate, ...] | None:
        """Answer the launch templates that there were, if that was asked."""
        return self._kept.templates

    def is_tidying(self, cluster: Cluster) -> bool:
        """Whether it was time to look for launch templates that nobody uses."""
        del cluster
        return self._kept.is_tidying

    def overlaid(self, cluster: Cluster) -> Cluster:
        """Answer *cluster* with the NodeOverlays of then."""
        kept = self._kept
        if not kept.overlays or kept.overlaid_at is None:
            return cluster
        return replace(cluster, node_overlays=kept.overlays, catalogue=self._sold, taken_at=kept.overlaid_at)
