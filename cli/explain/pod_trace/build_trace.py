"""Build the trace of a pod: a pure function of the journal and, if there is one, the live cluster."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from cli.explain.evidence import Evidence
from cli.explain.node_records import find_node_record
from cli.explain.pod_trace import trace as steps_of
from cli.explain.pod_trace.launch_steps import build_launch_steps
from cli.explain.pod_trace.trace import PodTrace, TraceStep, compute_elapsed_times
from cli.journal.journal import Cycle
from shared.model.core.metadata import Condition, find_condition
from shared.model.decisions.action import EvictPod, NominatePod, PublishEvent
from shared.model.kubernetes.pod import Pod
from shared.report.journal.journal import DecisionNote

MAX_GAP: Final = timedelta(minutes=5)
"""A pod that no entry mentions for longer, and whose node is initialized, is bound: later plans move a running pod."""
_LAUNCH_STEPS: Final = (
    steps_of.CLAIM_CREATED,
    steps_of.FLEET_REQUESTED,
    steps_of.LAUNCHED,
    steps_of.NODE_CREATED,
    steps_of.REGISTERED,
    steps_of.INITIALIZED,
)


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A decision to run the pod on the node of a NodeClaim."""

    at: datetime | None
    claim: str
    node: str
    reason: str
    is_new_claim: bool


def build_pod_trace(evidence: Evidence, name: str) -> PodTrace:
    """Return the trace of the pod *name*, as far as its steps are recorded."""
    live_cluster = evidence.live_cluster
    pod = next((pod for pod in live_cluster.pods if pod.name == name), None) if live_cluster is not None else None
    dated_notes = _list_pending_notes(evidence, name, pod)
    plans = _list_plans(evidence, dated_notes, pod)
    started_at = _find_start(pod, dated_notes)
    steps = list(_build_first_steps(pod, dated_notes))
    for number, plan in enumerate(plans):
        next_plan = plans[number + 1] if number + 1 < len(plans) else None
        steps += _build_plan_steps(evidence, plan, next_plan, started_at)
    if not plans:
        steps += [TraceStep(name=step, status="not recorded") for step in (steps_of.PLANNED, *_LAUNCH_STEPS)]
    steps += _build_last_steps(pod)
    waiting_until = _find_waiting_end(evidence, pod, dated_notes)
    if waiting_until is not None:
        steps = _mark_unreached_steps(steps, waiting_until)
    last_plan = plans[-1] if plans else None
    return PodTrace(
        pod=name,
        uid=_find_uid(evidence, name, pod),
        node=(pod.node_name if pod is not None else "") or (last_plan.node if last_plan else ""),
        node_claim=last_plan.claim if last_plan else "",
        steps=compute_elapsed_times(tuple(steps)),
        is_waiting=waiting_until is not None,
    )


def _list_pending_notes(evidence: Evidence, name: str, pod: Pod | None) -> list[tuple[datetime, DecisionNote]]:
    """Return the decisions about the pod while it was pending; later ones plan where a running pod moves."""
    bound = _find_true_condition(pod, "PodScheduled")
    dated_notes: list[tuple[datetime, DecisionNote]] = []
    for cycle in evidence.cycles:
        at = cycle.entry.at
        if cycle.entry.function != "provision" or (bound is not None and bound.since is not None and at > bound.since):
            continue
        if pod is not None and pod.meta.created_at is not None and at < pod.meta.created_at:
            continue  # an earlier pod of this name, as of a StatefulSet
        notes = [note for note in cycle.entry.notes if note.kind == "Pod" and note.name == name]
        if notes and dated_notes and pod is None and _is_bound_since(evidence, dated_notes[-1], at):
            break
        dated_notes += [(at, note) for note in notes]
    return dated_notes


def _is_bound_since(evidence: Evidence, last: tuple[datetime, DecisionNote], at: datetime) -> bool:
    """Return whether the pod was bound between its decision *last* and the next one, at *at*."""
    place = last[1].verdict.partition("/")[2]
    if not place or at - last[0] <= MAX_GAP:
        return False
    record = find_node_record(evidence.node_records, place)
    if record is None:
        return True
    steps = build_launch_steps(evidence.cycles, None, record.claim, record.node)
    return any(step.name == steps_of.INITIALIZED and step.at is not None and step.at < at for step in steps)


def _list_plans(evidence: Evidence, dated_notes: list[tuple[datetime, DecisionNote]], pod: Pod | None) -> list[_Plan]:
    plans: list[_Plan] = []
    for at, note in dated_notes:
        kind, _, place = note.verdict.partition("/")
        if not place:
            continue
        record = find_node_record(evidence.node_records, place)
        claim = record.claim if record is not None else place if kind == "nodeclaim" else ""
        node = record.node if record is not None else place if kind == "node" else ""
        is_new_claim = kind == "nodeclaim"
        if is_new_claim or not plans or (plans[-1].claim, plans[-1].node) != (claim, node):
            plans.append(_Plan(at=at, claim=claim, node=node, reason=note.reason, is_new_claim=is_new_claim))
    if pod is not None and pod.node_name and (not plans or plans[-1].node != pod.node_name):
        record = find_node_record(evidence.node_records, pod.node_name)
        claim = record.claim if record is not None else ""
        plans.append(_Plan(at=None, claim=claim, node=pod.node_name, reason="", is_new_claim=False))
    return plans


def _find_start(pod: Pod | None, dated_notes: list[tuple[datetime, DecisionNote]]) -> datetime | None:
    if pod is not None and pod.meta.created_at is not None:
        return pod.meta.created_at
    return dated_notes[0][0] if dated_notes else None


