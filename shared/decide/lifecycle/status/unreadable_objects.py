"""Reports of unreadable objects: NodePools and node classes in their status, pods by event."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from shared.decide.common.events import build_event
from shared.decide.lifecycle.reconcile_context import LifecycleContext
from shared.model.core.conditions import encode_conditions, has_equal_conditions, with_condition
from shared.model.core.metadata import ObjectMeta, Problem
from shared.model.decisions.action import Action, Kind, PatchStatus

MAX_POD_EVENTS_PER_CYCLE: Final = 20
"""Each event costs one to three API calls; the journal names all pods."""
_VALIDATION_CONDITION: Final = "ValidationSucceeded"
_REASON_BY_KIND: Final[dict[Kind, str]] = {"EC2NodeClass": "ValidationFailed", "NodePool": "NodePoolValidationFailed"}


def report_unreadable_objects(context: LifecycleContext) -> tuple[Action, ...]:
    """Return the status patches with the problems of unreadable objects, where they change; sorted by kind and name.

    An event has the same message: an API server may refuse any write to an object that its CRD forbids.
    """
    actions: list[Action] = []
    for kind, reason in _REASON_BY_KIND.items():
        problems_by_name: dict[str, list[Problem]] = defaultdict(list)
        for problem in context.cluster_state.snapshot.problems:
            if problem.kind == kind and problem.uid:
                problems_by_name[problem.name].append(problem)
        for _, problems in sorted(problems_by_name.items()):
            actions.extend(_build_status_actions(kind, reason, problems, context))
    actions.extend(_report_unreadable_pods(context))
    return tuple(actions)


def _report_unreadable_pods(context: LifecycleContext) -> Iterator[Action]:
    """Yield an event for pods that are, or may be, unschedulable.

    `kubectl describe pod` is the only place where it can be reported.
    """
    pod_problems = (
        pod_problem
        for pod_problem in context.cluster_state.snapshot.problems
        if pod_problem.kind == "Pod" and pod_problem.uid and not pod_problem.node
    )
    for problem in islice(sorted(pod_problems), MAX_POD_EVENTS_PER_CYCLE):
        namespace, _, name = problem.name.rpartition("/")
        meta = ObjectMeta(name=name, namespace=namespace, uid=problem.uid)
        words = f"Failed to schedule pod, the pod cannot be read: {problem.message}"
        yield build_event("Pod", meta, "FailedScheduling", words, context.now, type_="Warning")


def _build_status_actions(
    kind: Kind, reason: str, problems: list[Problem], context: LifecycleContext
) -> tuple[Action, ...]:
    first_problem = problems[0]
    words = "; ".join(sorted({problem.message for problem in problems}))
    conditions = with_condition(
        first_problem.conditions, _VALIDATION_CONDITION, "False", reason, words, context.now, first_problem.generation
    )
    message = f"{_VALIDATION_CONDITION}=False"
    conditions = with_condition(
        conditions, "Ready", "False", "UnhealthyDependents", message, context.now, first_problem.generation
    )
    if has_equal_conditions(conditions, first_problem.conditions):
        return ()
    body = msgspec.json.encode({"conditions": encode_conditions(conditions)}).decode()
    meta = ObjectMeta(name=first_problem.name, uid=first_problem.uid)
    event = build_event(kind, meta, reason, words, context.now, type_="Warning")
    return (
        PatchStatus(kind=kind, name=first_problem.name, status=body, message=f"the object cannot be read: {words}"),
        event,
    )
