"""How long the values of parameters are believed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.aws.ssm import MOVING_FOR, OWN_FOR, PINNED_FOR, BotoParameters, age_of

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
RECOMMENDED = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/standard/recommended/image_id"


class Store:
    """Counts what it is asked; every answer is another one."""

    def __init__(self) -> None:  # noqa: D107 - a test double
        self.asked = 0
        self.now = START

    def patient(self, _: str) -> Any:
        return self

    def get_parameter(self, *, Name: str) -> Any:  # noqa: N803 - boto3's word
        self.asked += 1
        return {"Parameter": {"Name": Name, "Value": f"ami-{self.asked}"}}


@pytest.mark.parametrize(
    ("name", "age"),
    [
        ("/own/image", OWN_FOR),
        (RECOMMENDED, MOVING_FOR),
        ("/aws/service/bottlerocket/aws-k8s-1.34/x86_64/latest/image_id", MOVING_FOR),
        ("/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.34/image_id", MOVING_FOR),
        ("/aws/service/bottlerocket/aws-k8s-1.34/x86_64/1.42.0/image_id", PINNED_FOR),
    ],
)
def test_a_value_is_believed_for_as_long_as_it_can_stay(name: str, age: timedelta) -> None:
    store = Store()
    parameters = BotoParameters(store, lambda: store.now)  # type: ignore[arg-type]
    assert age_of(name) == age
    assert parameters.parameter(name) == "ami-1"
    store.now = START + age - timedelta(seconds=1)
    assert parameters.parameter(name) == "ami-1"
    store.now = START + age
    assert parameters.parameter(name) == "ami-2"


def test_without_a_clock_every_question_is_asked() -> None:
    store = Store()
    parameters = BotoParameters(store)  # type: ignore[arg-type]
    assert [parameters.parameter(RECOMMENDED) for _ in range(2)] == ["ami-1", "ami-2"]
