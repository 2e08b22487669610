"""What is known of a NodePool that is refused: enough to tell it so."""

import json

import pytest

from shared.model.objects import Problem
from shared.snapshot.kinds import LISTINGS

CONDITION = {"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": "2026-11-21T12:00:00Z"}


def refused(kind: str, status: object, generation: object = 3) -> Problem:
    meta = {"name": "poor", "uid": "u", "generation": generation}
    body = json.dumps({"items": [{"metadata": meta, "spec": 7, "status": status}]}).encode()
    _, [problem], _ = next(one for one in LISTINGS if one.kind == kind).page(body)
    return problem


@pytest.mark.parametrize("kind", ["NodePool", "EC2NodeClass"])
def test_its_conditions_and_generation_are_kept(kind: str) -> None:
    problem = refused(kind, {"conditions": [CONDITION]})
    assert (problem.uid, problem.generation) == ("u", 3)
    assert [(one.type, one.status) for one in problem.conditions] == [("Ready", "True")]


@pytest.mark.parametrize("status", ["nonsense", {"conditions": 3}, {"conditions": [{"status": 1}]}, {}])
def test_conditions_that_cannot_be_read_are_none(status: object) -> None:
    problem = refused("NodePool", status, generation="many")
    assert (problem.generation, problem.conditions) == (0, ())


def test_of_other_kinds_nothing_is_kept() -> None:
    problem = refused("NodeClaim", {"conditions": [CONDITION]})
    assert (problem.generation, problem.conditions) == (0, ())
