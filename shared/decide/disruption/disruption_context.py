"""Shared context of the disruption methods: an indexed snapshot with the expected nodes of pods."""

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from shared.decide.disruption.budgets.budget_tracker import BudgetTracker
from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.candidates import Candidate, evaluate_candidate
from shared.decide.disruption.consolidation_policy import is_within_consolidate_after
from shared.decide.disruption.drift.drift import DRIFTED
from shared.decide.disruption.drift.drifted_condition import find_recovered_claims
from shared.decide.disruption.methods.replacement import ReplacementFinder
from shared.decide.disruption.savings.balanced_policy import BalancedEvaluator
from shared.decide.disruption.savings.disruption_cost import DisruptionPrices, EvictionCosts
from shared.decide.disruption.simulation.preferred_anti_affinity import find_kept_anti_affinity, require_anti_affinity
from shared.decide.disruption.simulation.simulation_builder import SimulationSetup, build_simulation_setup
from shared.decide.launch.money.limit_prices import compute_limit_usage, find_limit_prices
from shared.decide.provisioning.gang_planning import plan_pods
from shared.decide.scheduling.packing.reservation_manager import build_reservation_manager
from shared.model.core.metadata import is_condition_true
from shared.model.decisions.disruption_verdict import BlockedVerdict
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.spot_share import ShareUsage
from shared.model.kubernetes.pod import AffinityTerm
from shared.state.cluster_state import ClusterState
from shared.state.spot_shares.node_pool_shares import find_spot_shares, measure_node
from shared.state.state_node import StateNode

DEFAULT_SETTINGS: Final = DisruptionSettings()
NO_EXPECTED_PODS: Final[Mapping[str, str]] = MappingProxyType({})


