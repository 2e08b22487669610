"""How long parameter values are cached."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.aws.ssm import (
    IMMUTABLE_VALUE_TTL,
    LATEST_RELEASE_TTL,
    USER_PARAMETER_TTL,
    BotoParameterStore,
    get_cache_ttl,
)

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
RECOMMENDED = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/standard/recommended/image_id"


class CountingParameterClient:
    """Count the requests and return a different value for each."""

    def __init__(self) -> None:  # noqa: D107 - a test double
        self.request_count = 0
        self.now = START

    def get_retrying_client(self, _: str) -> Any:
        return self

    def get_parameter(self, *, Name: str) -> Any:  # noqa: N803 - boto3's word
        self.request_count += 1
        return {"Parameter": {"Name": Name, "Value": f"ami-{self.request_count}"}}


@pytest.mark.parametrize(
    ("name", "age"),
    [
        ("/own/image", USER_PARAMETER_TTL),
        (RECOMMENDED, LATEST_RELEASE_TTL),
        ("/aws/service/bottlerocket/aws-k8s-1.34/x86_64/latest/image_id", LATEST_RELEASE_TTL),
        (
            "/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.34/image_id",
            LATEST_RELEASE_TTL,
        ),
        ("/aws/service/bottlerocket/aws-k8s-1.34/x86_64/1.42.0/image_id", IMMUTABLE_VALUE_TTL),
    ],
)
def test_parameter_value_is_cached_for_the_ttl_of_its_path(name: str, age: timedelta) -> None:
    store = CountingParameterClient()
    parameters = BotoParameterStore(store, lambda: store.now)  # type: ignore[arg-type]
    assert get_cache_ttl(name) == age
    assert parameters.get_parameter(name) == "ami-1"
    store.now = START + age - timedelta(seconds=1)
    assert parameters.get_parameter(name) == "ami-1"
    store.now = START + age
    assert parameters.get_parameter(name) == "ami-2"


def test_parameter_store_without_a_clock_does_not_cache() -> None:
    store = CountingParameterClient()
    parameters = BotoParameterStore(store)  # type: ignore[arg-type]
    assert [parameters.get_parameter(RECOMMENDED) for _ in range(2)] == ["ami-1", "ami-2"]
