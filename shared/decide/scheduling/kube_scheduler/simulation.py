"""Simulation of kube-scheduler without nominated node names: pods in queue order, nodes by score.

It contains the filters that a plan can violate (resources, taints, labels, ports, hard spread and affinity) and the
scores that decide where equal pods go (least allocated, balanced allocation, preferred labels, PreferNoSchedule taints,
soft constraints). A group of pods without topology constraints costs one heap operation per pod; a group with
constraints costs one check of every node per pod, as long as steps are left.

Known differences: ties are resolved by name instead of at random; there is no default spread; volumes are ignored.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import Final

import msgspec

from shared.decide.scheduling.constraints.topology_constraint import NodeDomains, TopologyConstraint
from shared.decide.scheduling.kube_scheduler.queue import PodRuns, SchedulingPodGroup, SchedulingQueue
from shared.decide.scheduling.kube_scheduler.scores import (
    DEFAULT_NONZERO_REQUESTS,
    MAX_NODE_SCORE,
    CpuMemory,
    score_labels_and_taints,
    score_node,
)
from shared.model.core.labels import HOSTNAME
from shared.model.core.requirements import build_label_requirements
from shared.model.core.resources import CPU, MEMORY, Axes, Resources
from shared.model.core.taints import Taint
from shared.model.kubernetes.host_ports import HostPort, has_port_conflict

MAX_SIMULATION_STEPS: Final = 400_000
"""Limit of the checks of one node for one pod with topology constraints; after that its constraints are ignored."""


class SimulatedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node in the state in which kube-scheduler first considers it for the pods."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    allocatable: Resources
    used: Resources = Resources()
    """Requests of the pods that run there already: DaemonSet pods."""


def simulate_scheduling(
    waves: Sequence[Sequence[SimulatedNode]], queue: SchedulingQueue, *, max_steps: int = MAX_SIMULATION_STEPS
) -> tuple[str, ...]:
    """Return the pods of *queue*, in its order, that fit on none of the nodes.

    *waves* of nodes become ready in turn.
    """
    node_states = [_build_node_state(simulated_node, queue.axes) for wave in waves for simulated_node in wave]
    simulation = _Simulation((pods for pods, _ in queue.runs), node_states, max_steps)
    pending_runs: PodRuns = queue.runs
    end = 0
    for wave in waves:
        start, end = end, end + len(wave)
        pending_runs = simulation.schedule_wave(pending_runs, start, end)
    return tuple(name for _, names in pending_runs for name in names)


class _NodeState(msgspec.Struct, kw_only=True, eq=False):
    """A simulated node and its remaining resources."""

    name: str
    node_domains: NodeDomains
    capacity: CpuMemory
    free: list[int]
    used: CpuMemory
    nonzero_used: CpuMemory
    """As *used*, but with the default amounts for pods without requests (kube-scheduler's NonZeroRequested)."""
    ports: list[HostPort]

    def compute_score(self, pod_group: SchedulingPodGroup) -> int:
        """Return kube-scheduler's score of the free resources on this node for a pod of *pod_group*."""
        return score_node(pod_group.requested, self.capacity, self.used, self.nonzero_used)

    def can_fit(self, pod_group: SchedulingPodGroup) -> bool:
        """Return whether one more pod of *pod_group* fits."""
        fits = all(have >= need or need <= 0 for have, need in zip(self.free, pod_group.request_vector, strict=True))
        return fits and not (pod_group.spec.host_ports and has_port_conflict(self.ports, pod_group.spec.host_ports))


def _build_node_state(simulated_node: SimulatedNode, axes: Axes) -> _NodeState:
    label_requirements = build_label_requirements(
        dict(simulated_node.labels) | {HOSTNAME: simulated_node.labels.get(HOSTNAME, simulated_node.name)}
    )
    used = (simulated_node.used[CPU], simulated_node.used[MEMORY])
    return _NodeState(
        name=simulated_node.name,
        node_domains=NodeDomains(
            by_key={item.key: item for item in label_requirements}, taints=simulated_node.taints, is_fixed=True
        ),
        capacity=(simulated_node.allocatable[CPU], simulated_node.allocatable[MEMORY]),
        free=list(axes.build_vector(simulated_node.allocatable - simulated_node.used)),
        used=used,
        nonzero_used=used,
        ports=[],
    )


class _Simulation:
    """A simulation run: its nodes, the pod counts of all topology constraints by domain, and the remaining steps."""

    def __init__(self, pod_groups: Iterable[SchedulingPodGroup], node_states: list[_NodeState], steps: int) -> None:
        self._node_states, self._remaining_steps = node_states, steps
        self._counts: dict[TopologyConstraint, dict[str, int]] = {
            rule: {}
            for pod_group in pod_groups
            for rule in (*pod_group.hard_constraints, *pod_group.soft_constraints, *pod_group.counting_constraints)
        }
        self._static_scores: dict[tuple[int, str], int | None] = {}

    def schedule_wave(self, pending_runs: PodRuns, start: int, end: int) -> PodRuns:
        """Place the pods that fit while the nodes up to *end* are ready; the nodes from *start* on are new.

        Pods with topology constraints are retried as long as that helps: a pod that they depend on may be placed after
        them.
        """
        new_nodes, open_nodes = self._node_states[start:end], self._node_states[:end]
        unplaced_runs = self._run_pass(pending_runs, new_nodes, open_nodes)
        while any(not pod_group.is_plain for pod_group, _ in unplaced_runs) and _count_pods(
            unplaced_runs
        ) < _count_pods(pending_runs):
            pending_runs, unplaced_runs = unplaced_runs, self._run_pass(unplaced_runs, (), open_nodes)
        return unplaced_runs

    def _run_pass(
        self, pending_runs: PodRuns, new_nodes: Sequence[_NodeState], open_nodes: Sequence[_NodeState]
    ) -> PodRuns:
        """Place each run of pods once and return the pods that were not placed.

        Pods without topology constraints are tried on *new_nodes* only: they did not fit on the other nodes before, and
        nothing has become free there.
        """
        unplaced_runs: list[tuple[SchedulingPodGroup, tuple[str, ...]]] = []
        for pod_group, names in pending_runs:
            is_plain = pod_group.is_plain or self._remaining_steps <= 0
            placed_count = (
                self._place_by_score(pod_group, len(names), new_nodes)
                if is_plain
                else self._place_by_constraints(pod_group, len(names), open_nodes)
            )
            if placed_count < len(names):
                unplaced_runs.append((pod_group, names[placed_count:]))
        return tuple(unplaced_runs)

    def _place_by_score(self, pod_group: SchedulingPodGroup, count: int, node_states: Sequence[_NodeState]) -> int:
        admitting_nodes = (
            (site, self._get_static_score(pod_group, site)) for site in node_states if site.can_fit(pod_group)
        )
        heap = [
            (-site.compute_score(pod_group) - liking, site.name, liking, site)
            for site, liking in admitting_nodes
            if liking is not None
        ]
        heapify(heap)
        placed_count = 0
        while heap and placed_count < count:
            _, name, static_score, node_state = heap[0]
            self._assign_pod(pod_group, node_state)
            placed_count += 1
            if node_state.can_fit(pod_group):
                heapreplace(heap, (-node_state.compute_score(pod_group) - static_score, name, static_score, node_state))
            else:
                heappop(heap)
        return placed_count

    def _place_by_constraints(
        self, pod_group: SchedulingPodGroup, count: int, node_states: Sequence[_NodeState]
    ) -> int:
        admitting_nodes = [site for site in node_states if self._get_static_score(pod_group, site) is not None]
        domains = {
            rule: _list_domains(rule, node_states) for rule in pod_group.hard_constraints if rule.kind == "spread"
        }
        for placed_count in range(count):
            self._remaining_steps -= len(admitting_nodes)
            feasible_nodes = [
                site
                for site in admitting_nodes
                if site.can_fit(pod_group) and self._can_place(pod_group, site, domains)
            ]
            if not feasible_nodes:
                return placed_count
            soft_scores = self._score_soft_constraints(pod_group, feasible_nodes)
            scores = (
                (-site.compute_score(pod_group) - (self._get_static_score(pod_group, site) or 0), site)
                for site in feasible_nodes
            )
            best = min(
                scores,
                key=lambda site_score: (site_score[0] - soft_scores.get(site_score[1].name, 0), site_score[1].name),
            )
            self._assign_pod(pod_group, best[1])
        return count

    def _assign_pod(self, pod_group: SchedulingPodGroup, node_state: _NodeState) -> None:
        cpu, memory = pod_group.requested
        node_state.free = [have - need for have, need in zip(node_state.free, pod_group.request_vector, strict=True)]
        node_state.used = (node_state.used[0] + cpu, node_state.used[1] + memory)
        node_state.nonzero_used = (
            node_state.nonzero_used[0] + (cpu or DEFAULT_NONZERO_REQUESTS[0]),
            node_state.nonzero_used[1] + (memory or DEFAULT_NONZERO_REQUESTS[1]),
        )
        node_state.ports.extend(pod_group.spec.host_ports)
        for rule in pod_group.counting_constraints:
            domain = _find_domain(rule, node_state)
            if domain is not None and rule.is_node_counted(node_state.node_domains):
                self._counts[rule][domain] = self._counts[rule].get(domain, 0) + 1

    def _get_static_score(self, pod_group: SchedulingPodGroup, node_state: _NodeState) -> int | None:
        """Return the score of labels and taints of *node_state*, which never changes; None if they exclude the pods."""
        key = (pod_group.number, node_state.name)
        if key not in self._static_scores:
            self._static_scores[key] = score_labels_and_taints(pod_group.spec, pod_group.terms, node_state.node_domains)
        return self._static_scores[key]

    def _can_place(
        self,
        pod_group: SchedulingPodGroup,
        node_state: _NodeState,
        domains: Mapping[TopologyConstraint, frozenset[str]],
    ) -> bool:
        """Return whether all hard topology constraints allow one more pod on *node_state*."""
        for rule in pod_group.hard_constraints:
            domain, counts = _find_domain(rule, node_state), self._counts[rule]
            if domain is None:
                if rule.kind in ("spread", "affinity"):
                    return False
                continue
            count, self_count = counts.get(domain, 0), int(rule in pod_group.self_selecting)
            if rule.kind == "affinity":
                is_satisfied = count > 0 or bool(self_count and not any(counts.values()))
            elif rule.kind == "spread":
                is_satisfied = count + self_count - _compute_min_count(rule, counts, domains[rule]) <= rule.max_skew
            else:
                is_satisfied = count == 0
            if not is_satisfied:
                return False
        return True

    def _score_soft_constraints(
        self, pod_group: SchedulingPodGroup, node_states: Sequence[_NodeState]
    ) -> Mapping[str, int]:
        """Return, by node name, the score of the soft topology constraints: from -200 to 200 for each constraint."""
        soft_scores: dict[str, int] = {}
        for rule in pod_group.soft_constraints:
            counts = {site.name: self._counts[rule].get(_find_domain(rule, site) or "", 0) for site in node_states}
            max_count = max(counts.values(), default=0) or 1
            sign = 2 if rule.kind == "affinity" else -2
            for name, count in counts.items():
                soft_scores[name] = soft_scores.get(name, 0) + sign * (count * MAX_NODE_SCORE // max_count)
        return soft_scores


def _count_pods(runs: PodRuns) -> int:
    return sum(len(names) for _, names in runs)


def _find_domain(rule: TopologyConstraint, node_state: _NodeState) -> str | None:
    """Return the domain of *rule* that contains *node_state*, or None."""
    requirement = node_state.node_domains.by_key.get(rule.key)
    return next(iter(requirement.values)) if requirement is not None else None


def _list_domains(rule: TopologyConstraint, node_states: Iterable[_NodeState]) -> frozenset[str]:
    """Return the domains of the nodes that the constraint counts."""
    node_domains = (_find_domain(rule, site) for site in node_states if rule.is_node_counted(site.node_domains))
    return frozenset(domain for domain in node_domains if domain is not None)


def _compute_min_count(rule: TopologyConstraint, counts: Mapping[str, int], domains: frozenset[str]) -> int:
    has_too_few_domains = rule.min_domains is not None and len(domains) < rule.min_domains
    return 0 if has_too_few_domains else min((counts.get(domain, 0) for domain in domains), default=0)
