"""Local search: improve a small plan by removing some of its nodes and placing their pods again.

The packing problem models only some constraints, and first-fit ignores prices; so pods with other constraints, or pods
on a few whole nodes, may end up on expensive nodes. Here all checks of the packing apply: the rest of the plan is
restored as it was, each node with the instance type that it would be launched as, and the pods of the removed nodes
follow in one of several ways. The result is a plan like any other. Each trial visits every pod; the search is for
clusters where that is cheap.
"""

import math
from collections.abc import Iterator
from typing import Final

from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.decide.scheduling.optimization.large_neighborhood_search import generate_coin_flips
from shared.decide.scheduling.packing.plan_completion import Plan, PlanStart
from shared.decide.scheduling.search.acceptance import Acceptance
from shared.decide.scheduling.search.neighborhood import Neighborhood, NodeCosts
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate
from shared.model.core.resources import Vector

MAX_PODS: Final = 500
"""Plans with more pods are not improved."""
MAX_EFFORT_STEPS: Final = 2_100
"""Maximum number of steps without a saving: trial placements on nodes, and pods that are restored."""
STEPS_PER_NODE: Final = 150
"""The same for each node of the cheapest plan, if that is more."""
STEPS_PER_SAVED_PERCENT: Final = 2_000
"""Number of further steps for each percent by which a plan became cheaper: more can be saved then."""
MAX_EXTENDED_STEPS: Final = 8_000
"""Maximum number of further steps in total."""
STEPS_PER_TURN: Final = 250
"""Number of steps for one start until another may continue."""
GOOD_COST_RATIO: Final = 1.01
"""If a plan costs at most this ratio of the lower bound, nothing is improved: too little can be saved."""
MAX_STARTS: Final = 3
"""Number of plans that are improved, the cheapest first: plans that are nearly the best lead to other local optima."""
EXPECTED_SAVING_RATIO: Final = 2
"""A start is expected to save this multiple of what it saved in its last turn."""
IDLE_TURN_COST_RATIO: Final = 0.005
"""Each turn in a row that saved nothing counts like this share of the cost, so that other starts continue as well."""
MIN_SAVING_RATIO: Final = 1e-4
"""Minimum saving, as a share of the price."""
MAX_FAILED_TRIALS_PER_NODE: Final = 12
"""The search ends after this number of failed trials per node."""
MAX_NEIGHBORHOOD_NODES: Final = 3
"""Number of nodes of one neighborhood: trials remove the first of them alone, and with each other one."""
CPU_CAP_LEVELS_BY_REMOVED_COUNT: Final = {1: (0, 1), 2: (0, 1, 2)}
"""Caps of the milli cpu of new nodes, by the number of removed nodes.

0 means none, so all pods may go to one node; *n* means the *n*-th power of two below the milli cpu of the removed
nodes' pods. Removals of three nodes and lower caps save little for their number of steps.
"""