def _build_first_steps(pod: Pod | None, dated_notes: list[tuple[datetime, DecisionNote]]) -> Iterator[TraceStep]:
    created_at = pod.meta.created_at if pod is not None else None
    yield _build_pod_step(steps_of.CREATED, created_at)
    scheduled = find_condition(pod.conditions, "PodScheduled") if pod is not None else None
    if scheduled is not None and scheduled.reason == "Unschedulable" and scheduled.since is not None:
        yield _build_pod_step(steps_of.UNSCHEDULABLE, scheduled.since, scheduled.message)
    elif dated_notes:
        at, note = dated_notes[0]
        detail = "" if "/" in note.verdict else f"{note.verdict}: {note.reason}"
        yield TraceStep(name=steps_of.UNSCHEDULABLE, at=at, source="journal", detail=detail)
    else:
        yield TraceStep(name=steps_of.UNSCHEDULABLE, status="not recorded")


def _build_plan_steps(
    evidence: Evidence, plan: _Plan, next_plan: _Plan | None, started_at: datetime | None
) -> Iterator[TraceStep]:
    """Yield the steps of *plan*: all if it is the last, otherwise those recorded before *next_plan*.

    Steps of an in-flight or existing node from before the plan, or from before the pod, are no steps of the pod.
    """
    if plan.at is None:
        yield TraceStep(name=steps_of.PLANNED, status="not recorded", node_claim=plan.claim)
    else:
        yield TraceStep(name=steps_of.PLANNED, at=plan.at, source="journal", node_claim=plan.claim, detail=plan.reason)
    live_cluster = evidence.live_cluster if next_plan is None else None
    all_steps = build_launch_steps(_select_cycles(evidence, plan, next_plan), live_cluster, plan.claim, plan.node)
    first_at = started_at if plan.is_new_claim or plan.at is None else plan.at
    pod_steps = [step for step in all_steps if step.at and (first_at is None or step.at >= first_at)]
    if next_plan is not None:
        yield from pod_steps
        return
    if not plan.claim and not all_steps:
        return  # an existing node that Joiner did not launch
    earlier_positions = [
        _LAUNCH_STEPS.index(step.name) for step in all_steps if step not in pod_steps and step.name in _LAUNCH_STEPS
    ]
    for position, name in enumerate((*_LAUNCH_STEPS, steps_of.CLAIM_DELETED)):
        steps = [step for step in pod_steps if step.name == name]
        yield from steps
        if not steps and name in _LAUNCH_STEPS and position > max(earlier_positions, default=-1):
            yield TraceStep(name=name, status="not recorded", node_claim=plan.claim)


def _select_cycles(evidence: Evidence, plan: _Plan, next_plan: _Plan | None) -> tuple[Cycle, ...]:
    """Return the cycles in which steps of *plan* can be: a NodeClaim's name can occur again after its deletion."""
    until = next_plan.at if next_plan is not None else None
    return tuple(
        cycle
        for cycle in evidence.cycles
        if (not plan.is_new_claim or plan.at is None or cycle.entry.at >= plan.at)
        and (until is None or cycle.entry.at < until)
    )


def _build_last_steps(pod: Pod | None) -> Iterator[TraceStep]:
    bound = _find_true_condition(pod, "PodScheduled")
    detail = f"on node {pod.node_name}" if pod is not None and pod.node_name else ""
    yield _build_pod_step(steps_of.BOUND, bound.since if bound is not None else None, detail)
    ready = _find_true_condition(pod, "Ready")
    restarts = pod.restarts if pod is not None else 0
    detail = "the last time: its containers restarted" if restarts else ""
    yield _build_pod_step(steps_of.RUNNING, ready.since if ready is not None else None, detail)


def _find_true_condition(pod: Pod | None, type_: str) -> Condition | None:
    condition = find_condition(pod.conditions, type_) if pod is not None else None
    return condition if condition is not None and condition.status == "True" else None


def _build_pod_step(name: str, at: datetime | None, detail: str = "") -> TraceStep:
    if at is None:
        return TraceStep(name=name, status="not recorded")
    return TraceStep(name=name, at=at, source="Pod", detail=detail)


def _find_waiting_end(
    evidence: Evidence, pod: Pod | None, dated_notes: list[tuple[datetime, DecisionNote]]
) -> datetime | None:
    """Return until when the pod is known to wait; None if it runs, or this is not known."""
    if pod is not None and evidence.live_cluster is not None:
        return evidence.live_cluster.taken_at if pod.phase == "Pending" and pod.is_active() else None
    is_rejected = bool(dated_notes) and "/" not in dated_notes[-1][1].verdict
    return dated_notes[-1][0] if is_rejected else None


def _mark_unreached_steps(steps: list[TraceStep], waiting_until: datetime) -> list[TraceStep]:
    """Return *steps* with the wait after the last recorded step; the steps after it are not reached."""
    last_position = max((position for position, step in enumerate(steps) if step.at is not None), default=-1)
    waiting_step = TraceStep(name=steps_of.WAITING, at=waiting_until, detail="not running yet")
    unreached_steps = (msgspec.structs.replace(step, status="not reached") for step in steps[last_position + 1 :])
    return [*steps[: last_position + 1], waiting_step, *unreached_steps]


def _find_uid(evidence: Evidence, name: str, pod: Pod | None) -> str:
    if pod is not None and pod.meta.uid:
        return pod.meta.uid
    for cycle in reversed(evidence.cycles):
        for result in cycle.entry.results:
            match result.action:
                case PublishEvent(kind="Pod") | NominatePod() | EvictPod() as action:
                    if f"{action.namespace}/{action.name}" == name and action.uid:
                        return action.uid
                case _:
                    pass
    return ""
