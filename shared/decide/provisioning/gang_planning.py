"""Gangs in plans: the pods of a gang get all their nodes, or none of them gets a new one.

A plan is made as usual. If pods of a gang do not fit, the plan is made again without this gang, so that neither nodes
nor limits are used for it. Each gang that was left out is then tried again next to the gangs that fit. See
docs/adr/0031.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from shared.decide.launch.canaries.paused_plans import limit_to_tests
from shared.decide.provisioning.capacity_buffers import BufferedPlacement, plan_with_buffers
from shared.decide.provisioning.gang_zones import restrict_to_zones
from shared.decide.provisioning.provisioning_requests import ResolvedRequest, resolve_requests
from shared.decide.scheduling.pods.pending_pods import select_pods_to_schedule
from shared.decide.scheduling.scheduler import DEFAULT_OPTIONS, NOT_REACHED_MESSAGE
from shared.model.core.formatting import format_count, join_names
from shared.model.core.units import format_instant
from shared.model.decisions.placement import Placement, SchedulingOptions, Unschedulable, UnschedulableReason
from shared.model.kubernetes.gangs.gang import find_gang_membership
from shared.state.cluster_state import ClusterState
from shared.state.gangs.gang_retries import GangRetry, find_gang_retries
from shared.state.gangs.gangs import Gang, find_gangs

MAX_GANG_TRIALS: Final = 24
"""Limit of the plans that are made for gangs in one run; then all gangs that do not fit are left out at once."""
_MAX_NAMES_IN_MESSAGE: Final = 3
_LAST: Final = datetime.max.replace(tzinfo=UTC)
Plan: TypeAlias = Callable[[frozenset[str]], BufferedPlacement]
"""Returns a placement without the pods of these names."""


def plan_pods(
    cluster_state: ClusterState,
    *,
    excluded: frozenset[str] = frozenset(),
    withheld: frozenset[str] = frozenset(),
    options: SchedulingOptions = DEFAULT_OPTIONS,
    is_over: Callable[[], bool] | None = None,
) -> BufferedPlacement:
    """Return the placement of pods and buffer pods in which each gang has all its nodes or no new one.

    Without gangs, and if the setting is off, the result is that of `plan_with_buffers`. One node at most is planned for
    an EC2NodeClass whose launches are paused, even if a gang needs more: it is a test.
    """
    planned_state = cluster_state

    def plan(left_out: frozenset[str]) -> BufferedPlacement:
        return plan_with_buffers(
            planned_state, excluded=excluded, withheld=withheld | left_out, options=options, is_over=is_over
        )

    requested_gangs = list(_list_requested_gangs(resolve_requests(cluster_state.snapshot)))
    pods = select_pods_to_schedule(cluster_state, excluded) if cluster_state.snapshot.has_gangs else ()
    has_gangs = any(find_gang_membership(pod) is not None for pod in pods)
    if not has_gangs and not requested_gangs:
        return _limit_to_tests(plan(frozenset()), cluster_state)
    queued_names = frozenset(pod.name for pod in pods)
    retries = find_gang_retries(cluster_state.snapshot.node_pools)
    gangs = [
        QueuedGang(gang=gang, queued_names=names, retry=retries.get(gang.name))
        for gang in (find_gangs(cluster_state.snapshot).values() if has_gangs else ())
        if (names := queued_names.intersection(pod.name for pod in gang.pods))
    ]
    waiting_names = frozenset(
        name for queued in gangs if queued.explain_wait(cluster_state.taken_at) for name in queued.queued_names
    )
    planned_state = restrict_to_zones(
        cluster_state,
        (queued.gang for queued in sorted(gangs, key=_get_rank) if not queued.queued_names & waiting_names),
        lambda state: (
            plan_with_buffers(
                state, excluded=excluded, withheld=withheld | waiting_names, options=options, is_over=is_over
            ).placement
        ),
    )
    gangs += requested_gangs
    return _limit_to_tests(_GangPlanner(plan, gangs, withheld, cluster_state.taken_at, is_over).run(), cluster_state)


def _limit_to_tests(planned: BufferedPlacement, cluster_state: ClusterState) -> BufferedPlacement:
    return replace(planned, placement=limit_to_tests(planned.placement, cluster_state.snapshot))


def _list_requested_gangs(resolved_requests: Iterable[ResolvedRequest]) -> Iterator["QueuedGang"]:
    """Yield the pods of each ProvisioningRequest as a gang."""
    for resolved in resolved_requests:
        if resolved.pods:
            names = frozenset(pod.name for pod in resolved.pods)
            gang = Gang(name=resolved.request.name, size=len(names), pods=resolved.pods)
            yield QueuedGang(
                gang=gang, queued_names=names, kind="ProvisioningRequest", can_launch=resolved.request.launches_nodes
            )


class QueuedGang(msgspec.Struct, frozen=True, kw_only=True):
    """A gang of which some pods are to be placed."""

    gang: Gang
    queued_names: frozenset[str]
    """Names of the pods that are to be placed."""
    kind: str = "gang"
    """What it is called in messages."""
    can_launch: bool = True
    """Whether nodes are launched for it; else only existing nodes count."""
    retry: GangRetry | None = None
    """When its nodes may be launched again after they were returned; None: they were not returned."""

    @property
    def settled_count(self) -> int:
        """Number of its other pods that have a node, or for which kube-scheduler has nominated a node."""
        return sum(
            pod.name not in self.queued_names and bool(pod.node_name or pod.nominated_node_name)
            for pod in self.gang.pods
        )

    @property
    def needed_count(self) -> int:
        """Number of its pods in the queue that must be placed."""
        return max(0, self.gang.needed_count - self.settled_count)

    def list_untried_pods(self) -> list[str]:
        """Return the names of the pods that kube-scheduler has not tried yet, or that have scheduling gates."""
        return [
            pod.name
            for pod in self.gang.pods
            if pod.name not in self.queued_names and not pod.node_name and not pod.nominated_node_name
        ]

    def explain_wait(self, now: datetime) -> str:
        """Return why no pod of the gang may be placed yet; "" if nothing prevents it."""
        gang = self.gang
        if gang.problem:
            return gang.problem
        if self.retry is not None and self.retry.until > now:
            return (
                f"its nodes were returned because not all of them could be launched; next attempt at "
                f"{format_instant(self.retry.until)}"
            )
        if gang.missing_count:
            return f"{len(gang.pods)} of its {format_count(gang.size, 'pod')} exist: waiting for the others"
        if self.needed_count > len(self.queued_names):
            names = _join_some(self.list_untried_pods())
            return f"kube-scheduler has not tried {names} yet, or scheduling gates keep it from that"
        return ""


class _GangPlanner:
    """The plans that are made for the gangs of one run."""

    def __init__(
        self,
        plan: Plan,
        gangs: Sequence[QueuedGang],
        withheld: frozenset[str],
        now: datetime,
        is_over: Callable[[], bool] | None,
    ) -> None:
        """Plan with *plan*; *withheld* are pods that it never places."""
        self._plan, self._withheld, self._now = plan, withheld, now
        self._is_over = is_over or (lambda: False)
        self._refusals: list[Unschedulable] = []
        self._refusals_by_gang: dict[str, list[Unschedulable]] = {}
        self._trial_count = 0
        self._gangs = sorted(gangs, key=_get_rank)

    def run(self) -> BufferedPlacement:
        """Return the placement of all pods."""
        ready_gangs: list[QueuedGang] = []
        left_out: set[str] = set()
        for queued in self._gangs:
            message = queued.explain_wait(self._now)
            if message:
                self._refusals += _refuse(queued, "GangIncomplete", message, self._withheld)
                left_out |= queued.queued_names
            else:
                ready_gangs.append(queued)
        planned = self._try_plan(left_out)
        rejected_gangs: list[QueuedGang] = []
        while broken_gangs := [queued for queued in ready_gangs if not self._is_whole(queued, planned.placement)]:
            if self._is_over():
                planned = replace(planned, placement=_without_gangs(planned.placement, broken_gangs))
            else:
                broken_gangs = broken_gangs if self._trial_count >= MAX_GANG_TRIALS else broken_gangs[-1:]
            for queued in broken_gangs:
                self._explain_refusal(queued, planned.placement)
                ready_gangs.remove(queued)
                rejected_gangs.append(queued)
                left_out |= queued.queued_names
            if not self._is_over():
                planned = self._try_plan(left_out)
        planned = self._retry(planned, ready_gangs, rejected_gangs, left_out)
        refusals = [*self._refusals, *(item for items in self._refusals_by_gang.values() for item in items)]
        return _with_refusals(planned, refusals)

    def _retry(
        self,
        planned: BufferedPlacement,
        ready_gangs: list[QueuedGang],
        rejected_gangs: Sequence[QueuedGang],
        left_out: set[str],
    ) -> BufferedPlacement:
        """Return a plan with those of *rejected_gangs* that fit next to *ready_gangs*.

        Gangs are left out from the last one on, so a gang may have been left out although an earlier one did not fit
        without it either. The gang that was left out last did not fit next to *ready_gangs*.
        """
        for queued in sorted(rejected_gangs[:-1], key=_get_rank):
            if self._trial_count >= MAX_GANG_TRIALS or self._is_over():
                break
            trial = self._try_plan(left_out - queued.queued_names)
            if all(self._is_whole(other, trial.placement) for other in (*ready_gangs, queued)):
                planned = trial
                ready_gangs.append(queued)
                left_out -= queued.queued_names
                del self._refusals_by_gang[queued.gang.name]
            else:
                self._explain_refusal(queued, trial.placement)
        return planned

    def _try_plan(self, left_out: Iterable[str]) -> BufferedPlacement:
        self._trial_count += 1
        return self._plan(frozenset(left_out))

    def _is_whole(self, queued: QueuedGang, placement: Placement) -> bool:
        """Return whether *placement* places as many pods of the gang as it needs."""
        unplaced_names = {item.pod for item in placement.unschedulable} | self._withheld
        if not queued.can_launch:
            unplaced_names |= {name for node in placement.new_nodes for name in node.pods}
        return len(queued.queued_names - unplaced_names) >= queued.needed_count

    def _explain_refusal(self, queued: QueuedGang, placement: Placement) -> None:
        """Record why the pods of a gang get no nodes: the pods that do not fit, and the reason of the first one."""
        reason: UnschedulableReason = "GangNotPlaced"
        failures = [item for item in placement.unschedulable if item.pod in queued.queued_names]
        if any(item.reason == "NotReached" for item in failures):
            reason, message = "NotReached", NOT_REACHED_MESSAGE
        elif failures:
            verb = "does" if len(failures) == 1 else "do"
            message = f"{_join_some([item.pod for item in failures])} {verb} not fit: {failures[0].message}"
        elif not queued.can_launch:
            message = "its pods do not fit existing nodes, and its class launches no nodes"
        else:
            message = f"{_join_some(sorted(queued.queued_names & self._withheld))} must not get new nodes"
        self._refusals_by_gang[queued.gang.name] = list(_refuse(queued, reason, message, self._withheld))


def _get_rank(queued: QueuedGang) -> tuple[int, datetime, str]:
    """Return the sort key of a gang: higher priority first, then older ones."""
    return -queued.gang.priority, queued.gang.created_at or _LAST, queued.gang.name


def _refuse(
    queued: QueuedGang, reason: UnschedulableReason, message: str, withheld: frozenset[str]
) -> Iterator[Unschedulable]:
    gang = queued.gang
    text = f"{queued.kind} {gang.name} needs nodes for all its {format_count(gang.size, 'pod')} or none: {message}"
    for name in sorted(queued.queued_names - withheld):
        yield Unschedulable(pod=name, reason=reason, message=text)


def _join_some(names: Sequence[str]) -> str:
    """Return the first names of pods, without their namespaces, and the number of the other ones."""
    return join_names((name.partition("/")[2] for name in names), _MAX_NAMES_IN_MESSAGE)


def _without_gangs(placement: Placement, gangs: Iterable[QueuedGang]) -> Placement:
    """Return *placement*, which the time limit ended, without *gangs*.

    Other pods of their new nodes are planned in the next run.
    """
    names = frozenset(name for queued in gangs for name in queued.queued_names)
    dropped_nodes = [node for node in placement.new_nodes if names.intersection(node.pods)]
    other_names = sorted({name for node in dropped_nodes for name in node.pods} - names)
    fits = (replace(fit, pods=tuple(name for name in fit.pods if name not in names)) for fit in placement.existing)
    unreached = [Unschedulable(pod=name, reason="NotReached", message=NOT_REACHED_MESSAGE) for name in other_names]
    failures = [item for item in placement.unschedulable if item.pod not in names]
    return replace(
        placement,
        new_nodes=tuple(node for node in placement.new_nodes if not names.intersection(node.pods)),
        existing=tuple(fit for fit in fits if fit.pods),
        unschedulable=tuple(sorted((*failures, *unreached), key=lambda item: item.pod)),
        approximations=tuple(item for item in placement.approximations if item.pod not in names),
        next_pod=placement.next_pod or next(iter(other_names), ""),
    )


def _with_refusals(planned: BufferedPlacement, refusals: Iterable[Unschedulable]) -> BufferedPlacement:
    placement = planned.placement
    failures = tuple(sorted((*placement.unschedulable, *refusals), key=lambda item: item.pod))
    return replace(planned, placement=replace(placement, unschedulable=failures))
