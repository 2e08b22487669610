"""`joiner explain` of a live cluster: how things are now, with a journal or without."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from cli.explain.kinds import ExplainKind
from cli.main import main
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import LAUNCHES_PAUSED
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.karpenter.node_class import EC2NodeClass
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.support.failing_launches import with_failed_launches
from tests.unit.cli.explain.explained_journals import BOUGHT, LAUNCH_ENTRIES, build_journal_evidence, map_answers

Out = pytest.CaptureFixture[str]


def build_documents() -> list[dict[str, Any]]:
    def make_object(api: str, kind: str, name: str, spec: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
        meta = {"name": name, "uid": name, "creationTimestamp": "2026-11-21T08:00:00Z"} | fields.pop("metadata", {})
        return {"apiVersion": api, "kind": kind, "metadata": meta, "spec": dict(spec), **fields}

    container = {"containers": [{"name": "main", "image": "x"}]}
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    metadata = {"labels": dict(BOUGHT)}
    lame = {"type": "Initialized", "status": "Unknown", "reason": "x", "message": "a startup taint is left"}
    return [
        make_object("v1", "Pod", "on", container | {"nodeName": "n1"}, metadata={"namespace": "shop"}),
        make_object("v1", "Pod", "off", container, metadata={"namespace": "shop"}, status={"conditions": [waits]}),
        make_object(
            "v1",
            "Pod",
            "soon",
            container,
            metadata={"namespace": "shop"},
            status={"conditions": [waits], "nominatedNodeName": "n1"},
        ),
        make_object("v1", "Node", "n1", {"taints": [{"key": "a", "effect": "NoSchedule"}]}, metadata=metadata),
        make_object("v1", "Node", "bare", {}),
        make_object(
            "karpenter.sh/v1",
            "NodeClaim",
            "c1",
            {"nodeClassRef": reference, "requirements": [], "expireAfter": "3h"},
            metadata=metadata,
            status={"providerID": "aws:///us-east-1c/i-1", "nodeName": "n1", "conditions": [lame]},
        ),
        make_object(
            "karpenter.sh/v1",
            "NodeClaim",
            "c9",
            {"nodeClassRef": reference, "requirements": [], "expireAfter": "1h"},
        ),
        make_object(
            "karpenter.sh/v1",
            "NodePool",
            "default",
            {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}},
        ),
    ]


def build_live_snapshot() -> ClusterSnapshot:
    snapshot = build_snapshot_from_documents(build_documents(), DEFAULT_START_TIME + timedelta(minutes=90))
    assert snapshot.problems == ()
    return snapshot


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("pod", "on", ("on node n1",)),
        (
            "pod",
            "off",
            (
                "pending: Unschedulable: 0/1 nodes",
                "`joiner plan --pod shop/off` shows where Joiner would schedule it now",
            ),
        ),
        (
            "pod",
            "soon",
            (
                "pending: Unschedulable: 0/1 nodes",
                "nominated for node n1",
                "`joiner plan --pod shop/soon` shows where Joiner would schedule it now",
            ),
        ),
        (
            "node",
            "n1",
            (
                "Node: not ready, c5.xlarge, spot, us-east-1c, 1 pod, 1h30m old",
                "tainted: a:NoSchedule",
                "NodeClaim: launched",
                "Initialized is Unknown: a startup taint is left",
                "expires in 1h30m",
            ),
        ),
        ("node", "bare", ("Node: not ready, 0 pods, 1h30m old",)),
        ("nodeclaim", "c9", ("NodeClaim: not launched yet", "its expireAfter has passed")),
        ("nodepool", "default", ("NodePool: 1 Node, 1 NodeClaim, EC2NodeClass default",)),
    ],
)
def test_current_state_is_read_from_a_live_cluster(kind: ExplainKind, name: str, expected: tuple[str, ...]) -> None:
    assert map_answers(build_journal_evidence(live=build_live_snapshot()), kind, name)["current state"] == expected


def test_pause_by_joiner_and_pause_by_a_user_have_different_texts() -> None:
    snapshot = build_live_snapshot()
    at = snapshot.taken_at - timedelta(minutes=10)
    failing_class = with_failed_launches(EC2NodeClass(meta=ObjectMeta(name="default")), at)
    paused_pools = tuple(
        replace(pool, meta=replace(pool.meta, annotations=build_pairs({LAUNCHES_PAUSED: "true by anna"})))
        for pool in snapshot.node_pools
    )
    snapshot = replace(snapshot, node_classes=(failing_class,), node_pools=paused_pools)
    answers = map_answers(build_journal_evidence(live=snapshot), "nodepool", "default")["current state"]
    assert answers[1] == "a user paused launches, by anna"
    assert answers[2].startswith(
        "Joiner paused launches 1m ago: the last 3 nodes of EC2NodeClass default did not register; one node is "
        "launched as a test at 2026-11-21T09:"
    )


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("pod", "cart", ("not in the cluster, or completed",)),
        ("node", "n1", ("Node: not in the cluster", "NodeClaim: not in the cluster")),
        ("nodepool", "default", ("NodePool: not in the cluster",)),
    ],
)
def test_object_missing_from_the_live_cluster_is_reported_as_gone(
    kind: ExplainKind, name: str, expected: tuple[str, ...]
) -> None:
    assert (
        map_answers(
            build_journal_evidence(*LAUNCH_ENTRIES, live=ClusterSnapshot(taken_at=DEFAULT_START_TIME)), kind, name
        )["current state"]
        == expected
    )


def test_node_of_a_live_cluster_is_explained_without_a_journal() -> None:
    answers = map_answers(build_journal_evidence(live=build_live_snapshot()), "node", "n1")
    assert answers["names"] == ("node n1, NodeClaim c1, instance i-1, NodePool default",)


def test_context_option_reads_the_live_cluster(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    monkeypatch.setattr("cli.journal.sources._read_cluster", lambda *_: build_live_snapshot())
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    assert main(["explain", "pod", "off", "--context"]) == 0
    output = capsys.readouterr().out
    assert "pending: Unschedulable" in output
    assert "no journal was read" in output
