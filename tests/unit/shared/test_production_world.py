"""Connections of a container: those that were idle for long are closed when an invocation starts."""

from datetime import UTC, datetime, timedelta

import pytest

from shared import production_world
from shared.aws.clients import Clients
from shared.aws.eks import BotoEks
from shared.kubernetes.client import MAX_CONNECTIONS, KubeClient
from shared.model.ec2.account import ControlPlaneFacts
from shared.production_world import MAX_IDLE_TIME, build_world
from shared.settings import Settings

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
SECOND = timedelta(seconds=1)
FACTS = ControlPlaneFacts(
    name="demo", endpoint="https://k.eks", certificate_authority="", version="1.34", service_cidr="10.100.0.0/16"
)


@pytest.mark.parametrize(
    ("seconds_between_starts", "closed_count"),
    [
        ((), 0),
        ((MAX_IDLE_TIME,), 0),
        ((MAX_IDLE_TIME + SECOND,), 1),
        ((MAX_IDLE_TIME - SECOND, SECOND), 0),
        ((SECOND, MAX_IDLE_TIME), 1),
        ((SECOND, MAX_IDLE_TIME + SECOND, SECOND), 1),
        ((SECOND, MAX_IDLE_TIME, MAX_IDLE_TIME, SECOND), 2),
        ((-MAX_IDLE_TIME - SECOND,), 1),
    ],
)
def test_an_invocation_closes_connections_that_were_idle_for_long(
    seconds_between_starts: tuple[timedelta, ...], closed_count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed_clients: list[type] = []
    for client_type in (Clients, KubeClient):
        monkeypatch.setattr(client_type, "close_idle_connections", lambda client: closed_clients.append(type(client)))
    monkeypatch.setattr(BotoEks, "describe_cluster", lambda *_: FACTS)
    production_world._build_container.cache_clear()  # noqa: SLF001 - every test is a new container
    now = [NOW]
    settings = Settings(cluster_name="demo", region="us-east-1")

    def read_clock() -> datetime:
        return now[-1]

    build_world(settings.build_environment(), "first", read_clock)
    for delay in seconds_between_starts:
        now.append(now[-1] + delay)
        build_world(settings.build_environment(), "next", read_clock)
    assert closed_clients == [Clients, KubeClient] * closed_count


def test_as_many_calls_run_at_once_as_connections_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BotoEks, "describe_cluster", lambda *_: FACTS)
    production_world._build_container.cache_clear()  # noqa: SLF001 - every test is a new container
    environment = Settings(cluster_name="demo", region="us-east-1").build_environment()
    assert build_world(environment, "first", lambda: NOW).max_parallel_calls == MAX_CONNECTIONS > 1
