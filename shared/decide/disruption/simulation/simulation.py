"""Scheduling simulation: pods of some nodes are removed, placed elsewhere on trial, and restored.

It is built once per run. Nodes are in the order in which they are filled, staying nodes first. Between two commits
nodes only fill up, so a node that had no space for a pod and has not been changed since has none now.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from shared.decide.disruption.simulation.trial import Trial
from shared.decide.scheduling.optimization.packing_problem import build_packing_problem
from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.packing.launchable_templates import drop_stages_before, find_launchable_stage
from shared.decide.scheduling.packing.plan_completion import complete_plan
from shared.decide.scheduling.packing.rollback import begin_savepoint, commit_savepoint, roll_back
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.search.dual_value_warm_start import WarmStart, build_warm_start
from shared.decide.scheduling.search.guided_packing import GuidedPacking
from shared.model.core.metadata import Pairs
from shared.model.core.resources import CPU, MEMORY
from shared.model.karpenter.money_limit import CLUSTER_SCOPE
from shared.model.karpenter.spot_share import ShareUsage
from shared.model.kubernetes.pod import Pod

MAX_STEPS_PER_TRIAL: Final = 3000
"""Number of steps spent on a packing solution for the pods of one trial."""
MIN_PODS_WITH_ORDER: Final = 2
"""Fewer pods have no order."""


class SchedulingSimulation(msgspec.Struct, kw_only=True, eq=False):
    """The running pods in a packing, and trials that move them."""

    packing: FirstFitPacking
    resident_pods: dict[int, dict[str, Pod]] = msgspec.field(default_factory=dict)
    """By node: the movable pods that are on it now, by name."""
    trials: list[Trial] = msgspec.field(default_factory=list)
    """The trials that were begun and not ended, the innermost last."""
    recorded_count: int = 0
    """How many assignments of the packing are recorded as moves."""
    node_numbers: dict[str, int] = msgspec.field(default_factory=dict)
    """Numbers of the existing nodes, by name."""
    queued_class_by_pod: dict[str, tuple[int, PodEquivalenceClass]] = msgspec.field(default_factory=dict)
    """By movable pod: position in the queue, and pod equivalence class."""
    movable_pods: Mapping[str, Pod] = msgspec.field(default_factory=dict)
    """The movable pods, by name."""
    fixed_groups_by_node: dict[int, list[tuple[int, ...]]] = msgspec.field(default_factory=dict)
    """By node: the topology groups of the pods that cannot move and are removed with the node."""
    freed_limits_by_node: Mapping[int, tuple[str, Mapping[str, int]]] = msgspec.field(default_factory=dict)
    """By node: its NodePool, and the part of the NodePool's limits that is free again once the node is cleared."""
    share_usage_by_node: Mapping[int, tuple[str, ShareUsage]] = msgspec.field(default_factory=dict)
    """By node of a NodePool with a Spot share: its NodePool, and what it counts."""
    warm_start: WarmStart | None = None
    """The warm start (dual values) for the pods that can be placed by a packing solution."""

    def begin(self, *, max_new_nodes: int = 0) -> Trial:
        """Begin a trial that may open up to *max_new_nodes*."""
        self.packing.assignments.clear()
        self.recorded_count = 0
        begin_savepoint(self.packing, max_new_nodes)
        trial = Trial()
        self.trials.append(trial)
        return trial

    def commit(self) -> None:
        """Make the last trial part of the enclosing trial, or of the base state."""
        commit_savepoint(self.packing)
        trial = self.trials.pop()
        if self.trials:
            outer_trial = self.trials[-1]
            outer_trial.cleared_nodes = trial.cleared_nodes | outer_trial.cleared_nodes
            outer_trial.placements.extend(trial.placements)

    def roll_back(self) -> None:
        """Undo the last trial."""
        roll_back(self.packing)
        trial, node_count = self.trials.pop(), len(self.packing.nodes.hosts)
        self.resident_pods.update(trial.cleared_nodes)
        for pod, number in trial.placements:
            if number < node_count:
                self.resident_pods[number].pop(pod.name, None)
            else:
                self.resident_pods.pop(number, None)

    def list_receivers(self) -> list[str]:
        """Return the names of the existing nodes on which the last trial and its enclosing trials have placed pods."""
        nodes = self.packing.existing_nodes
        numbers = {number for trial in self.trials for _, number in trial.placements if number < len(nodes)}
        return sorted(nodes[number].name for number in numbers)

    def seal_open_nodes(self) -> None:
        """Close the nodes that are open so far: they accept no pods in later trials."""
        packing = self.packing
        packing.closed_nodes |= ((1 << len(packing.open_nodes)) - 1) << len(packing.existing_nodes)

    def clear_node(self, number: int) -> list[Pod]:
        """Remove node *number* and return its movable pods, which then need another node."""
        packing = self.packing
        if not any(number in trial.cleared_nodes for trial in self.trials):
            self._free_limits(number)
        resident_pods = self.resident_pods.get(number, {})
        self.trials[-1].cleared_nodes.setdefault(number, resident_pods)
        self.resident_pods[number] = {}
        packing.close_node(number)
        for pod in resident_pods.values():
            if pod.is_active() and pod.name in self.queued_class_by_pod:
                self._subtract_from_groups(self.queued_class_by_pod[pod.name][1].counting_groups, number)
        for group_numbers in self.fixed_groups_by_node.get(number, ()):
            self._subtract_from_groups(group_numbers, number)
        return list(resident_pods.values())

    def _free_limits(self, number: int) -> None:
        packing = self.packing
        if number in self.freed_limits_by_node:
            pool, freed_limits = self.freed_limits_by_node[number]
            for scope in (pool, CLUSTER_SCOPE):
                if scope in packing.remaining_limits:
                    limits = packing.remaining_limits[scope]
                    packing.remaining_limits[scope] = {key: limits[key] + freed_limits.get(key, 0) for key in limits}
        if number in self.share_usage_by_node:
            pool, usage = self.share_usage_by_node[number]
            packing.share_usages[pool] -= usage

    def place_pods(self, pods: Iterable[Pod]) -> list[PodEquivalenceClass]:
        """Place *pods* in queue order and return the pods that were not placed, by class.

        It stops at the first class that cannot be placed, unless other pods may make a place for it.
        """
        unplaced_classes = self.group_pods(pods)
        for pod_class in unplaced_classes:
            self._save_groups(pod_class.counting_groups)
        unplaced_classes = self._place_classes(unplaced_classes)
        self._record_placements()
        return unplaced_classes

    def _place_classes(self, unplaced_classes: list[PodEquivalenceClass]) -> list[PodEquivalenceClass]:
        has_dependencies = any(any(unplaced_class.binding_groups) for unplaced_class in unplaced_classes)
        while unplaced_classes:
            count_before = sum(len(unplaced_class.pods) for unplaced_class in unplaced_classes)
            for pod_class in unplaced_classes:
                pod_class.pods = self.packing.place(pod_class)
                if pod_class.pods and not has_dependencies:
                    return [unplaced_class for unplaced_class in unplaced_classes if unplaced_class.pods]
            unplaced_classes = [unplaced_class for unplaced_class in unplaced_classes if unplaced_class.pods]
            if (
                not has_dependencies
                or sum(len(unplaced_class.pods) for unplaced_class in unplaced_classes) == count_before
            ):
                break
        return unplaced_classes

    def place_pods_at(self, pods: Iterable[Pod], node_by_pod: Mapping[str, int]) -> list[PodEquivalenceClass]:
        """Place *pods* on their planned nodes where possible, else anywhere; return the unplaced pods by class.

        *node_by_pod*: numbers of nodes.
        """
        unplaced_pods = sorted(pods, key=lambda pod: (self.queued_class_by_pod[pod.name][0], pod.name))
        while unplaced_pods:
            rejected_pods = [
                pod
                for pod in unplaced_pods
                if pod.name not in node_by_pod or not self.place_pod_at(node_by_pod[pod.name], pod)
            ]
            if len(rejected_pods) == len(unplaced_pods):
                break
            unplaced_pods = rejected_pods
        return self.place_pods(unplaced_pods)

    def can_place_smallest_first(self, pods: Sequence[Pod]) -> bool:
        """Return whether *pods* fit on existing nodes if the smallest come first and take the nodes with most free CPU.

        Evicted pods are created again at once, in any order, and kube-scheduler prefers nodes with free resources. So a
        large pod may find that smaller pods have taken its place.
        """
        if len(pods) < MIN_PODS_WITH_ORDER:
            return True
        self.begin()
        nodes = self.packing.existing_nodes
        is_possible = True
        for pod in sorted(pods, key=lambda pod: (pod.spec.requests[CPU], pod.spec.requests[MEMORY], pod.name)):
            open_numbers = [number for number in range(len(nodes)) if not self.packing.closed_nodes >> number & 1]
            open_numbers.sort(key=lambda number: (-nodes[number].free[0], nodes[number].name))
            is_possible = any(self.place_pod_at(number, pod) for number in open_numbers)
            if not is_possible:
                break
        self.roll_back()
        return is_possible

    def place_pods_guided(self, pods: Iterable[Pod], max_price: float) -> list[PodEquivalenceClass]:
        """Place *pods* on existing nodes, the rest on new nodes by a packing solution; return the unplaced classes.

        The pods must be part of the warm start. If the solution costs more than *max_price* USD per hour, no pod is
        placed on a new node.
        """
        pod_classes = self.group_pods(pods)
        for pod_class in pod_classes:
            self._save_groups(pod_class.counting_groups)
            stage = find_launchable_stage(self.packing, pod_class)
            pod_class.pods = self.packing.place_on_existing_nodes(drop_stages_before(pod_class, stage))
        unplaced_classes = [unplaced_class for unplaced_class in pod_classes if unplaced_class.pods]
        if unplaced_classes and self.warm_start is not None:
            unplaced_classes = self._follow_solution(self.warm_start, unplaced_classes, max_price)
        self._record_placements()
        return [unplaced_class for unplaced_class in unplaced_classes if unplaced_class.pods]

    def _follow_solution(
        self, warm_start: WarmStart, unplaced_classes: list[PodEquivalenceClass], max_price: float
    ) -> list[PodEquivalenceClass]:
        unplaced_classes = warm_start.order_classes(
            {
                self.queued_class_by_pod[unplaced_class.pods[0].name][0]: unplaced_class
                for unplaced_class in unplaced_classes
            }
        )
        solution = warm_start.solve(
            warm_start.count_items(self.packing, unplaced_classes), MAX_STEPS_PER_TRIAL, max_price
        )
        if solution.price <= max_price:
            guide = GuidedPacking(self.packing)
            guide.follow_solution(unplaced_classes, warm_start.problem, solution)
            unplaced_classes = complete_plan(
                self.packing, [unplaced_class for unplaced_class in unplaced_classes if unplaced_class.pods]
            ).unplaced_classes
            guide.widen_nodes()
        return unplaced_classes

    def list_pods_on(self, nodes: Iterable[str]) -> list[Pod]:
        """Return the movable pods that are currently on *nodes*."""
        return [
            pod
            for name in nodes
            for pod in self.resident_pods[self.node_numbers[name]].values()
            if pod.name in self.queued_class_by_pod
        ]

    def prepare_warm_start(self, pods: Iterable[Pod]) -> None:
        """Compute the dual values of *pods*: a warm start for trials that place some of them by a packing solution."""
        queued_classes = [
            (self.queued_class_by_pod[pod_class.pods[0].name][0], pod_class) for pod_class in self.group_pods(pods)
        ]
        self.warm_start = (
            build_warm_start(
                build_packing_problem(self.packing, [pod_class for _, pod_class in queued_classes], everywhere=True),
                queued_classes,
            )
            if queued_classes
            else None
        )

    def place_pod_at(self, number: int, pod: Pod) -> bool:
        """Place *pod* on node *number* if possible, with relaxed preferences if necessary.

        Return whether it was placed.
        """
        pod_class = msgspec.structs.replace(self.queued_class_by_pod[pod.name][1], pods=[pod])
        self._save_groups(pod_class.counting_groups)
        stages = (aim for aim in pod_class.compiled_stages if not aim.stage.is_contradictory)
        return any(self.packing.place_on_node((number, pod_class, aim, pod_class.pods)) for aim in stages)

    def group_pods(self, pods: Iterable[Pod]) -> list[PodEquivalenceClass]:
        """Return *pods* grouped by class, in queue order."""
        entries_by_class: dict[PodEquivalenceClass, list[tuple[int, Pod]]] = {}
        for pod in pods:
            position, pod_class = self.queued_class_by_pod[pod.name]
            entries_by_class.setdefault(pod_class, []).append((position, pod))
        sorted_entries = sorted(entries_by_class.items(), key=lambda pair: min(place for place, _ in pair[1]))
        return [
            msgspec.structs.replace(entry_class, pods=[pod for _, pod in sorted(placed, key=lambda pair: pair[0])])
            for entry_class, placed in sorted_entries
        ]

    def _save_groups(self, group_numbers: Iterable[int]) -> None:
        if self.packing.savepoints:
            self.packing.savepoints[-1].save_groups(self.packing.topology, group_numbers)

    def _record_placements(self) -> None:
        """Record the new assignments of the packing as moves."""
        for number, _, _, placed_pods in self.packing.assignments[self.recorded_count :]:
            self.resident_pods.setdefault(number, {}).update((pod.name, pod) for pod in placed_pods)
            if self.trials:
                self.trials[-1].placements.extend((pod, number) for pod in placed_pods)
        self.recorded_count = len(self.packing.assignments)

    def _subtract_from_groups(self, group_numbers: tuple[int, ...], number: int) -> None:
        if group_numbers:
            self._save_groups(group_numbers)
            self.packing.topology.record_pods(group_numbers, self.packing.existing_nodes[number].node_domains, -1)


def list_pod_moves(
    simulation: SchedulingSimulation, pod_moves: Iterable[tuple[Pod, int]], new_node_names: Mapping[int, str]
) -> Pairs:
    """Return pod and node names in the order in which the pods were placed; *new_node_names*: by node number."""
    existing_nodes = simulation.packing.existing_nodes
    return tuple(
        (pod.name, existing_nodes[number].name if number < len(existing_nodes) else new_node_names[number])
        for pod, number in pod_moves
    )
