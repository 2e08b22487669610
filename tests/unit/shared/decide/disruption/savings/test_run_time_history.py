"""Run times of finite pods are learned from consecutive snapshots, each run at most once."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.disruption.savings.run_time_history import (
    FORGET_AFTER,
    MAX_FAMILIES,
    MAX_RUN_COUNT,
    find_ended_runs,
    find_finite_family,
    list_running_pods,
    select_run_times,
    update_run_times,
)
from shared.decide.disruption.savings.workload_history import update_history
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import OwnerReference
from shared.model.core.taints import DISRUPTED
from shared.model.decisions.pod_run_time import EndedRun, RunTimeRecord, find_interval, get_interval_bounds
from shared.model.decisions.workload_history import WorkloadHistory
from shared.model.kubernetes.pod import Pod
from tests.support.catalogues import NOW, make_pod
from tests.support.disruption_fleet import make_fleet, make_node_with_pods

MINUTE = timedelta(minutes=1)
FAMILY = "CronJob shop/report"


def make_finite_pod(
    name: str,
    owner_kind: str = "Job",
    owner_name: str = "report-29401230",
    *,
    policy: str = "Never",
    minutes: float = 0,
) -> Pod:
    """Return a pod that started *minutes* ago."""
    owners = (
        (OwnerReference(api_version="batch/v1", kind=owner_kind, name=owner_name, uid="o", controller=True),)
        if owner_kind
        else ()
    )
    return replace(make_pod(name, owners=owners), restart_policy=policy, started_at=NOW - minutes * MINUTE)


def make_cluster(*pods: Pod, minutes: float = 0) -> ClusterSnapshot:
    """Return a cluster with *pods* on node a, at *minutes* after NOW."""
    return replace(make_fleet(make_node_with_pods("a", *pods)), taken_at=NOW + minutes * MINUTE)


def end_run(cluster: ClusterSnapshot) -> tuple[EndedRun, ...]:
    return find_ended_runs(list_running_pods(make_cluster(make_finite_pod("p", minutes=20))), NOW, cluster)


@pytest.mark.parametrize(
    ("kind", "name", "policy", "family"),
    [
        ("Job", "report-29401230", "Never", FAMILY),
        ("Job", "import", "OnFailure", "Job shop/import"),
        ("Job", "import-x7k2p", "Never", "Job shop/import"),
        ("Job", "import-users", "Never", "Job shop/import-users"),
        ("Job", "import", "Always", "Job shop/import"),
        ("Workflow", "etl-bq4wz", "Never", "Workflow shop/etl"),
        ("", "spark-0f3a9b17c2-exec-12", "Never", "Pod shop/spark-0f3a9b17c2-exec"),
        ("StatefulSet", "db", "Always", ""),
        ("", "debug", "Always", ""),
        ("DaemonSet", "agent", "Never", ""),
    ],
)
def test_family_of_a_finite_pod_has_no_generated_name(kind: str, name: str, policy: str, family: str) -> None:
    pod = make_finite_pod(name, kind, name, policy=policy)
    if kind == "DaemonSet":
        owner = replace(pod.meta.owners[0], api_version="apps/v1")
        pod = replace(pod, meta=replace(pod.meta, owners=(owner,)))
    if kind != "Job":
        assert find_finite_family(pod) == family
    else:
        assert find_finite_family(replace(pod, restart_policy="Always")) == family, "a Job of an earlier record"


def test_pod_that_is_gone_from_a_staying_node_has_ended_between_both_snapshots() -> None:
    [run] = end_run(make_cluster(minutes=1))
    assert (run.family, run.run_time, run.last_seen_at) == (FAMILY, 20.5 * MINUTE, NOW)


def test_pod_that_still_runs_has_not_ended() -> None:
    assert end_run(make_cluster(make_finite_pod("p", minutes=20), minutes=1)) == ()


def test_pod_whose_node_is_gone_disrupted_or_not_ready_did_not_end_by_itself() -> None:
    cluster = make_cluster(minutes=1)
    [node] = cluster.nodes
    assert end_run(replace(cluster, nodes=())) == ()
    assert end_run(replace(cluster, nodes=(replace(node, taints=(DISRUPTED,)),))) == ()
    assert end_run(replace(cluster, nodes=(replace(node, conditions=()),))) == ()
    assert end_run(replace(cluster, nodes=(replace(node, meta=replace(node.meta, deleted_at=NOW)),))) == ()


def test_pod_that_is_being_deleted_is_not_observed() -> None:
    pod = make_finite_pod("p", minutes=20)
    deleted = replace(pod, meta=replace(pod.meta, deleted_at=NOW))
    assert list_running_pods(make_cluster(deleted)) == ()
    assert list_running_pods(make_cluster(replace(pod, started_at=None))) == ()


@pytest.mark.parametrize(("minutes", "is_counted"), [(2, True), (5, True), (8, False)])
def test_run_counts_only_if_its_end_is_known_well_enough(minutes: float, *, is_counted: bool) -> None:
    """A run of 20m may be known up to a quarter of its run time."""
    assert bool(end_run(make_cluster(minutes=minutes))) == is_counted


def make_run(minutes: float, last_seen: float = 0, family: str = FAMILY) -> EndedRun:
    return EndedRun(family=family, run_time=minutes * MINUTE, last_seen_at=NOW + last_seen * MINUTE)


def test_run_is_counted_once_by_whichever_container_writes_first() -> None:
    runs = (make_run(20, last_seen=3), make_run(20, last_seen=4))
    first = update_history(WorkloadHistory(), [], NOW + 5 * MINUTE, runs)
    second = update_history(first, [], NOW + 15 * MINUTE, (*runs, make_run(20, last_seen=6)))
    assert [history.run_times[0].run_count for history in (first, second)] == [2, 3]
    assert update_history(second, [], NOW + 15 * MINUTE, runs) == second


def test_counts_are_halved_so_that_newer_runs_count_more() -> None:
    records: tuple[RunTimeRecord, ...] = ()
    for number in range(MAX_RUN_COUNT + 150):
        records = update_run_times(records, [make_run(5 if number < MAX_RUN_COUNT else 60)], None, NOW)
        assert records[0].run_count <= MAX_RUN_COUNT
    counts = dict(records[0].run_counts)
    assert counts[find_interval(60 * MINUTE)] > counts[find_interval(5 * MINUTE)]


def test_families_are_bounded_and_forgotten_without_runs() -> None:
    runs = [make_run(5, number, f"Job shop/{number:04}") for number in range(MAX_FAMILIES + 20)]
    records = update_run_times((), runs, None, NOW)
    assert [record.family for record in records] == [run.family for run in runs[20:]]
    assert update_run_times(records, (), None, NOW + FORGET_AFTER + 19.5 * MINUTE) == records
    assert update_run_times(records, (), None, NOW + FORGET_AFTER + 20.5 * MINUTE) == records[1:]


def test_only_families_with_pods_are_inputs_of_a_decision() -> None:
    records = update_run_times((), [make_run(5), make_run(5, family="Job shop/import")], None, NOW)
    assert [record.family for record in select_run_times(records, make_cluster(make_finite_pod("p")))] == [FAMILY]


def test_intervals_have_no_gaps_and_contain_their_run_times() -> None:
    for interval in range(55):
        start_s, end_s = get_interval_bounds(interval)
        assert start_s < end_s == get_interval_bounds(interval + 1)[0]
        assert find_interval(timedelta(seconds=start_s)) == find_interval(timedelta(seconds=end_s - 1)) == interval
