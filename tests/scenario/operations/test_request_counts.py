"""Requests per cycle: without optional features exactly the recorded ones, with a feature also its own."""

from typing import Final

import pytest

from tests.scenario.request_counts import RequestCounts, count_phases, find_additional_requests, read_recorded_counts

GROUP_SETTINGS: Final = {
    "group": "batch",
    "group-limit-usd-per-hour": "100",
    "group-table": "arn:aws:dynamodb:us-east-1:111122223333:table/joiner-groups",
}
REQUEST_LIST: Final = "kube.list /apis/autoscaling.x-k8s.io/v1/provisioningrequests"
DEVICE_LISTS: Final = tuple(
    f"kube.list /apis/resource.k8s.io/v1/{name}"
    for name in ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
)
QUIET_RUNS: Final = 10
CATALOG_RUNS: Final = 2


def find_additions(settings: dict[str, str], canary: str = "") -> dict[str, RequestCounts]:
    """Return the additional requests with *settings* in each phase in which there are some."""
    counts = count_phases(tuple(sorted(settings.items())), canary)
    additions = {name: find_additional_requests(counts[name], count_phases()[name]) for name in counts}
    return {name: requests for name, requests in additions.items() if requests}


def test_cluster_without_optional_features_makes_the_recorded_requests() -> None:
    message = "meant? write the new numbers with `python -m tests.scenario.request_counts`"
    assert count_phases() == read_recorded_counts(), message


def test_every_function_is_recorded() -> None:
    functions = {function for counts in read_recorded_counts().values() for function in counts}
    assert functions == {"catalog", "disrupt", "interrupt", "lifecycle", "provision"}


@pytest.mark.parametrize(
    ("settings", "canary"), [({"gangs": "on"}, ""), ({}, "nodes=1 soak=15m")], ids=["gangs", "canary"]
)
def test_unused_feature_adds_no_request(settings: dict[str, str], canary: str) -> None:
    assert find_additions(settings, canary) == {}


def test_each_run_and_each_launch_lists_provisioning_requests() -> None:
    additions = find_additions({"provisioning-requests": "on"})
    assert additions == {
        "quiet": {name: {REQUEST_LIST: QUIET_RUNS} for name in ("disrupt", "provision")},
        "launch": {"disrupt": {REQUEST_LIST: 3}, "provision": {REQUEST_LIST: 8}},
        "interruption": {"disrupt": {REQUEST_LIST: 1}, "interrupt": {REQUEST_LIST: 1}, "provision": {REQUEST_LIST: 8}},
    }


def test_each_plan_lists_four_kinds_of_devices_and_each_catalog_reads_slices_of_nodes() -> None:
    additions = find_additions({"dynamic-resource-allocation": "on"})
    catalog_lists = ("kube.list /api/v1/nodes", "kube.list /apis/karpenter.sh/v1/nodepools", DEVICE_LISTS[-1])
    assert additions["quiet"] == {
        "catalog": dict.fromkeys(catalog_lists, CATALOG_RUNS),
        "disrupt": dict.fromkeys(DEVICE_LISTS, QUIET_RUNS),
    }
    for phase in ("launch", "interruption"):
        plans = {name: own for name, own in additions[phase].items() if name != "catalog"}
        assert all(own.keys() == set(DEVICE_LISTS) and len(set(own.values())) == 1 for own in plans.values())


def test_event_bus_gets_one_request_for_each_run_with_events() -> None:
    additions = find_additions({"event-bus": "alerts"})
    assert additions == {
        "launch": {"provision": {"event_bus.put": 1}},
        "interruption": {"interrupt": {"event_bus.put": 1}, "provision": {"event_bus.put": 1}},
    }


def test_group_is_read_by_each_plan_and_written_by_provision() -> None:
    additions = find_additions(GROUP_SETTINGS)
    assert additions["quiet"] == {
        "disrupt": {"group_table.read": QUIET_RUNS},
        "provision": {
            "bucket.get catalogue": 2 * QUIET_RUNS,
            "group_table.read": 2 * QUIET_RUNS,
            "group_table.write": 2,
            "kube.list /api/v1/nodes": QUIET_RUNS,
            "kube.list /apis/karpenter.k8s.aws/v1/ec2nodeclasses": QUIET_RUNS,
            "kube.list /apis/karpenter.sh/v1/nodeclaims": 2 * QUIET_RUNS,
            "kube.list /apis/karpenter.sh/v1/nodepools": QUIET_RUNS,
            "table.list_rows launch-group": QUIET_RUNS,
            "table.list_rows ledger": QUIET_RUNS,
            "table.list_rows unavailable": QUIET_RUNS,
        },
    }
    assert {function for counts in additions.values() for function in counts} == {"disrupt", "interrupt", "provision"}
    assert additions["launch"]["provision"]["group_table.write"] == 1
