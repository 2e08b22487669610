"""How often a cycle calls AWS."""

import msgspec
import pytest

from shared.report.calls import BUDGET, PER_ACTION, overrun, since, so_far
from tests.unit.snapshot_world import world


def test_only_what_was_called_since_counts() -> None:
    some = msgspec.structs.replace(world(), calls=lambda: {"s3:GetObject": 5, "ec2:CreateFleet": 2, "ssm:A": 1})
    assert since({"s3:GetObject": 3, "ssm:A": 1}, some) == {"ec2:CreateFleet": 2, "s3:GetObject": 2}
    assert list(since({}, some)) == ["ec2:CreateFleet", "s3:GetObject", "ssm:A"]


def test_where_nobody_counts_there_is_nothing_to_tell() -> None:
    assert so_far(world()) == {}
    assert since({}, world()) == {}


@pytest.mark.parametrize("function", sorted(BUDGET))
@pytest.mark.parametrize("actions", [0, 3])
def test_more_calls_than_are_allowed_are_a_problem_that_names_the_most_frequent(function: str, actions: int) -> None:
    allowed = BUDGET[function] + PER_ACTION * actions
    assert overrun(function, {"a": allowed - 1, "b": 1}, actions) == ()
    [problem] = overrun(function, {"a": allowed, "b": 1}, actions)
    assert f"{allowed + 1} calls" in problem.message
    assert problem.message.endswith(f"{allowed} were a")
