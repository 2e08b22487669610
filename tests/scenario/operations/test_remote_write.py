"""Metrics that a simulated cluster writes to a workspace: values, failures, and cycles without the setting."""

from collections.abc import Callable
from functools import cache

import pytest

from shared.decide.prometheus.metric_table import METRIC_BY_NAME
from shared.errors import Unreachable
from sim.fault_tap import Killed, PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool

URL = "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-0a1b2c3d/api/v1/remote_write"


@cache
def build_world(**settings: str) -> World:
    """Return a world in which nodes are launched, consolidated and removed."""
    pool = make_node_pool(
        types=("m5.large", "m5.xlarge"), disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"}
    )
    template = synthesize_template(settings=ACTIVE_SETTINGS | settings)
    world = World(make_node_class(), pool, make_deployment(6), template=template)
    world.wait_until_settled(6)
    world.apply([make_deployment(1, "huge", cpu="90")])
    world.advance_seconds(200)
    world.scale(1)
    world.advance_seconds(600)
    return world


def run_with_workspace(metrics: str = "summary") -> World:
    return build_world(**{"remote-write-url": URL, "remote-write-metrics": metrics})


def test_workspace_has_a_sample_per_minute_with_the_values_of_the_cluster() -> None:
    world = run_with_workspace()
    cluster = (("cluster", "demo"),)
    assert world.workspace.get_latest("joiner_pods_pending") == {cluster: 1.0}
    assert sum(world.workspace.get_latest("joiner_nodes").values()) >= len(world.list_claims())
    [samples] = [
        samples
        for labels, samples in world.workspace.samples_by_labels.items()
        if dict(labels)["__name__"] == "joiner_pods_pending"
    ]
    minutes = (samples[-1].timestamp_ms - samples[0].timestamp_ms) / 60_000
    assert minutes <= len(samples) <= minutes * 1.3
    assert {sample.value for sample in samples} >= {1.0}
    assert not any("metrics not written" in line for line in world.log_lines)


def test_written_series_are_those_of_the_table() -> None:
    series = [dict(labels) for labels in run_with_workspace("nodes").workspace.samples_by_labels]
    names = {labels["__name__"] for labels in series}
    assert names <= METRIC_BY_NAME.keys()
    assert {"karpenter_nodes_allocatable", "joiner_usd_per_hour", "joiner_catalog_age_seconds"} <= names
    assert "joiner_snapshot_age_seconds" not in names
    assert all(
        set(labels) - {"__name__", "cluster"} <= set(METRIC_BY_NAME[labels["__name__"]].labels) for labels in series
    )


def test_summary_has_no_series_of_nodes() -> None:
    series = [dict(labels) for labels in run_with_workspace().workspace.samples_by_labels]
    assert len(series) > 10
    assert not any("node_name" in labels for labels in series)


def test_cluster_without_the_setting_decides_and_requests_the_same() -> None:
    world_without_url, with_url = build_world(), run_with_workspace()
    assert world_without_url.workspace.request_count == 0
    assert world_without_url.entries == with_url.entries
    assert world_without_url.request_checks.log.use_by_kind.keys() == with_url.request_checks.log.use_by_kind.keys()
    requests, more_requests = (
        {request.action for _, request in world.access_control.recent_requests}
        for world in (world_without_url, with_url)
    )
    assert more_requests - requests <= {"aps:RemoteWrite"}


def fail(call: PortCall) -> None:
    if call.port == "remote_write":
        raise Unreachable("remote write to aps-workspaces.us-east-1.amazonaws.com: timeout")


def kill_after(call: PortCall) -> None:
    if (call.port, call.phase) == ("remote_write", "after"):
        raise Killed


@pytest.mark.parametrize("tap", [fail, kill_after])
def test_cycles_continue_if_the_workspace_fails_or_the_function_dies_while_it_writes(
    tap: Callable[[PortCall], None],
) -> None:
    template = synthesize_template(settings=ACTIVE_SETTINGS | {"remote-write-url": URL})
    world = World(make_node_class(), make_node_pool(), template=template)
    with world.use_tap(tap):
        world.apply([make_deployment(3)])
        world.wait_until_settled(3)
        world.advance_seconds(300)
    assert not world.broken
    world.advance_seconds(1000)
    assert world.workspace.get_latest("joiner_pods_pending") == {(("cluster", "demo"),): 0.0}
