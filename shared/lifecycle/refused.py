"""What cannot be read says so where the operator looks first: pools and node classes in their status, pods by event."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from shared.lifecycle.events import about
from shared.lifecycle.machines import View
from shared.model.action import Action, Kind, PatchStatus
from shared.model.conditions import conditions_json, same_conditions, with_condition
from shared.model.objects import Meta, Problem

MOST_PODS: Final = 20
"""Per cycle: each is a call or three. The journal names them all."""
_VALID: Final = "ValidationSucceeded"
_REASONS: Final[dict[Kind, str]] = {"EC2NodeClass": "ValidationFailed", "NodePool": "NodePoolValidationFailed"}


def refuse(view: View) -> tuple[Action, ...]:
    """Write into the status of each what is wrong with it, where that is not there yet; sorted by kind and name.

    An event says the same: an API server may refuse any write to an object that its definition forbids.
    """
    actions: list[Action] = []
    for kind, reason in _REASONS.items():
        found: dict[str, list[Problem]] = defaultdict(list)
        for problem in view.cluster.problems:
            if problem.kind == kind and problem.uid:
                found[problem.name].append(problem)
        for _, problems in sorted(found.items()):
            actions.extend(_told(kind, reason, problems, view))
    actions.extend(_pods(view))
    return tuple(actions)


def _pods(view: View) -> Iterator[Action]:
    """Tell pods that wait, or may wait, where nobody else looks at them: in `kubectl describe pod`."""
    some = (one for one in view.cluster.problems if one.kind == "Pod" and one.uid and not one.node)
    for problem in islice(sorted(some), MOST_PODS):
        namespace, _, name = problem.name.rpartition("/")
        meta = Meta(name=name, namespace=namespace, uid=problem.uid)
        words = f"Failed to schedule pod, it cannot be read: {problem.message}"
        yield about("Pod", meta, "FailedScheduling", words, view.now, type_="Warning")


def _told(kind: Kind, reason: str, problems: list[Problem], view: View) -> tuple[Action, ...]:
    known = problems[0]
    words = "; ".join(sorted({one.message for one in problems}))
    conditions = with_condition(known.conditions, _VALID, "False", reason, words, view.now, known.generation)
    message = f"{_VALID}=False"
    conditions = with_condition(
        conditions, "Ready", "False", "UnhealthyDependents", message, view.now, known.generation
    )
    if same_conditions(conditions, known.conditions):
        return ()
    body = msgspec.json.encode({"conditions": conditions_json(conditions)}).decode()
    meta = Meta(name=known.name, uid=known.uid)
    said = about(kind, meta, reason, words, view.now, type_="Warning")
    return (PatchStatus(kind=kind, name=known.name, status=body, why=f"it cannot be read: {words}"), said)
