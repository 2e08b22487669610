"""The number of AWS calls per cycle."""

import msgspec
import pytest

from shared.report.metrics.api_calls import (
    MAX_CALLS_PER_ACTION,
    MAX_CALLS_PER_CYCLE,
    count_calls_since,
    find_call_overrun,
    get_call_counts,
)
from tests.support.snapshot_world import make_world


def test_only_api_calls_since_the_last_count_are_counted() -> None:
    counted_world = msgspec.structs.replace(
        make_world(), calls=lambda: {"s3:GetObject": 5, "ec2:CreateFleet": 2, "ssm:A": 1}
    )
    assert count_calls_since({"s3:GetObject": 3, "ssm:A": 1}, counted_world) == {
        "ec2:CreateFleet": 2,
        "s3:GetObject": 2,
    }
    assert list(count_calls_since({}, counted_world)) == ["ec2:CreateFleet", "s3:GetObject", "ssm:A"]


def test_world_without_a_call_counter_reports_no_calls() -> None:
    assert get_call_counts(make_world()) == {}
    assert count_calls_since({}, make_world()) == {}


@pytest.mark.parametrize("function", sorted(MAX_CALLS_PER_CYCLE))
@pytest.mark.parametrize("actions", [0, 3])
def test_too_many_aws_calls_are_a_problem_that_names_the_most_frequent_call(function: str, actions: int) -> None:
    allowed = MAX_CALLS_PER_CYCLE[function] + MAX_CALLS_PER_ACTION * actions
    assert find_call_overrun(function, {"a": allowed - 1, "b": 1}, actions) == ()
    [problem] = find_call_overrun(function, {"a": allowed, "b": 1}, actions)
    assert f"{allowed + 1} AWS calls" in problem.message
    assert problem.message.endswith(f"{allowed} calls of a")
