"""`joiner explain` of a live cluster: how things are now, with a journal or without."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from cli.explain_kinds import Kind
from cli.main import main
from shared.model.cluster import Cluster
from shared.snapshot.documents import cluster_from_documents
from sim.clock import START
from tests.unit.explained_journals import (
    BOUGHT,
    MADE,
    asked,
    look,
)

Out = pytest.CaptureFixture[str]


def documents() -> list[dict[str, Any]]:
    def made(api: str, kind: str, name: str, spec: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        meta = {"name": name, "uid": name, "creationTimestamp": "2026-11-21T08:00:00Z"} | more.pop("metadata", {})
        return {"apiVersion": api, "kind": kind, "metadata": meta, "spec": dict(spec), **more}

    container = {"containers": [{"name": "main", "image": "x"}]}
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    bought = {"labels": dict(BOUGHT)}
    lame = {"type": "Initialized", "status": "Unknown", "reason": "x", "message": "a startup taint is left"}
    return [
        made("v1", "Pod", "on", container | {"nodeName": "n1"}, metadata={"namespace": "shop"}),
        made("v1", "Pod", "off", container, metadata={"namespace": "shop"}, status={"conditions": [waits]}),
        made(
            "v1",
            "Pod",
            "soon",
            container,
            metadata={"namespace": "shop"},
            status={"conditions": [waits], "nominatedNodeName": "n1"},
        ),
        made("v1", "Node", "n1", {"taints": [{"key": "a", "effect": "NoSchedule"}]}, metadata=bought),
        made("v1", "Node", "bare", {}),
        made(
            "karpenter.sh/v1",
            "NodeClaim",
            "c1",
            {"nodeClassRef": reference, "requirements": [], "expireAfter": "3h"},
            metadata=bought,
            status={"providerID": "aws:///us-east-1c/i-1", "nodeName": "n1", "conditions": [lame]},
        ),
        made(
            "karpenter.sh/v1",
            "NodeClaim",
            "c9",
            {"nodeClassRef": reference, "requirements": [], "expireAfter": "1h"},
        ),
        made(
            "karpenter.sh/v1",
            "NodePool",
            "default",
            {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}},
        ),
    ]


def alive() -> Cluster:
    found = cluster_from_documents(documents(), START + timedelta(minutes=90))
    assert found.problems == ()
    return found


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("pod", "on", ("on node n1",)),
        (
            "pod",
            "off",
            ("pending: Unschedulable: 0/1 nodes", "`joiner plan --context --pod shop/off` plans for it as it is now"),
        ),
        (
            "pod",
            "soon",
            (
                "pending: Unschedulable: 0/1 nodes",
                "nominated for node n1",
                "`joiner plan --context --pod shop/soon` plans for it as it is now",
            ),
        ),
        (
            "node",
            "n1",
            (
                "the Node is not ready, c5.xlarge, spot, us-east-1c, with 1 pod, 1 hour old",
                "tainted: a:NoSchedule",
                "the NodeClaim is launched",
                "Initialized is Unknown: a startup taint is left",
                "expires in 1 hour",
            ),
        ),
        ("node", "bare", ("the Node is not ready, with 0 pods, 1 hour old",)),
        ("nodeclaim", "c9", ("the NodeClaim is not launched yet", "its expireAfter has passed")),
        ("nodepool", "default", ("1 node, 1 claim, node class default",)),
    ],
)
def test_a_live_cluster_says_how_it_is_now(kind: Kind, name: str, said: tuple[str, ...]) -> None:
    assert asked(look(live=alive()), kind, name)["now"] == said


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("pod", "cart", ("it is not in the cluster, or it has ended",)),
        ("node", "n1", ("the Node is not in the cluster", "the NodeClaim is not in the cluster")),
        ("nodepool", "default", ("the NodePool is not in the cluster",)),
    ],
)
def test_what_a_live_cluster_has_no_more_is_said_to_be_gone(kind: Kind, name: str, said: tuple[str, ...]) -> None:
    assert asked(look(*MADE, live=Cluster(taken_at=START)), kind, name)["now"] == said


def test_a_machine_of_the_live_cluster_is_known_without_a_journal() -> None:
    told = asked(look(live=alive()), "node", "n1")
    assert told["is"] == ("node n1, NodeClaim c1, i-1, of NodePool default",)


def test_a_live_cluster_is_looked_at_where_one_is_named(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    monkeypatch.setattr("cli.explain.live_of", lambda *_: alive())
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    assert main(["explain", "pod", "off", "--context"]) == 0
    told = capsys.readouterr().out
    assert "pending: Unschedulable" in told
    assert "no journal was read" in told
