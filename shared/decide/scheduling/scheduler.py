"""The scheduler: assigns each pending pod to an existing node, an in-flight node or a new NodeClaim."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from shared.decide.scheduling.kube_scheduler.stranded_pods import estimate_relaunch_cost, find_pods_left_pending
from shared.decide.scheduling.packing.failure_reasons import explain_unschedulable
from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.packing.placement_builder import build_placement
from shared.decide.scheduling.packing.plan_completion import Plan
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.pods.pending_pods import select_pods_to_schedule
from shared.decide.scheduling.pods.pod_priority import explain_priority, is_priority_inverted
from shared.decide.scheduling.pods.pods_by_zone import count_pods_by_zone
from shared.decide.scheduling.scheduling_problem import SchedulingProblem, build_problem
from shared.decide.scheduling.search.plan_search import SecondLaunch, find_cheapest_placement
from shared.decide.scheduling.templates.node_claim_template import ExcludedNodePool
from shared.decide.scheduling.templates.template_builder import find_pools_without_types
from shared.model.core.resources import Axes
from shared.model.decisions.placement import Placement, SchedulingOptions, Unschedulable
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from shared.state.nominations import build_nominations, compute_pod_digest

DEFAULT_OPTIONS = SchedulingOptions()
NOT_REACHED_MESSAGE: Final = "not reached within the time limit; the next run starts immediately and continues here"


def solve(
    cluster_state: ClusterState,
    *,
    pods: tuple[Pod, ...] | None = None,
    excluded: frozenset[str] = frozenset(),
    options: SchedulingOptions = DEFAULT_OPTIONS,
    is_over: Callable[[], bool] | None = None,
) -> Placement:
    """Return the placement of *pods*, by default the pending pods and those on nodes that are being removed.

    *excluded*: names of state nodes that are treated as removed. The order of the lists in the snapshot does not
    matter. *is_over* is polled and tells whether time is up; then the placement so far is returned, with the pod where
    to continue.
    """
    pods = select_pods_to_schedule(cluster_state, excluded) if pods is None else pods
    if not pods:
        return Placement()
    staying_nodes = [
        state for state in cluster_state.nodes if not state.is_marked_for_deletion() and state.name not in excluded
    ]
    problem = build_problem(cluster_state, pods=pods, staying_nodes=staying_nodes, options=options)
    placement = _solve_problem(problem, options, is_over)
    if options.priority_under_limits and is_priority_inverted(placement, pods):
        problem = build_problem(
            cluster_state, pods=pods, staying_nodes=staying_nodes, options=options, by_priority=True
        )
        placement = explain_priority(_solve_problem(problem, options, is_over), pods)
    return placement


def _solve_problem(
    problem: SchedulingProblem, options: SchedulingOptions, is_over: Callable[[], bool] | None
) -> Placement:
    """Return the placement of the pods of *problem*."""
    packing, pod_by_name = problem.start_packing(is_over=is_over), {pod.name: pod for pod in problem.queue}
    by_zone = count_pods_by_zone(problem.pod_classes, problem.topology)

    def build_plan_placement(plan: Plan) -> Placement:
        unschedulable_pods, next_pod = _list_unschedulable(plan, problem.excluded_pools, problem.axes)
        unschedulable_pods = [_add_share_note(failure, problem.share_note_by_pod) for failure in unschedulable_pods]
        plan_placement = build_placement(
            plan.packing,
            [*problem.errors_by_pod.values(), *unschedulable_pods],
            problem.cluster,
            pod_by_name,
            problem.axes,
        )
        return replace(
            plan_placement,
            next_pod=next_pod,
            without_types=find_pools_without_types(problem.excluded_pools),
            by_zone=by_zone,
        )

    def estimate_second_launch(planned_placement: Placement) -> SecondLaunch:
        unscheduled_pods = find_pods_left_pending(planned_placement, problem.cluster, pod_by_name)
        return SecondLaunch(
            count=len(unscheduled_pods),
            usd_per_hour=estimate_relaunch_cost(unscheduled_pods, planned_placement, pod_by_name),
        )

    return find_cheapest_placement(
        packing,
        problem.pod_classes,
        _find_nominations(problem, packing),
        build_plan_placement,
        estimate_second_launch if options.pod_nominations == "Disabled" else None,
    )


def _list_unschedulable(
    plan: Plan, excluded_pools: tuple[ExcludedNodePool, ...], axes: Axes
) -> tuple[list[Unschedulable], str]:
    """Return the unschedulable pods with their reasons, and the first pod that was not reached in time ("" if none)."""
    unschedulable_pods: list[Unschedulable] = []
    first_unreached = ""
    for pod_class in plan.unplaced_classes:
        if pod_class in plan.packing.processed_classes:
            unschedulable_pods += _explain_unschedulable(pod_class, plan.packing, excluded_pools, axes)
        else:
            first_unreached = first_unreached or pod_class.pods[0].name
            unschedulable_pods += [
                Unschedulable(pod=pod.name, reason="NotReached", message=NOT_REACHED_MESSAGE) for pod in pod_class.pods
            ]
    return unschedulable_pods, first_unreached


def _add_share_note(failure: Unschedulable, note_by_pod: Mapping[str, str]) -> Unschedulable:
    """Return *failure* with the Spot share of the pod's workload, if the pod must not be on a Spot node."""
    note = note_by_pod.get(failure.pod, "")
    return replace(failure, message=f"{failure.message}; {note}") if note else failure


def _find_nominations(problem: SchedulingProblem, packing: FirstFitPacking) -> dict[str, int]:
    """Return, by pod name, the number of the in-flight node nominated for the pod.

    A nomination holds until the node is in use and kube-scheduler has had time to bind the pod.
    """
    numbers = {node.name: number for number, node in enumerate(packing.existing_nodes)}
    cluster = problem.cluster
    nomination_by_mark = build_nominations(problem.staying_nodes, cluster.taken_at, cluster.pods)
    if not nomination_by_mark:
        return {}
    nominations = (
        (pod.name, nomination_by_mark.get(compute_pod_digest(pod.name)))
        for pod_class in problem.pod_classes
        for pod in pod_class.pods
    )
    return {name: numbers[home.name] for name, home in nominations if home is not None and home.name in numbers}


def _explain_unschedulable(
    pod_class: PodEquivalenceClass, packing: FirstFitPacking, excluded_pools: tuple[ExcludedNodePool, ...], axes: Axes
) -> Iterable[Unschedulable]:
    refusal = explain_unschedulable(pod_class, packing, excluded_pools, axes)
    return [Unschedulable(pod=pod.name, reason=refusal.reason, message=refusal.message) for pod in pod_class.pods]
