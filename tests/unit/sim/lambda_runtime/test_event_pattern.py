"""Event patterns, as a table."""

from typing import Any

import pytest

from sim.lambda_runtime.event_pattern import check_pattern, matches_pattern
from sim.lambda_runtime.stack_template.generated_references import UnsupportedTemplateError

EVENT: dict[str, Any] = {
    "source": "aws.ec2",
    "detail-type": "EC2 Instance State-change Notification",
    "resources": ["arn:one", "arn:two"],
    "detail": {
        "instance-id": "i-1",
        "state": "Running",
        "count": 3,
        "price": 0.5,
        "spot": True,
        "nothing": None,
        "tags": [],
        "entities": [{"value": "i-1", "kind": "a"}, {"value": "i-2", "kind": "b"}],
    },
}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ({}, True),
        ({"source": ["aws.ec2"]}, True),
        ({"source": ["aws.health", "aws.ec2"]}, True),
        ({"source": ["aws.health"]}, False),
        ({"source": ["AWS.EC2"]}, False),
        ({"source": ["aws.ec2"], "detail-type": ["other"]}, False),
        ({"absent": ["x"]}, False),
        ({"detail": {"state": ["Running"]}}, True),
        ({"detail": {"state": ["stopped"]}}, False),
        ({"source": {"deeper": ["x"]}}, False),
        ({"resources": ["arn:two"]}, True),
        ({"resources": ["arn:three"]}, False),
        ({"detail": {"spot": [True]}}, True),
        ({"detail": {"spot": [1]}}, False),
        ({"detail": {"count": [3]}}, True),
        ({"detail": {"count": ["3"]}}, False),
        ({"detail": {"count": [True]}}, False),
        ({"detail": {"nothing": [None]}}, True),
        ({"detail": {"absent": [None]}}, False),
        ({"detail": {"entities": {"value": ["i-2"]}}}, True),
        ({"detail": {"entities": {"value": ["i-2"], "kind": ["a"]}}}, False),
        ({"source": [{"prefix": "aws."}]}, True),
        ({"source": [{"prefix": "gcp."}]}, False),
        ({"detail": {"count": [{"prefix": "3"}]}}, False),
        ({"source": [{"suffix": ".ec2"}]}, True),
        ({"source": [{"suffix": ".health"}]}, False),
        ({"detail": {"state": [{"equals-ignore-case": "running"}]}}, True),
        ({"detail": {"state": [{"equals-ignore-case": "ran"}]}}, False),
        ({"source": [{"anything-but": "aws.ec2"}]}, False),
        ({"source": [{"anything-but": ["aws.health", "aws.s3"]}]}, True),
        ({"source": [{"anything-but": {"prefix": "aws."}}]}, False),
        ({"absent": [{"anything-but": "x"}]}, False),
        ({"resources": [{"anything-but": "arn:one"}]}, True),
        ({"source": [{"exists": True}]}, True),
        ({"source": [{"exists": False}]}, False),
        ({"absent": [{"exists": False}]}, True),
        ({"absent": [{"exists": True}]}, False),
        ({"absent": {"deeper": [{"exists": False}]}}, True),
        ({"detail": {"count": [{"numeric": ["=", 3]}]}}, True),
        ({"detail": {"count": [{"numeric": [">", 1, "<=", 3]}]}}, True),
        ({"detail": {"count": [{"numeric": [">", 3]}]}}, False),
        ({"detail": {"price": [{"numeric": ["<", 1]}]}}, True),
        ({"detail": {"price": [{"numeric": [">=", 0.5]}]}}, True),
        ({"detail": {"spot": [{"numeric": ["=", 1]}]}}, False),
        ({"detail": {"state": [{"numeric": ["=", 1]}]}}, False),
        ({"source": ["other", {"prefix": "aws"}]}, True),
        ({"$or": [{"source": ["x"]}, {"detail": {"count": [3]}}]}, True),
        ({"$or": [{"source": ["x"]}, {"detail": {"count": [4]}}]}, False),
    ],
)
def test_event_pattern_matches_as_in_eventbridge(pattern: dict[str, Any], expected: bool) -> None:  # noqa: FBT001
    assert matches_pattern(check_pattern(pattern), EVENT) is expected


@pytest.mark.parametrize(
    "pattern",
    [
        {"source": [{"wildcard": "aws.*"}]},
        {"detail": {"ip": [{"cidr": "10.0.0.0/8"}]}},
        {"$or": [{"source": [{"wildcard": "aws.*"}]}]},
    ],
)
def test_unsupported_event_pattern_operator_is_rejected(pattern: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedTemplateError, match="are not understood"):
        check_pattern(pattern)
