"""What commands see of the cluster, and what is to be kept in mind of them by all who decide."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.disruption.budgets import is_going
from shared.disruption.proposals import is_touched
from shared.model.cluster import Cluster
from shared.model.commands import Command, Phase, Standing, Target
from shared.model.state import StateNode, state_nodes
from shared.scheduling.placement import Placement

MARKED_FROM: Final[frozenset[Phase]] = frozenset(("LAUNCHED", "INITIALIZED", "DRAINING"))
"""From here on the pods of the targets are planned for as if they were leaving already."""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """The snapshot, indexed for commands."""

    cluster: Cluster
    states: tuple[StateNode, ...]
    """Sorted by name."""
    by_claim: Mapping[str, StateNode]

    @property
    def now(self) -> datetime:
        """When the snapshot was taken."""
        return self.cluster.taken_at

    def of(self, target: Target) -> StateNode | None:
        """Answer the machine that *target* is, while it is; None once it is gone."""
        state = self.by_claim.get(target.claim)
        same = state is not None and state.claim is not None and state.claim.meta.uid == target.claim_uid
        return state if same else None

    def staying(self, command: Command) -> tuple[StateNode, ...]:
        """Answer those of its targets that are not on their way out yet."""
        known = (self.of(target) for target in command.targets)
        return tuple(state for state in known if state is not None and not is_going(state))

    def cannot_see(self, claim: str) -> bool:
        """Whether *claim* may be there though it is not seen."""
        return any(one.kind == "NodeClaim" and one.name == claim for one in self.cluster.problems)


def scene_of(cluster: Cluster) -> Scene:
    """Index the snapshot."""
    states = state_nodes(cluster)
    return Scene(
        cluster=cluster,
        states=states,
        by_claim={state.claim.name: state for state in states if state.claim is not None},
    )


def touched(scene: Scene) -> frozenset[str]:
    """Answer the names of nodes that bear a taint or a condition of ours: `tidy` may be taking them back right now."""
    return frozenset(state.name for state in scene.states if is_touched(state))


def busy(standings: Iterable[Standing]) -> frozenset[str]:
    """Answer the names of the nodes that open commands are about."""
    return frozenset(node for one in standings if one.is_open for node in one.command.nodes())


def leaving(standings: Iterable[Standing]) -> frozenset[str]:
    """Answer the names of the nodes whose pods are to be planned for: they go as soon as their replacements are fit."""
    return frozenset(node for one in standings if one.phase in MARKED_FROM for node in one.command.nodes())


def homes(scene: Scene, standings: Iterable[Standing]) -> dict[str, str]:
    """Answer where pods of open commands are expected: names of state nodes, by pod."""
    found: dict[str, str] = {}
    for one in standings:
        for pod, home in one.command.homes if one.is_open else ():
            state = scene.by_claim.get(home)
            found[pod] = state.name if state is not None else home
    return found


def spared(placement: Placement, cluster: Cluster, going: frozenset[str]) -> Placement:
    """Answer *placement* without what it says of pods that still run on nodes *going*: they only keep their room.

    What they need is on its way; if it does not come, they stay where they are.
    """
    deleted = {state.name for state in state_nodes(cluster) if state.is_marked()} if going else set[str]()
    running = {pod.name for pod in cluster.pods if pod.node_name in going and pod.node_name not in deleted}
    if not running:
        return placement
    fits = (replace(fit, pods=tuple(name for name in fit.pods if name not in running)) for fit in placement.existing)
    return replace(
        placement,
        existing=tuple(fit for fit in fits if fit.pods),
        new_nodes=tuple(node for node in placement.new_nodes if not running.issuperset(node.pods)),
        unschedulable=tuple(one for one in placement.unschedulable if one.pod not in running),
    )
