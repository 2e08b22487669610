"""Drift replacement: nodes that differ from their specification are replaced at any price, longest drifted first.

A node of a static NodePool is replaced by a node from the NodePool's template, independent of its pods.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from math import inf
from typing import Final

from msgspec.structs import replace

from shared.decide.disruption.budgets.budget_tracker import BudgetTracker
from shared.decide.disruption.budgets.workload_cooldown import WorkloadCooldown
from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.drift.drift import DRIFTED
from shared.decide.disruption.methods.proposed_command import ProposedCommand, sum_prices
from shared.decide.disruption.methods.replacement import ReplacementFinder
from shared.decide.disruption.methods.replacement_result import Replacement
from shared.decide.disruption.savings.disruption_cost import EvictionCosts, compute_disruption_cost
from shared.decide.disruption.simulation.simulation import list_pod_moves
from shared.decide.disruption.simulation.simulation_builder import SimulationSetup
from shared.decide.provisioning.static_capacity import build_static_node_claim, is_node_pool_usable
from shared.decide.scheduling.templates.template_builder import find_refusal
from shared.model.core.formatting import format_count
from shared.model.core.metadata import find_condition
from shared.model.core.resources import NODES
from shared.model.decisions.disruption_verdict import BlockedVerdict, Verdict
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.node_pool import NodePool
from shared.state.cluster_state import ClusterState

MAX_NEW_NODES_PER_NODE: Final = 100
"""Limit of new nodes that replace one drifted node."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def build_drift_sort_key(candidate: Candidate, eviction_costs: EvictionCosts) -> tuple[bool, datetime, float, str]:
    """Return a sort key: nodes without reschedulable pods first, then longest drifted, then the cheapest evictions."""
    drifted_condition = find_condition(candidate.claim.conditions, DRIFTED)
    since = drifted_condition.since if drifted_condition is not None else None
    evictions_usd = compute_disruption_cost((candidate,), eviction_costs, 0.0).usd
    return bool(candidate.reschedulable_pods), since or _EPOCH, evictions_usd, candidate.name


def get_drift_reason(candidate: Candidate) -> str:
    """Return the reason of the candidate's Drifted condition."""
    drifted_condition = find_condition(candidate.claim.conditions, DRIFTED)
    return drifted_condition.reason if drifted_condition is not None else DRIFTED


class DriftReplacement:
    """Replaces drifted nodes of dynamic NodePools, one node per command."""

    def __init__(
        self,
        setup: SimulationSetup,
        checks: tuple[ReplacementFinder, BudgetTracker, WorkloadCooldown],
        eviction_costs: EvictionCosts,
        is_over: Callable[[], bool],
    ) -> None:
        """Replace in the simulation of *setup*."""
        self._setup, self._simulation = setup, setup.simulation
        self._replacement_finder, self._budget_tracker, self._cooldown = checks
        self._eviction_costs, self._is_over = eviction_costs, is_over
        self.verdicts: dict[str, Verdict] = {}
        """Why candidates stay, by node name."""

    def find_replacements(self, candidates: Sequence[Candidate]) -> list[ProposedCommand]:
        """Return the replacements for *candidates*, which have drifted."""
        proposed_commands: list[ProposedCommand] = []
        self._simulation.prepare_warm_start(
            self._simulation.list_pods_on(drifted_candidate.name for drifted_candidate in candidates)
        )
        for candidate in sorted(candidates, key=lambda drifted: build_drift_sort_key(drifted, self._eviction_costs)):
            if self._is_over():
                self._block(candidate, "NotReached", "not reached within the time limit")
            elif (kept_verdict := self._cooldown.find_verdict(candidate)) is not None:
                self.verdicts[candidate.name] = kept_verdict
            elif not self._budget_tracker.has_budget_for((candidate,), DRIFTED):
                self._block(candidate, "Budget", self._budget_tracker.explain_exhausted_budget(candidate.pool, DRIFTED))
            elif (proposed_command := self._replace_node(candidate)) is not None:
                proposed_commands.append(proposed_command)
                self._budget_tracker.reserve((candidate,))
                self._cooldown.reserve((candidate,))
        return proposed_commands

    def _replace_node(self, candidate: Candidate) -> ProposedCommand | None:
        simulation = self._simulation
        open_count_before, savepoint = (
            len(simulation.packing.open_nodes),
            simulation.begin(max_new_nodes=MAX_NEW_NODES_PER_NODE),
        )
        unplaced_classes = simulation.place_pods_guided(
            simulation.clear_node(simulation.node_numbers[candidate.name]), inf
        )
        unplannable_pods = [name for pod in candidate.state.pods if (name := pod.name) in self._setup.unplannable_pods]
        open_nodes = [node for node in simulation.packing.open_nodes[open_count_before:] if node.pods]
        reservation_manager = self._replacement_finder.copy_reservation_manager()
        committed_type = candidate.instance_type if candidate.is_committed else ""
        results = [
            self._replacement_finder.find_at_any_price(node, reservation_manager, "" if position else committed_type)
            for position, node in enumerate(open_nodes)
        ]
        replacements = [replacement for replacement in results if isinstance(replacement, Replacement)]
        if unplaced_classes or unplannable_pods or len(replacements) < len(results):
            simulation.roll_back()
            pod_names = unplannable_pods or [pod.name for pod_class in unplaced_classes for pod in pod_class.pods]
            subject = f"pod {pod_names[0]}" if len(pod_names) == 1 else format_count(len(pod_names), "pod")
            message = (
                (f"the node has drifted, but {subject} cannot be scheduled elsewhere")
                if pod_names
                else "its reservations are used up"
            )
            self._block(candidate, "PodsHaveNoPlace", message)
            return None
        new_nodes = [
            self._replacement_finder.accept(replacement, simulation.movable_pods) for replacement in replacements
        ]
        name_by_number = {
            len(simulation.packing.existing_nodes) + replacement.open_node_claim.number: node.name
            for replacement, node in zip(replacements, new_nodes, strict=True)
        }
        proposed_command = ProposedCommand(
            method="Drift",
            reason=DRIFTED,
            targets=(candidate,),
            new_nodes=tuple(new_nodes),
            moves=list_pod_moves(simulation, savepoint.placements, name_by_number),
            price_usd_per_hour=sum_prices((candidate,)),
            message=f"drifted: {get_drift_reason(candidate)}",
        )
        simulation.commit()
        simulation.seal_open_nodes()
        return proposed_command

    def _block(self, candidate: Candidate, reason: str, message: str) -> None:
        self.verdicts[candidate.name] = BlockedVerdict(node=candidate.name, reason=reason, message=message)


