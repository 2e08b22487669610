"""`joiner doctor` on gangs that wait for nodes."""

import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest

from cli.cluster.kubeconfig import ClusterConnection
from cli.doctor.checks.pauses import check_gangs
from cli.doctor.command import _add_waiting_gangs
from cli.facts.cluster import read_waiting_gangs
from cli.facts.model import ReadFailure
from shared.decide.gangs.waiting_gangs import WaitingGang
from shared.errors import Forbidden
from shared.settings import Settings
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.time.virtual_clock import Clock
from tests.contract.kube_front import create
from tests.support.cli.doctor_facts import (
    NOW,
    make_facts,
    make_function_facts,
    make_kubernetes_facts,
    make_stack_facts,
)

UNREADABLE = ReadFailure(reason="Forbidden: pods", is_denied=True)


def make_waiting_gang(minutes: int) -> WaitingGang:
    return WaitingGang(
        kind="JobSet",
        name="shop/train",
        existing_count=3,
        needed_count=4,
        since=NOW - timedelta(minutes=minutes),
        reason="waiting for the others",
    )


@pytest.mark.parametrize(
    ("gangs", "results"),
    [
        (None, []),
        ((), [("ok", "no gang waits for nodes")]),
        (
            (make_waiting_gang(3),),
            [("ok", "JobSet shop/train (3 pods, 4 needed) waits for 3m: waiting for the others")],
        ),
        (
            (make_waiting_gang(20),),
            [("warn", "JobSet shop/train (3 pods, 4 needed) waits for 20m: waiting for the others")],
        ),
        (UNREADABLE, [("unseen", "gangs: cannot be read: Forbidden: pods")]),
    ],
)
def test_gang_that_waits_for_a_long_time_is_a_warning(gangs: Any, results: list[tuple[str, str]]) -> None:
    check_results = list(check_gangs(make_facts({"waiting_gangs": gangs})))
    assert [(result.level, result.message) for result in check_results] == results


def make_pod_manifest(name: str, labels: dict[str, str]) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "main"}]},
        "status": {"phase": "Pending", "conditions": [condition]},
    }


@pytest.mark.parametrize(
    ("labels", "kind", "needed_count"),
    [
        ({"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/global-replicas": "2"}, "JobSet", 2),
        ({"scheduling.x-k8s.io/pod-group": "train"}, "PodGroup", 1),
    ],
)
def test_waiting_gangs_are_read_from_the_cluster(labels: dict[str, str], kind: str, needed_count: int) -> None:
    kube = InMemoryKube(ApiServer(Clock()))
    create(kube, "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    manifest = make_pod_manifest("train-0", labels)
    create(kube, "/api/v1/namespaces/shop/pods", manifest)
    kube.patch("/api/v1/namespaces/shop/pods/train-0/status", json.dumps({"status": manifest["status"]}).encode())
    gangs = read_waiting_gangs(kube, make_kubernetes_facts(nodes=UNREADABLE), NOW)
    assert not isinstance(gangs, ReadFailure)
    assert [(gang.kind, gang.name, gang.needed_count) for gang in gangs] == [(kind, "shop/train", needed_count)]


def test_pods_that_may_not_be_listed_are_reported() -> None:
    class DenyingKube(InMemoryKube):
        def list(self, *_args: Any, **_options: Any) -> Any:
            raise Forbidden("list pods")

    failure = read_waiting_gangs(DenyingKube(ApiServer(Clock())), make_kubernetes_facts(), NOW)
    assert isinstance(failure, ReadFailure)
    assert failure.is_denied


@pytest.mark.parametrize(("gangs", "waiting_gangs"), [("on", ()), ("off", None)])
def test_gangs_are_read_only_if_the_installation_has_them(
    gangs: Literal["off", "on"], waiting_gangs: tuple[()] | None
) -> None:
    settings = Settings(cluster_name="prod", region="us-east-1", gangs=gangs)
    stack = make_stack_facts(functions=(make_function_facts("provision", settings=settings),))
    connection = SimpleNamespace(kube=InMemoryKube(ApiServer(Clock())))
    facts = _add_waiting_gangs(make_facts(of_account={"stack": stack}), cast("ClusterConnection", connection))
    assert facts.kubernetes is not None
    assert facts.kubernetes.waiting_gangs == waiting_gangs
