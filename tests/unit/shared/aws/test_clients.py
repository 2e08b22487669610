"""How patient the clients are."""

from collections.abc import Iterator

import pytest

from shared.aws.clients import Clients
from sim.aws_http.server import EmbeddedAws
from sim.cloud.cloud import Cloud
from sim.time.virtual_clock import Clock


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    clients = Clients("eu-west-1")
    yield clients
    clients.close()


def test_client_is_cached_per_service_and_retry_mode(clients: Clients) -> None:
    assert clients.get_retrying_client("ssm") is clients.get_retrying_client("ssm", "eu-west-1")
    assert clients.get_retrying_client("ssm") is not clients.get_single_attempt_client("ssm")
    assert clients.get_retrying_client("ssm").meta.region_name == "eu-west-1"


def test_each_region_has_its_own_client(clients: Clients) -> None:
    assert (
        clients.get_retrying_client("pricing", "us-east-1").meta.endpoint_url
        == "https://api.pricing.us-east-1.amazonaws.com"
    )


def test_retrying_client_has_four_attempts_and_single_attempt_client_one(clients: Clients) -> None:
    patient, once = (
        clients.get_retrying_client("dynamodb").meta.config,
        clients.get_single_attempt_client("dynamodb").meta.config,
    )
    assert patient.retries == {"mode": "adaptive", "total_max_attempts": 4}
    assert once.retries == {"mode": "standard", "total_max_attempts": 1}


def test_only_the_single_attempt_ec2_client_has_a_long_read_timeout(clients: Clients) -> None:
    waits = {
        clients.get_single_attempt_client("dynamodb").meta.config.read_timeout,
        clients.get_retrying_client("ssm").meta.config.read_timeout,
    }
    assert waits == {10}
    assert clients.get_single_attempt_client("ec2").meta.config.read_timeout == 30


def test_custom_endpoint_url_is_used() -> None:
    clients = Clients("us-east-1", endpoint_url="http://127.0.0.1:1")
    assert clients.get_retrying_client("ssm").meta.endpoint_url == "http://127.0.0.1:1"
    clients.close()


@pytest.mark.loopback
def test_call_counts_include_every_attempt() -> None:
    with EmbeddedAws(Cloud(Clock())) as server:
        clients = Clients("us-east-1", endpoint_url=server.url)
        assert clients.get_call_counts() == {}
        server.inject_error("ssm", "GetParameter", "ThrottlingException", 400)
        with pytest.raises(Exception, match="ParameterNotFound"):
            clients.get_retrying_client("ssm").get_parameter(Name="/none")
        clients.get_retrying_client("ec2").describe_subnets()
        assert clients.get_call_counts() == {"ec2:DescribeSubnets": 1, "ssm:GetParameter": 2}
        clients.close()
