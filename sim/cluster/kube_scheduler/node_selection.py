"""Find the best node for a pod shape, or build the message that says why no node is feasible."""

from collections.abc import Callable
from typing import Final, TypeAlias

from sim.cluster.kube_scheduler.inter_pod_constraints import PreFilterState
from sim.cluster.kube_scheduler.node_cache import NodeCache
from sim.cluster.kube_scheduler.node_filters import FilterRejection, FilterResults
from sim.cluster.kube_scheduler.nominator import NominatedPodsFilter
from sim.cluster.kube_scheduler.pod_shape import SchedulingShape
from sim.cluster.kube_scheduler.volume_binding import PodVolumeClaims, VolumeFilter

_MAX_CACHED_SHAPES: Final = 256
NodeFilter: TypeAlias = Callable[[str], FilterRejection | None]


class NodeFinder:
    """Finds nodes, with caches per shape: filter results, and failures as long as no node changes."""

    def __init__(self, nodes: NodeCache, volumes: VolumeFilter) -> None:
        """Search in *nodes* and check claims with *volumes*."""
        self.nodes, self.volumes = nodes, volumes
        self._results_by_shape: dict[SchedulingShape, FilterResults] = {}
        self._failure_by_shape: dict[SchedulingShape, tuple[int, str]] = {}

    def clear_failures(self) -> None:
        """Discard cached failures after a change that is not in the change log of the nodes."""
        self._failure_by_shape.clear()

    def find_node(
        self,
        shape: SchedulingShape,
        volume_claims: PodVolumeClaims | None,
        nominated_pods_filter: NominatedPodsFilter | None = None,
        device_filter: NodeFilter | None = None,
    ) -> tuple[str | None, str]:
        """Return the best node for a pod, or None and the message.

        *nominated_pods_filter* takes nominated pods into account and prefers the pod's own nominated node.
        *device_filter* returns why a node lacks the devices of the pod.
        """
        change_log_length = len(self.nodes.change_log)
        is_cacheable = volume_claims is None and nominated_pods_filter is None and device_filter is None
        if is_cacheable and self._failure_by_shape.get(shape, (-1, ""))[0] == change_log_length:
            return None, self._failure_by_shape[shape][1]
        if not self.nodes.node_infos:
            return None, "no nodes available to schedule pods"
        if volume_claims is not None and volume_claims.problem:
            return None, self._format_message(shape, [volume_claims.problem], 0)
        filter_results = self._get_filter_results(shape)
        pre_filter_state = PreFilterState(shape, self.nodes)
        if is_cacheable and pre_filter_state.is_empty:
            best_node, rejections = filter_results.find_best_node(), list[FilterRejection]()
        else:
            best_node, rejections = self._find_best_feasible_node(
                filter_results, pre_filter_state, volume_claims, nominated_pods_filter, device_filter
            )
        if best_node is not None:
            return best_node, ""
        message = self._summarize_rejections(filter_results, rejections)
        if is_cacheable:
            self._failure_by_shape[shape] = (change_log_length, message)
        return None, message

    def _get_filter_results(self, shape: SchedulingShape) -> FilterResults:
        filter_results = self._results_by_shape.pop(shape, None)
        if filter_results is None:
            filter_results = FilterResults(shape, self.nodes)
            if len(self._results_by_shape) >= _MAX_CACHED_SHAPES:
                del self._results_by_shape[next(iter(self._results_by_shape))]
        else:
            filter_results.refresh()
        self._results_by_shape[shape] = filter_results
        return filter_results

    def _find_best_feasible_node(
        self,
        filter_results: FilterResults,
        pre_filter_state: PreFilterState,
        volume_claims: PodVolumeClaims | None,
        nominated_pods_filter: NominatedPodsFilter | None,
        device_filter: NodeFilter | None,
    ) -> tuple[str | None, list[FilterRejection]]:
        rejections: list[FilterRejection] = []
        feasible_nodes: list[str] = []
        for name in sorted(filter_results.score_by_node):
            node = self.nodes.node_infos[name]
            rejection = (
                self.volumes.find_rejection(volume_claims, node) if volume_claims is not None else None
            ) or pre_filter_state.find_rejection(node)
            rejection = rejection or (
                nominated_pods_filter.find_rejection(node) if nominated_pods_filter is not None else None
            )
            rejection = rejection or (device_filter(name) if device_filter is not None else None)
            if rejection is None:
                feasible_nodes.append(name)
            else:
                rejections.append(rejection)
        if nominated_pods_filter is not None and nominated_pods_filter.node in feasible_nodes:
            return nominated_pods_filter.node, rejections
        inter_pod_scores = pre_filter_state.compute_scores(feasible_nodes)
        return min(
            feasible_nodes,
            key=lambda name: (-filter_results.score_by_node[name] - inter_pod_scores[name], name),
            default=None,
        ), rejections

    def _summarize_rejections(self, filter_results: FilterResults, rejections: list[FilterRejection]) -> str:
        reason_counts, unresolvable_count = filter_results.count_rejections()
        for rejection in rejections:
            reason_counts.update(rejection.reasons)
            unresolvable_count += rejection.unresolvable
        reason_texts = sorted(f"{count} {reason}" for reason, count in reason_counts.items() if count)
        return self._format_message(filter_results.shape, reason_texts, len(self.nodes.node_infos) - unresolvable_count)

    def _format_message(self, shape: SchedulingShape, reason_texts: list[str], resolvable_count: int) -> str:
        node_count = len(self.nodes.node_infos)
        message = f"0/{node_count} nodes are available: {', '.join(reason_texts)}."
        if not shape.can_preempt:
            return f"{message} preemption: not eligible due to preemptionPolicy=Never."
        preemption_counts = (
            (resolvable_count, "No preemption victims found for incoming pod"),
            (node_count - resolvable_count, "Preemption is not helpful for scheduling"),
        )
        preemption_texts = sorted(f"{count} {text}" for count, text in preemption_counts if count)
        return f"{message} preemption: 0/{node_count} nodes are available: {', '.join(preemption_texts)}."