class LocalSearch:
    """Improves a plan in place."""

    def __init__(self, plan_start: PlanStart, plan: Plan, acceptance: Acceptance) -> None:
        """Start with *plan*, made from *plan_start*; only plans that *acceptance* accepts replace it."""
        self._plan_start, self._acceptance = plan_start, acceptance
        self.plan = plan
        self._effort, self._failed_trials, self._turn = 0, 0, 0
        self._last_saving, self._idle_turns = 0.0, 0
        self._stages = {
            aim: stage for pod_class in plan_start.classes for stage, aim in enumerate(pod_class.compiled_stages)
        }
        self._tried_trials: set[tuple[frozenset[int], int | None]] = set()
        """The trials that did not improve the plan: the numbers of the removed nodes, and the cap of the milli cpu."""
        self._node_costs: NodeCosts = {}
        self._coin_flips = generate_coin_flips()
        self._cached_wastes: dict[tuple[NarrowedTemplate, Vector], float] = {}
        self._supply_by_state: dict[NarrowedTemplate, list[tuple[float, float]]] = {}
        """Prices of a unit of cpu and of memory of the possible instance types."""

    @property
    def expected_rank(self) -> tuple[bool, float]:
        """The rank that the plan is expected to reach: plans that became cheaper lately will do so again."""
        has_rejected_node_count, cost = self._acceptance.rank(self.plan)
        expected_cost = cost * (1 + IDLE_TURN_COST_RATIO * self._idle_turns) - EXPECTED_SAVING_RATIO * self._last_saving
        return has_rejected_node_count, expected_cost

    def improve(self, target_cost: float, effort: int) -> int:
        """Continue with trials until the plan costs *target_cost*, *effort* is spent, or too many in a row failed.

        Return the number of steps, 0 if no trial is left.
        """
        self._effort, cost_before = effort, self.plan.compute_cost()
        nodes_by_waste = self._sort_nodes_by_waste()
        while (
            nodes_by_waste
            and self._effort > 0
            and self._failed_trials < MAX_FAILED_TRIALS_PER_NODE * len(nodes_by_waste)
            and self.plan.compute_cost() > target_cost
            and not self._plan_start.packing.is_late()
        ):
            better_plan = self._search_neighborhood(nodes_by_waste, self._turn)
            self._turn += 1
            if better_plan is not None:
                self.plan, self._failed_trials, self._turn = better_plan, 0, 0
                nodes_by_waste = self._sort_nodes_by_waste()
        cost = self.plan.compute_cost()
        self._last_saving = cost_before - cost if cost < cost_before else 0.0  # the cost of a plan can be infinite
        self._idle_turns = 0 if self._last_saving > 0 else self._idle_turns + 1
        return effort - self._effort

    def _search_neighborhood(self, nodes_by_waste: list[OpenNodeClaim], turn: int) -> Plan | None:
        """Return a cheaper plan in which a few nodes differ; None if no trial finds it."""
        nodes = self._choose_neighborhood(nodes_by_waste, turn)
        neighborhood: Neighborhood | None = None
        max_cost = math.inf if self._acceptance.is_small else self.plan.compute_cost() * (1 - MIN_SAVING_RATIO)
        for removed_nodes, max_cpu_milli in _list_trials(nodes):
            trial = frozenset([node.number for node in removed_nodes]), max_cpu_milli
            self._failed_trials += 1
            if trial in self._tried_trials:
                continue
            self._tried_trials.add(trial)
            neighborhood = neighborhood or self._build_neighborhood(nodes)
            plan = neighborhood.run_trial(removed_nodes, max_cpu_milli, max_cost)
            if self._acceptance.is_improvement(plan, self.plan, MIN_SAVING_RATIO):
                self._effort -= neighborhood.steps
                self._tried_trials.clear()
                return neighborhood.keep_trial()
        self._effort -= 0 if neighborhood is None else neighborhood.steps
        return None

    def _build_neighborhood(self, nodes: list[OpenNodeClaim]) -> Neighborhood:
        return Neighborhood(self._plan_start, self.plan, nodes, self._stages, self._node_costs)

    def _sort_nodes_by_waste(self) -> list[OpenNodeClaim]:
        """Return the new nodes, sorted by the cost above the value of their pods, the highest first."""
        nodes = (node for node in self.plan.packing.open_nodes if node.pods)
        return sorted(nodes, key=lambda node: (-self._compute_waste(node), node.number))

    def _compute_waste(self, node: OpenNodeClaim) -> float:
        """Return the price of *node* above the lowest fractional price of the cpu and memory that its pods use."""
        key, type_index = (node.state, node.used), node.template.type_index
        if key not in self._cached_wastes:
            if node.state not in self._supply_by_state:
                priced_types = type_index.sort_by_price(node.state.requirements, node.state.mask)
                self._supply_by_state[node.state] = _drop_dominated_prices(
                    [
                        (price / allocatable[0], price / allocatable[1])
                        for price, allocatable in (
                            (priced.offering.price_usd_per_hour, type_index.allocatable[priced.bit.bit_length() - 1])
                            for priced in priced_types
                        )
                        if allocatable[0] > 0 and allocatable[1] > 0
                    ]
                )
            cpu, memory = node.used[:2]
            min_price = min(
                [
                    max(cpu * cpu_price, memory * memory_price)
                    for cpu_price, memory_price in self._supply_by_state[node.state]
                ],
                default=0.0,
            )
            current_type = type_index.find_cheapest(node.state.requirements, node.mask)
            price = 0.0 if current_type is None else current_type.offering.price_usd_per_hour
            self._cached_wastes[key] = price - min_price
        return self._cached_wastes[key]

    def _choose_neighborhood(self, nodes_by_waste: list[OpenNodeClaim], turn: int) -> list[OpenNodeClaim]:
        """Return the nodes that trials may remove: a node by its turn, and other nodes, of its NodePool first."""
        anchor = nodes_by_waste[choose_anchor(turn, len(nodes_by_waste))]
        same_pool_nodes = [node for node in nodes_by_waste if node is not anchor and node.template is anchor.template]
        other_pool_nodes = [node for node in nodes_by_waste if node.template is not anchor.template]
        return self._draw(anchor, [*same_pool_nodes, *other_pool_nodes], MAX_NEIGHBORHOOD_NODES)

    def _draw(self, first: OpenNodeClaim, further_nodes: list[OpenNodeClaim], size: int) -> list[OpenNodeClaim]:
        """Return *first* and up to *size* - 1 of *further_nodes*, each drawn with a chance of one half."""
        chosen_nodes = [first]
        for node in (*further_nodes, *further_nodes):
            if len(chosen_nodes) >= size:
                break
            if node not in chosen_nodes and next(self._coin_flips):
                chosen_nodes.append(node)
        return chosen_nodes


