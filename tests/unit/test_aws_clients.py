"""How patient the clients are."""

from collections.abc import Iterator

import pytest

from shared.aws.clients import Clients
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from sim.http.server import EmbeddedAws


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    clients = Clients("eu-west-1")
    yield clients
    clients.close()


def test_a_client_is_made_once(clients: Clients) -> None:
    assert clients.patient("ssm") is clients.patient("ssm", "eu-west-1")
    assert clients.patient("ssm") is not clients.once("ssm")
    assert clients.patient("ssm").meta.region_name == "eu-west-1"


def test_another_region_has_another_client(clients: Clients) -> None:
    assert clients.patient("pricing", "us-east-1").meta.endpoint_url == "https://api.pricing.us-east-1.amazonaws.com"


def test_reads_are_repeated_and_conditional_writes_are_not(clients: Clients) -> None:
    patient, once = clients.patient("dynamodb").meta.config, clients.once("dynamodb").meta.config
    assert patient.retries == {"mode": "adaptive", "total_max_attempts": 4}
    assert once.retries == {"mode": "standard", "total_max_attempts": 1}


def test_only_a_fleet_is_waited_for(clients: Clients) -> None:
    waits = {clients.once("dynamodb").meta.config.read_timeout, clients.patient("ssm").meta.config.read_timeout}
    assert waits == {10}
    assert clients.once("ec2").meta.config.read_timeout == 30


def test_an_endpoint_of_our_own_is_spoken_to_instead() -> None:
    clients = Clients("us-east-1", endpoint_url="http://127.0.0.1:1")
    assert clients.patient("ssm").meta.endpoint_url == "http://127.0.0.1:1"
    clients.close()


@pytest.mark.loopback
def test_every_attempt_is_counted_by_call() -> None:
    with EmbeddedAws(Cloud(Clock())) as server:
        clients = Clients("us-east-1", endpoint_url=server.url)
        assert clients.calls() == {}
        server.fail_next("ssm", "GetParameter", "ThrottlingException", 400)
        with pytest.raises(Exception, match="ParameterNotFound"):
            clients.patient("ssm").get_parameter(Name="/none")
        clients.patient("ec2").describe_subnets()
        assert clients.calls() == {"ec2:DescribeSubnets": 1, "ssm:GetParameter": 2}
        clients.close()