class DisruptionContext:
    """Input of the disruption methods; one for each run, or for each validation of a command."""

    def __init__(
        self,
        cluster_state: ClusterState,
        options: SchedulingOptions,
        command_nodes: frozenset[str],
        node_by_pod: Mapping[str, str],
        settings: DisruptionSettings,
    ) -> None:
        """Plan the nodes of pending pods and of pods that leave their nodes."""
        self.cluster_state, self.options, self.command_nodes, self.settings = (
            cluster_state,
            options,
            command_nodes,
            settings,
        )
        plan_result = plan_pods(cluster_state, excluded=command_nodes, options=options)
        self.buffer_nodes = plan_result.list_buffer_nodes()
        command_pods = {pod.name for pod in cluster_state.snapshot.pods if pod.node_name in command_nodes}
        existing_node_by_pod = {
            pod: fit.node
            for fit in plan_result.without_buffer_pods().existing
            for pod in fit.pods
            if pod not in command_pods
        }
        self.expected_node_by_pod = {
            pod: node for pod, node in node_by_pod.items() if pod in command_pods
        } | existing_node_by_pod
        self._nominated_nodes = frozenset(self.expected_node_by_pod.values())
        self._prices = DisruptionPrices(eviction_usd=settings.eviction_price_usd, overlap=settings.overlap)
        self.budget_tracker = BudgetTracker(self.cluster_state, settings, command_nodes)
        self._recovered_claims = find_recovered_claims(cluster_state)
        self._kept_terms_by_removed: dict[frozenset[str], Mapping[str, tuple[AffinityTerm, ...]]] = {}
        self._kept_state_by_removed: dict[frozenset[str], ClusterState] = {}

    def has_drifted(self, state: StateNode) -> bool:
        """Return whether the NodeClaim has a Drifted condition that nothing in the snapshot contradicts."""
        claim = state.claim
        return (
            claim is not None
            and is_condition_true(claim.conditions, DRIFTED)
            and claim.name not in self._recovered_claims
        )

    def evaluate_nodes(self, *, eventual: bool = False) -> dict[str, Candidate | BlockedVerdict]:
        """Return, by name, the candidate or blocked verdict for each node that is not in a command."""
        return {
            state.name: self.evaluate_node(state, eventual=eventual)
            for state in self.cluster_state.nodes
            if state.name not in self.command_nodes
        }

    def evaluate_node(self, state: StateNode, *, eventual: bool = False) -> Candidate | BlockedVerdict:
        """Return *state* as a candidate, or why it is blocked; *eventual*: for drift."""
        return evaluate_candidate(
            state, self.cluster_state, self._nominated_nodes, "eventual" if eventual else "graceful"
        )

    def set_up_simulation(
        self,
        preferred_candidates: Iterable[Candidate],
        removed_nodes: Collection[str],
        *,
        keeps_anti_affinity: bool = False,
    ) -> SimulationSetup:
        """Build the simulation without *removed_nodes*; staying nodes are filled first, *preferred_candidates* last.

        The order of *preferred_candidates* is kept. *keeps_anti_affinity*: require preferred anti-affinity that holds.
        """
        kept_terms = self.find_kept_anti_affinity(removed_nodes) if keeps_anti_affinity else {}
        cluster_state = self._require_anti_affinity(kept_terms, removed_nodes) if kept_terms else self.cluster_state
        position_by_node = {
            candidate.name: place for place, candidate in enumerate(reversed(list(preferred_candidates)), start=1)
        }
        states = sorted(
            cluster_state.nodes,
            key=lambda state: (
                not state.is_initialized(),
                self.has_drifted(state),
                position_by_node.get(state.name, 0),
                state.name,
            ),
        )
        setup = build_simulation_setup(
            cluster_state, states, {*self.command_nodes, *removed_nodes}, self.expected_node_by_pod, self.options
        )
        setup = replace(setup, kept_anti_affinity=kept_terms)
        self.close_nodes(
            setup,
            lambda state: not state.is_initialized() or self.cluster_state.find_zonal_shift(state.meta) is not None,
        )
        if self.settings.frees_limits:
            setup.simulation.freed_limits_by_node = self._find_freed_limits(setup)
        if setup.simulation.packing.share_usages:
            setup.simulation.share_usage_by_node = self._measure_shares(setup)
        return setup

    def build_evaluator(self, candidates: Mapping[str, Candidate]) -> BalancedEvaluator:
        """Return the evaluator of savings; *candidates*: by name, whether or not a method selects them."""
        return BalancedEvaluator(
            self.cluster_state, candidates, self._prices, self.settings.forecasts, self.settings.run_times
        )

    def build_eviction_costs(self) -> EvictionCosts:
        """Return the cost of the evictions from candidates of this run."""
        return EvictionCosts(self._prices, self.cluster_state.taken_at)

    def find_kept_anti_affinity(self, removed_nodes: Collection[str]) -> Mapping[str, tuple[AffinityTerm, ...]]:
        """Return, by pod, the preferred anti-affinity that is kept if *removed_nodes* are gone."""
        key = frozenset(removed_nodes)
        if key not in self._kept_terms_by_removed:
            gone_nodes = {*self.command_nodes, *removed_nodes}
            staying_nodes = [
                state
                for state in self.cluster_state.nodes
                if state.name not in gone_nodes and not state.is_marked_for_deletion()
            ]
            self._kept_terms_by_removed[key] = find_kept_anti_affinity(
                self.cluster_state, staying_nodes, self.expected_node_by_pod, self.options
            )
        return self._kept_terms_by_removed[key]

    def _require_anti_affinity(
        self, kept_terms: Mapping[str, tuple[AffinityTerm, ...]], removed_nodes: Collection[str]
    ) -> ClusterState:
        """Return the cluster with *kept_terms*, by pod, as requirements; these are kept if *removed_nodes* are gone."""
        key = frozenset(removed_nodes)
        if key not in self._kept_state_by_removed:
            snapshot = self.cluster_state.snapshot
            pods = tuple(
                require_anti_affinity(pod, kept_terms[pod.name]) if pod.name in kept_terms else pod
                for pod in snapshot.pods
            )
            self._kept_state_by_removed[key] = ClusterState(replace(snapshot, pods=pods))
        return self._kept_state_by_removed[key]

    def _find_freed_limits(self, setup: SimulationSetup) -> dict[int, tuple[str, Mapping[str, int]]]:
        """Return, by node of a NodePool with limits, the pool and the node's share of the limits."""
        limit_prices = find_limit_prices(self.cluster_state, self.options.money)
        pools_with_limits = setup.simulation.packing.remaining_limits
        states = (
            state
            for state in self.cluster_state.nodes
            if state.pool in pools_with_limits and state.name in setup.simulation.node_numbers
        )
        return {
            setup.simulation.node_numbers[state.name]: (
                state.pool,
                dict(compute_limit_usage(state, limit_prices).amounts),
            )
            for state in states
        }

    def _measure_shares(self, setup: SimulationSetup) -> dict[int, tuple[str, ShareUsage]]:
        """Return, by node of a NodePool with a Spot share, the pool and what the node counts."""
        cluster, numbers = self.cluster_state.snapshot, setup.simulation.node_numbers
        share_by_pool = find_spot_shares(cluster)
        return {
            numbers[state.name]: (state.pool, measure_node(share_by_pool[state.pool], state, cluster))
            for state in self.cluster_state.nodes
            if state.pool in share_by_pool and state.name in numbers
        }

    def close_nodes(self, setup: SimulationSetup, should_close: Callable[[StateNode], bool]) -> None:
        """Seal the nodes for which *should_close* is true: they accept no more pods."""
        simulation = setup.simulation
        for state in self.cluster_state.nodes:
            number = simulation.node_numbers.get(state.name)
            if number is not None and should_close(state):
                simulation.packing.closed_nodes |= 1 << number

    def build_replacement_finder(self, setup: SimulationSetup) -> ReplacementFinder:
        """Return the replacement finder for *setup*."""
        return ReplacementFinder(
            setup.axes,
            build_reservation_manager(setup.simulation.packing, self.cluster_state.snapshot),
            spot_to_spot=self.settings.spot_to_spot,
            max_instance_types=self.options.max_instance_types,
            claim_names=frozenset(claim.name for claim in self.cluster_state.snapshot.node_claims),
        )

    def close_recently_changed_nodes(self, setup: SimulationSetup) -> None:
        """Seal the nodes within their consolidateAfter, as consolidation requires."""
        self.close_nodes(setup, lambda state: is_within_consolidate_after(state, self.cluster_state))
