"""First-fit placement: on existing nodes, then on open nodes of this run, then on a new node.

A new node belongs to the heaviest NodePool that can hold the pod. The nodes that may take a pod are known as a set of
bits. Each placement then checks what the bits do not cover: free resources, and domains that are not decided yet.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from shared.decide.scheduling.nodes.node_index import Nodes
from shared.decide.scheduling.packing.new_node_placement import NewNodePlacement, NodeAssignment, PodRange
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.pods.stage_compiler import CompiledStage
from shared.model.kubernetes.pod import Pod

ALL_NODES: Final[Nodes] = -1


class FirstFitPacking(NewNodePlacement, kw_only=True, eq=False):
    """The state of a first-fit packing run."""

    sealed_nodes: Nodes = 0
    """Nodes that take no more pods in this run."""
    relaxed_preferences: int = 0
    """Number of preferences that were relaxed, counted for each pod."""
    processed_classes: set[PodEquivalenceClass] = msgspec.field(default_factory=set)
    """The pod classes for which all stages were tried."""

    def __post_init__(self) -> None:
        """Index the existing nodes."""
        if not self.nodes.hosts and self.existing_nodes:
            self.nodes.add_existing(self.existing_nodes)
            self.topology.index_hosts(self.nodes.hosts)

    def fork(self) -> "FirstFitPacking":
        """Return a packing with the state of this one, before any node was opened."""
        existing_nodes = [
            msgspec.structs.replace(
                node,
                ports=list(node.ports),
                attached={driver: set(keys) for driver, keys in node.attached.items()},
                pods=list(node.pods),
            )
            for node in self.existing_nodes
        ]
        return type(self)(
            existing_nodes=existing_nodes,
            templates=self.templates,
            remaining_limits={name: dict(remaining) for name, remaining in self.remaining_limits.items()},
            share_usages=dict(self.share_usages),
            share_usages_before=self.share_usages_before,
            topology=self.topology.fork(),
            options=self.options,
            nodes=self.nodes.fork(),
            is_over=self.is_over,
            is_timed_out=self.is_timed_out,
            launchable_templates=self.launchable_templates,
            committed_capacity=self.committed_capacity,
            node_by_claim=dict(self.node_by_claim),
            satisfying_nodes=self.satisfying_nodes,
        )

    def place(self, pod_class: PodEquivalenceClass) -> list[Pod]:
        """Place as many pods of *pod_class* as possible; return the others, in order."""
        placed_count, is_done = 0, False
        self._count_node_trial()
        while placed_count < len(pod_class.pods) and not is_done and not self.is_timed_out:
            placed_count, is_done = self._place_relaxing(pod_class, placed_count)
        if not self.is_timed_out:
            self.processed_classes.add(pod_class)
        return pod_class.pods[placed_count:] if placed_count else pod_class.pods

    def place_on_nominated_nodes(
        self, pod_class: PodEquivalenceClass, node_number_by_pod: Mapping[str, int]
    ) -> list[Pod]:
        """Place the pods of *pod_class* that are nominated for an existing node; return the others, in order."""
        if not node_number_by_pod:
            return pod_class.pods
        return [
            pod
            for pod in pod_class.pods
            if pod.name not in node_number_by_pod
            or not self._place_on_nominated_node(pod_class, pod, node_number_by_pod[pod.name])
        ]

    def place_on_existing_nodes(self, pod_class: PodEquivalenceClass) -> list[Pod]:
        """Place pods of *pod_class* on existing nodes with all their preferences; return the others, in order."""
        if not self.existing_nodes or pod_class.stages[0].is_contradictory:
            return pod_class.pods
        return pod_class.pods[
            self._fill_nodes(
                pod_class, pod_class.compiled_stages[0], (0, len(pod_class.pods)), (1 << len(self.existing_nodes)) - 1
            ) :
        ]

    def seal(self) -> None:
        """Close all open nodes for more pods."""
        self.sealed_nodes = ((1 << len(self.open_nodes)) - 1) << len(self.existing_nodes)

    def place_on_open_node(self, node_number: int, pod_class: PodEquivalenceClass, queued_pods: list[Pod]) -> int:
        """Place as many of *queued_pods* as the open node takes with all their preferences; return how many."""
        return self.place_on_node(
            (len(self.existing_nodes) + node_number, pod_class, pod_class.compiled_stages[0], queued_pods)
        )

    def place_on_node(self, assignment: NodeAssignment) -> int:
        """Place as many of the pods as the node takes; return how many."""
        node_number, pod_class, compiled_stage, queued_pods = assignment
        node_bit, changes_domains, placed_count = 1 << node_number, compiled_stage.topology_bindings.changes_domains, 0
        while (
            placed_count < len(queued_pods)
            and not self.is_timed_out
            and self._is_feasible(node_number, pod_class, compiled_stage)
        ):
            version = self._get_version(compiled_stage)
            count = self._fill_node(
                node_bit,
                pod_class,
                compiled_stage,
                list(queued_pods[placed_count : placed_count + 1] if changes_domains else queued_pods[placed_count:]),
            )
            placed_count += count
            if not count or (self._get_version(compiled_stage) == version and not changes_domains):
                break
        return placed_count

    def _place_relaxing(self, pod_class: PodEquivalenceClass, placed_count: int) -> tuple[int, bool]:
        """Try stage after stage for the pods after the first *placed_count*.

        Return how many pods are placed then, and whether no more can be placed. If a pod with relaxed preferences was
        placed and the next pod may now keep all its preferences, the stages start again.
        """
        places_one_pod, count = False, len(pod_class.pods)
        for stage_number, compiled_stage in enumerate(pod_class.compiled_stages):
            if compiled_stage.stage.is_contradictory:
                continue
            stage_count = self._place_at_stage(
                pod_class, compiled_stage, (placed_count, placed_count + 1 if places_one_pod else count)
            )
            self.relaxed_preferences += stage_number * stage_count
            placed_count += stage_count
            if placed_count == count:
                return placed_count, True
            if stage_count and places_one_pod:
                return placed_count, False
            places_one_pod = places_one_pod or compiled_stage.topology_bindings.can_recover
        return placed_count, True

    def _place_at_stage(
        self, pod_class: PodEquivalenceClass, compiled_stage: CompiledStage, pod_range: PodRange
    ) -> int:
        """Place the pods of *pod_range* on existing and open nodes, then on new nodes; return how many were placed."""
        start, end = pod_range
        next_position = start + self._fill_nodes(pod_class, compiled_stage, pod_range, ALL_NODES & ~self.sealed_nodes)
        while next_position < end and not self.is_timed_out:
            count = self._place_on_new_node(pod_class, compiled_stage, (next_position, end))
            if not count:
                break
            next_position += count
            if compiled_stage.topology_bindings.watched_groups and next_position < end:
                next_position += self._fill_nodes(pod_class, compiled_stage, (next_position, end), ALL_NODES)
        return next_position - start

    def _fill_nodes(
        self, pod_class: PodEquivalenceClass, compiled_stage: CompiledStage, pod_range: PodRange, allowed_nodes: Nodes
    ) -> int:
        """Place the pods of *pod_range* on nodes *allowed_nodes*; return how many were placed."""
        next_position, end = pod_range
        while next_position < end and not self.is_timed_out:
            version = self._get_version(compiled_stage)
            feasible_nodes = self._find_feasible_nodes(pod_class, compiled_stage) & allowed_nodes
            if not feasible_nodes:
                break
            queued_pods = pod_class.pods[
                next_position : next_position + 1 if compiled_stage.topology_bindings.changes_domains else end
            ]
            count = self._fill_feasible_nodes((feasible_nodes, version), pod_class, compiled_stage, queued_pods)
            next_position += count
            if not count or (
                self._get_version(compiled_stage) == version and not compiled_stage.topology_bindings.changes_domains
            ):
                break
        return next_position - pod_range[0]

    def _fill_feasible_nodes(
        self,
        start: tuple[Nodes, int],
        pod_class: PodEquivalenceClass,
        compiled_stage: CompiledStage,
        queued_pods: list[Pod],
    ) -> int:
        """Place *queued_pods* on feasible nodes until a placement changes which nodes are feasible.

        *start*: the feasible nodes, and the topology version at which they were computed.

        Existing nodes are filled one after the other. Of the open nodes, the node with the fewest pods (the oldest of
        equals) takes as many pods as it can; only one pod if topology constraints apply at any stage.
        """
        nodes, topology_bindings, placed_count, rank_index = self.nodes, compiled_stage.topology_bindings, 0, 0
        feasible_nodes, version = start
        is_bound = any(pod_class.binding_groups)
        feasible_existing_nodes = feasible_nodes & nodes.existing
        while feasible_nodes and placed_count < len(queued_pods) and not self.is_timed_out:
            if feasible_existing_nodes:
                candidate_nodes = feasible_existing_nodes
            elif rank_index < len(nodes.pod_counts):
                candidate_nodes = feasible_nodes & nodes.nodes_by_pod_count[nodes.pod_counts[rank_index]]
            else:
                break
            if not candidate_nodes:
                rank_index += 1
                continue
            node_bit = candidate_nodes & -candidate_nodes
            is_single = is_bound and not feasible_existing_nodes and feasible_nodes != node_bit
            count = self._fill_node(
                node_bit,
                pod_class,
                compiled_stage,
                queued_pods[placed_count : placed_count + 1] if is_single else queued_pods[placed_count:],
            )
            placed_count += count
            if not count or not is_single or topology_bindings.is_one_pod_per_node:
                feasible_nodes ^= node_bit
                feasible_existing_nodes &= feasible_nodes
            if count and topology_bindings.watched_groups and self._get_version(compiled_stage) != version:
                break
        return placed_count

    def _fill_node(
        self, node_bit: Nodes, pod_class: PodEquivalenceClass, compiled_stage: CompiledStage, queued_pods: list[Pod]
    ) -> int:
        """Place as many of *queued_pods* as the node *node_bit* takes now; return how many."""
        self._count_node_trial()
        node_number = node_bit.bit_length() - 1
        count = (
            self._compute_max_count(self.nodes.hosts[node_number], compiled_stage, len(queued_pods))
            if compiled_stage.topology_bindings.watched_groups or compiled_stage.topology_bindings.hostname_bindings
            else len(queued_pods)
        )
        if count <= 0:
            return 0
        fill = self._fill_existing_node if node_number < len(self.existing_nodes) else self._fill_open_node
        placed_count = fill(
            node_number, pod_class, compiled_stage, queued_pods[:count] if count < len(queued_pods) else queued_pods
        )
        if placed_count:
            self.assignments.append((node_number, pod_class, compiled_stage, queued_pods[:placed_count]))
        return placed_count

    def _fill_existing_node(
        self, node_number: int, pod_class: PodEquivalenceClass, compiled_stage: CompiledStage, queued_pods: list[Pod]
    ) -> int:
        node = self.existing_nodes[node_number]
        if compiled_stage.node_constraints.has_hostname and not node.can_satisfy_constraints(
            compiled_stage.node_constraints
        ):
            return 0
        can_share = self._can_share_claims(pod_class, node_number)
        count = node.count_fitting_pods(pod_class, len(queued_pods)) if can_share else 0
        if count:
            self._assign_to_existing_node(node_number, pod_class, queued_pods[:count])
        elif not pod_class.volumes_by_driver and not pod_class.has_shared_claims:
            self.nodes.refuse_shape(compiled_stage.shape_number, node_number, node.free[:2])
        return count

    def _place_on_nominated_node(self, pod_class: PodEquivalenceClass, pod: Pod, node_number: int) -> bool:
        """Place *pod* on its nominated node if it fits; return whether it was placed.

        Topology constraints are not checked: they were checked when the node was planned.
        """
        nominated_node = self.existing_nodes[node_number]
        can_admit = any(
            nominated_node.can_admit(aim.stage) for aim in pod_class.compiled_stages if not aim.stage.is_contradictory
        )
        if (
            not can_admit
            or not any(nominated_node.can_satisfy(requirements) for requirements in pod_class.volume_alternatives)
            or not self._can_share_claims(pod_class, node_number)
            or not nominated_node.count_fitting_pods(pod_class, 1)
        ):
            return False
        self._assign_to_existing_node(node_number, pod_class, [pod])
        return True

    def _assign_to_existing_node(
        self, node_number: int, pod_class: PodEquivalenceClass, assigned_pods: list[Pod]
    ) -> None:
        node = self.existing_nodes[node_number]
        if self.savepoints:
            self.savepoints[-1].save_existing_node(node_number, node)
        node.add_pods(pod_class, [pod.name for pod in assigned_pods])
        self._record_shared_claims(pod_class, node_number)
        if pod_class.counting_groups:
            self.topology.record_pods(
                pod_class.counting_groups, node.node_domains, len(assigned_pods), 1 << node_number
            )
