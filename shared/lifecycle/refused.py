"""NodePools and EC2NodeClasses that cannot be read: their status says so, where the operator looks first."""

from collections import defaultdict
from typing import Final

import msgspec

from shared.lifecycle.events import about
from shared.lifecycle.machines import View
from shared.model.action import Action, Kind, PatchStatus
from shared.model.conditions import conditions_json, same_conditions, with_condition
from shared.model.objects import Meta, Problem

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
    return tuple(actions)


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