def _drop_dominated_prices(prices: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the pairs of *prices* for which no other pair is as low in both."""
    undominated_prices: list[tuple[float, float]] = []
    for cpu_price, memory_price in sorted(prices):
        if not undominated_prices or memory_price < undominated_prices[-1][1]:
            undominated_prices.append((cpu_price, memory_price))
    return undominated_prices


def choose_anchor(turn: int, node_count: int) -> int:
    """Return the position, among the nodes by waste, of the node that all trials of a turn remove.

    Every second turn goes through all nodes, the other turns only through the half with the most waste: these nodes
    save most.
    """
    candidate_count = node_count if turn % 2 else (node_count + 1) // 2
    return turn // 2 % candidate_count


def _list_trials(nodes: list[OpenNodeClaim]) -> Iterator[tuple[list[OpenNodeClaim], int | None]]:
    """Yield the nodes that a trial removes, and the maximum milli cpu of new nodes.

    Trials remove the first of *nodes* alone, and with each other one.
    """
    first, *other_nodes = nodes
    for removed_nodes in [[first], *([first, other] for other in other_nodes)]:
        for level in CPU_CAP_LEVELS_BY_REMOVED_COUNT[len(removed_nodes)]:
            yield removed_nodes, _compute_cpu_cap(removed_nodes, level)


def _compute_cpu_cap(removed_nodes: list[OpenNodeClaim], level: int) -> int | None:
    """Return the *level*-th power of two of cores below what the pods of *removed_nodes* request, in milli cpu."""
    cores = sum(node.used[0] for node in removed_nodes) // 1000
    return 1000 << max(0, cores.bit_length() - level) if level else None


def improve_plans(plan_start: PlanStart, plans: list[Plan], acceptance: Acceptance, lower_bound: float) -> list[Plan]:
    """Return improvements of the best of *plans*; *lower_bound* is a lower bound of the cost of any plan.

    With Spot shares, nothing is improved: a plan would become cheaper by splitting on-demand nodes into small ones,
    which raises the number of Spot nodes.
    """
    if plan_start.packing.share_usages or sum(len(pod_class.pods) for pod_class in plan_start.classes) > MAX_PODS:
        return []
    plan_by_cost = {
        round(candidate.compute_cost(), 6): candidate
        for candidate in reversed(plans)
        if candidate.is_as_complete_as(acceptance.greedy) and not candidate.has_relaxed_min_values()
    }
    starts = sorted(plan_by_cost.values(), key=acceptance.rank)[:MAX_STARTS]
    if any(plan.compute_cost() <= lower_bound * GOOD_COST_RATIO for plan in starts):
        return []
    searches = [LocalSearch(plan_start, plan, acceptance) for plan in starts]
    max_steps = max(MAX_EFFORT_STEPS, STEPS_PER_NODE * starts[0].count_nodes()) if starts else 0
    remaining_steps, active_searches = max_steps, dict.fromkeys(searches)
    for search in searches:
        remaining_steps -= _improve_in_turn(search, lower_bound, active_searches)
    further_steps = MAX_EXTENDED_STEPS
    while active_searches and remaining_steps > 0:
        best_search = min(active_searches, key=lambda candidate: candidate.expected_rank)
        cost_before = best_search.plan.compute_cost()
        remaining_steps -= _improve_in_turn(best_search, lower_bound, active_searches)
        cost = best_search.plan.compute_cost()
        saved_percent = 100 * (1 - cost / cost_before) if cost < cost_before else 0.0
        extension = min(further_steps, int(STEPS_PER_SAVED_PERCENT * saved_percent))
        remaining_steps = min(max_steps, remaining_steps + extension)
        further_steps -= extension
    return [finished_search.plan for finished_search in searches]


def _improve_in_turn(search: LocalSearch, target_cost: float, active_searches: dict[LocalSearch, None]) -> int:
    """Give *search* its turn, and remove it from *active_searches* if no trial is left; return the number of steps."""
    steps = search.improve(target_cost, STEPS_PER_TURN)
    if not steps:
        del active_searches[search]
    return steps
