"""Functions on status conditions."""

from datetime import timedelta

import pytest

from shared.model.core.conditions import (
    encode_conditions,
    find_transitions,
    has_equal_conditions,
    with_condition,
    with_observed_generation,
    with_root_conditions,
    without_condition,
)
from shared.model.core.metadata import Condition, find_condition
from tests.support.lifecycle_cases import BIRTH, NOW, make_true_conditions

ROOTS = ("Launched", "Registered")


def test_transition_time_changes_only_with_the_condition_status() -> None:
    first = with_condition((), "Launched", "Unknown", "A", "", BIRTH)
    second = with_condition(first, "Launched", "Unknown", "B", "said", NOW)
    third = with_condition(second, "Launched", "True", "", "", NOW)
    assert [condition.since for conditions in (first, second, third) for condition in conditions] == [BIRTH, BIRTH, NOW]
    assert (second[0].reason, second[0].message, third[0].reason) == ("B", "said", "Launched")


def test_condition_without_a_transition_time_gets_the_current_time() -> None:
    bare = (Condition(type="Launched", status="True"),)
    assert with_condition(bare, "Launched", "True", "", "", NOW)[0].since == NOW


def test_conditions_are_sorted_by_type_and_can_be_removed() -> None:
    conditions = with_condition(make_true_conditions("Launched"), "Drained", "True", "", "", NOW)
    assert [condition.type for condition in conditions] == ["Drained", "Launched"]
    assert without_condition(conditions, "Drained") == make_true_conditions("Launched")


@pytest.mark.parametrize(
    ("conditions", "generation", "status", "reason", "message"),
    [
        (make_true_conditions(*ROOTS), 1, "True", "Ready", ""),
        (make_true_conditions(*ROOTS), 2, "Unknown", "ReconcilingDependents", "Launched=Unknown, Registered=Unknown"),
        (make_true_conditions("Launched"), 1, "Unknown", "ReconcilingDependents", "Registered=Unknown"),
        (
            (*make_true_conditions("Launched"), Condition(type="Registered", status="False", observed_generation=1)),
            1,
            "False",
            "UnhealthyDependents",
            "Registered=False",
        ),
    ],
)
def test_ready_condition_is_computed_from_its_root_conditions(
    conditions: tuple[Condition, ...], generation: int, status: str, reason: str, message: str
) -> None:
    ready = find_condition(with_root_conditions(conditions, ROOTS, NOW, generation), "Ready")
    assert ready is not None
    assert (ready.status, ready.reason, ready.message, ready.since) == (status, reason, message, NOW)


def test_missing_root_condition_is_unknown_since_object_creation() -> None:
    launched = find_condition(with_root_conditions((), ROOTS, NOW, 1, BIRTH), "Launched")
    assert launched is not None
    assert (launched.status, launched.reason, launched.since) == ("Unknown", "AwaitingReconciliation", BIRTH)


def test_only_decided_conditions_get_the_new_observed_generation() -> None:
    conditions = (
        *make_true_conditions("Launched", "Drained"),
        Condition(type="Registered", status="Unknown", observed_generation=1),
    )
    assert [condition.observed_generation for condition in with_observed_generation(conditions, ROOTS, 5)] == [1, 5, 1]


def test_conditions_are_encoded_in_kubernetes_api_format() -> None:
    assert encode_conditions(make_true_conditions("Launched")) == [
        {
            "type": "Launched",
            "status": "True",
            "reason": "Launched",
            "message": "",
            "lastTransitionTime": "2026-11-21T11:00:00Z",
            "observedGeneration": 1,
        }
    ]
    assert "lastTransitionTime" not in encode_conditions((Condition(type="A", status="True"),))[0]


def test_condition_comparison_ignores_order_and_fractions_of_seconds() -> None:
    later = make_true_conditions(*reversed(ROOTS), since=BIRTH + timedelta(milliseconds=3))
    assert has_equal_conditions(make_true_conditions(*ROOTS), later)
    assert not has_equal_conditions(make_true_conditions(*ROOTS), make_true_conditions(*ROOTS, since=NOW))


def test_transitions_contain_changed_conditions_with_their_old_status() -> None:
    old = (Condition(type="Drained", status="Unknown"), *make_true_conditions("Launched"))
    new = (*make_true_conditions("Drained", "Launched", "Registered"),)
    assert [(condition.type, was) for condition, was in find_transitions(old, new)] == [
        ("Drained", "Unknown"),
        ("Registered", "Unknown"),
    ]
