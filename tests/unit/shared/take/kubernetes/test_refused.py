"""Tests of what is read from an invalid NodePool or EC2NodeClass: enough to report the error in its status."""

import json

import pytest

from shared.model.core.metadata import Pairs, Problem
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS

CONDITION = {"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": "2026-11-21T12:00:00Z"}


def read_problem(kind: str, status: object, generation: object = 3, **metadata: object) -> Problem:
    meta = {"name": "poor", "uid": "u", "generation": generation} | metadata
    body = json.dumps({"items": [{"metadata": meta, "spec": 7, "status": status}]}).encode()
    _, [problem], _ = next(resource_kind for resource_kind in RESOURCE_KINDS if resource_kind.kind == kind).decode_page(
        body
    )
    return problem


@pytest.mark.parametrize("kind", ["NodePool", "EC2NodeClass"])
def test_invalid_object_keeps_its_conditions_and_generation(kind: str) -> None:
    problem = read_problem(kind, {"conditions": [CONDITION]})
    assert (problem.uid, problem.generation) == ("u", 3)
    assert [(condition.type, condition.status) for condition in problem.conditions] == [("Ready", "True")]


@pytest.mark.parametrize("status", ["nonsense", {"conditions": 3}, {"conditions": [{"status": 1}]}, {}])
def test_unreadable_conditions_of_an_invalid_object_are_empty(status: object) -> None:
    problem = read_problem("NodePool", status, generation="many")
    assert (problem.generation, problem.conditions) == (0, ())


def test_invalid_objects_of_other_kinds_keep_no_status() -> None:
    problem = read_problem("NodeClaim", {"conditions": [CONDITION]})
    assert (problem.generation, problem.conditions) == (0, ())


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, ()),
        ({"joiner.dev/graceful-expiration": "24h", "team": "shop"}, (("joiner.dev/graceful-expiration", "24h"),)),
        ({"joiner.dev/graceful-expiration": 24}, None),
        ("nonsense", None),
    ],
)
def test_unreadable_node_pool_keeps_the_annotations_of_joiner(annotations: object, expected: Pairs | None) -> None:
    assert read_problem("NodePool", {}, annotations=annotations).annotations == expected