def replace_static_nodes(
    candidates: Iterable[Candidate],
    cluster_state: ClusterState,
    budget_tracker: BudgetTracker,
    command_nodes: frozenset[str],
    eviction_costs: EvictionCosts,
    cooldown: WorkloadCooldown,
) -> tuple[list[ProposedCommand], list[Verdict]]:
    """Return the replacements of drifted *candidates* in static NodePools, and why other candidates stay."""
    candidates_by_pool: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        candidates_by_pool.setdefault(candidate.pool.name, []).append(candidate)
    proposed_commands: list[ProposedCommand] = []
    verdicts: list[Verdict] = []
    for _, pool_candidates in sorted(candidates_by_pool.items()):
        pool_candidates.sort(key=lambda drifted: build_drift_sort_key(drifted, eviction_costs))
        allowed_nodes = _count_allowed_nodes(pool_candidates[0].pool, cluster_state, command_nodes)
        for candidate in pool_candidates:
            if (kept_verdict := cooldown.find_verdict(candidate)) is not None:
                verdicts.append(kept_verdict)
                continue
            message = "" if allowed_nodes > 0 else _explain_missing_capacity(candidate.pool, cluster_state)
            message = message or (
                ""
                if budget_tracker.has_budget_for((candidate,), DRIFTED)
                else budget_tracker.explain_exhausted_budget(candidate.pool, DRIFTED)
            )
            if message:
                verdicts.append(BlockedVerdict(node=candidate.name, reason="Budget", message=message))
                continue
            allowed_nodes -= 1
            budget_tracker.reserve((candidate,))
            cooldown.reserve((candidate,))
            proposed_commands.append(_build_static_replacement(candidate, cluster_state))
    return proposed_commands, verdicts


def _build_static_replacement(candidate: Candidate, cluster_state: ClusterState) -> ProposedCommand:
    digest = sha256(f"{candidate.pool.meta.uid}/{candidate.claim.meta.uid}".encode()).hexdigest()[:10]
    claim = build_static_node_claim(candidate.pool, f"{candidate.pool.name}-{digest}", cluster_state.snapshot)
    return ProposedCommand(
        method="StaticDrift",
        reason=DRIFTED,
        targets=(candidate,),
        static_claims=(claim,),
        price_usd_per_hour=0.0,
        message=f"drifted: {get_drift_reason(candidate)}",
    )


def _explain_missing_capacity(pool: NodePool, cluster_state: ClusterState) -> str:
    cluster = cluster_state.snapshot
    if not is_node_pool_usable(pool, cluster):
        refusal = find_refusal(replace(pool, replicas=None), cluster, SchedulingOptions())
        if refusal is not None:
            return f"NodePool {pool.name} cannot launch a replacement: {refusal.message}"
    return f"NodePool {pool.name} has no room for a replacement"


def _count_allowed_nodes(pool: NodePool, cluster_state: ClusterState, command_nodes: frozenset[str]) -> int:
    """Return how many nodes the static *pool* may have in addition to its replicas."""
    pool_nodes = [state for state in cluster_state.nodes if state.claim is not None and state.pool == pool.name]
    active_nodes = [state for state in pool_nodes if not state.is_marked_for_deletion()]
    if len(active_nodes) > (pool.replicas or 0) + len([state for state in active_nodes if state.name in command_nodes]):
        return 0
    if not is_node_pool_usable(pool, cluster_state.snapshot):
        return 0
    limits = dict(pool.limits.amounts) if pool.limits is not None else {}
    return max(limits.get(NODES, len(pool_nodes) + MAX_NEW_NODES_PER_NODE) - len(pool_nodes), 0)
