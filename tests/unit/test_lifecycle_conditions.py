"""The algebra of status conditions."""

from datetime import timedelta

import pytest

from shared.model.conditions import (
    conditions_json,
    restamped,
    rooted,
    same_conditions,
    transitions,
    with_condition,
    without_condition,
)
from shared.model.objects import Condition, condition
from tests.unit.lifecycle_cases import BIRTH, NOW, true

ROOTS = ("Launched", "Registered")


def test_the_transition_time_moves_with_the_status_only() -> None:
    first = with_condition((), "Launched", "Unknown", "A", "", BIRTH)
    second = with_condition(first, "Launched", "Unknown", "B", "said", NOW)
    third = with_condition(second, "Launched", "True", "", "", NOW)
    assert [one.since for some in (first, second, third) for one in some] == [BIRTH, BIRTH, NOW]
    assert (second[0].reason, second[0].message, third[0].reason) == ("B", "said", "Launched")


def test_a_condition_without_a_transition_time_gets_one() -> None:
    bare = (Condition(type="Launched", status="True"),)
    assert with_condition(bare, "Launched", "True", "", "", NOW)[0].since == NOW


def test_conditions_are_sorted_by_type_and_can_be_left_out() -> None:
    some = with_condition(true("Launched"), "Drained", "True", "", "", NOW)
    assert [one.type for one in some] == ["Drained", "Launched"]
    assert without_condition(some, "Drained") == true("Launched")


@pytest.mark.parametrize(
    ("given", "generation", "status", "reason", "message"),
    [
        (true(*ROOTS), 1, "True", "Ready", ""),
        (true(*ROOTS), 2, "Unknown", "ReconcilingDependents", "Launched=Unknown, Registered=Unknown"),
        (true("Launched"), 1, "Unknown", "ReconcilingDependents", "Registered=Unknown"),
        (
            (*true("Launched"), Condition(type="Registered", status="False", observed_generation=1)),
            1,
            "False",
            "UnhealthyDependents",
            "Registered=False",
        ),
    ],
)
def test_ready_is_computed_from_its_roots(
    given: tuple[Condition, ...], generation: int, status: str, reason: str, message: str
) -> None:
    ready = condition(rooted(given, ROOTS, NOW, generation), "Ready")
    assert ready is not None
    assert (ready.status, ready.reason, ready.message, ready.since) == (status, reason, message, NOW)


def test_a_missing_root_is_unknown_since_the_object_was_created() -> None:
    launched = condition(rooted((), ROOTS, NOW, 1, BIRTH), "Launched")
    assert launched is not None
    assert (launched.status, launched.reason, launched.since) == ("Unknown", "AwaitingReconciliation", BIRTH)


def test_what_is_decided_speaks_for_the_new_generation_and_what_is_not_does_not() -> None:
    some = (*true("Launched", "Drained"), Condition(type="Registered", status="Unknown", observed_generation=1))
    assert [one.observed_generation for one in restamped(some, ROOTS, 5)] == [1, 5, 1]


def test_conditions_are_written_as_the_api_has_them() -> None:
    assert conditions_json(true("Launched")) == [
        {
            "type": "Launched",
            "status": "True",
            "reason": "Launched",
            "message": "",
            "lastTransitionTime": "2026-11-21T11:00:00Z",
            "observedGeneration": 1,
        }
    ]
    assert "lastTransitionTime" not in conditions_json((Condition(type="A", status="True"),))[0]


def test_order_and_fractions_of_seconds_make_no_difference() -> None:
    later = true(*reversed(ROOTS), since=BIRTH + timedelta(milliseconds=3))
    assert same_conditions(true(*ROOTS), later)
    assert not same_conditions(true(*ROOTS), true(*ROOTS, since=NOW))


def test_transitions_name_what_turned_and_from_what() -> None:
    old = (Condition(type="Drained", status="Unknown"), *true("Launched"))
    new = (*true("Drained", "Launched", "Registered"),)
    assert [(one.type, was) for one, was in transitions(old, new)] == [
        ("Drained", "Unknown"),
        ("Registered", "Unknown"),
    ]
