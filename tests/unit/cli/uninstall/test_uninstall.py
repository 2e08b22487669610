"""`joiner uninstall`: what it asks, what it touches, and how it ends."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cli.main import main
from shared.model.core.labels import LAUNCHES_PAUSED
from shared.model.karpenter.pause import CLUSTER_NAMESPACE
from sim.cluster.api_server.kube_port import InMemoryKube
from tests.contract.kube_front import create, list_names, list_objects
from tests.support.cli.fleet_files import POOL, make_claim, make_node_manifests, make_pod
from tests.support.cli.live_cases import Guarded, serve_cluster

pytestmark = pytest.mark.loopback
Out = pytest.CaptureFixture[str]
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
FOREIGN = {**POOL["spec"]["template"]["spec"], "nodeClassRef": {"group": "other.io", "kind": "Class", "name": "x"}}
EXPECTED_OUTPUT = """launches are paused
deleted NodePool default
left: 1 NodePool, 0 NodeClaims, 0 nodes with 0 pods
no nodes of Joiner are left in the cluster; next steps:
  npx cdk destroy -c cluster=CLUSTER
  joiner audit --cluster CLUSTER
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[InMemoryKube, str]]:
    monkeypatch.setattr("cli.uninstall.command.time.sleep", lambda _: None)
    with serve_cluster(tmp_path) as (kube, config):
        create(kube, POOLS, POOL)
        yield kube, config


@pytest.fixture
def kube(cluster: tuple[InMemoryKube, str]) -> InMemoryKube:
    return cluster[0]


@pytest.fixture
def arguments(cluster: tuple[InMemoryKube, str]) -> list[str]:
    return ["uninstall", "--kubeconfig", cluster[1]]


def list_writes() -> list[tuple[str, str]]:
    return [(verb, path) for verb, path, _ in Guarded.requests if verb in ("PATCH", "DELETE")]


def create_held_node(kube: InMemoryKube) -> None:
    """Create a node whose NodeClaim keeps its finalizer."""
    create(kube, CLAIMS, make_claim("c", "n", 4, finalizers=["karpenter.sh/termination"]))
    kube.patch(f"{CLAIMS}/c/status", b'{"status": {"providerID": "x/n"}}')
    [node] = make_node_manifests("n", 4)
    create(kube, "/api/v1/nodes", node)


def test_dry_run_lists_objects_to_remove_and_writes_nothing(
    kube: InMemoryKube, arguments: list[str], capsys: Out
) -> None:
    create_held_node(kube)
    create(kube, "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    stays = make_pod("till", "n", "1")
    stays["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    create(kube, "/api/v1/namespaces/shop/pods", stays)
    assert main([*arguments, "--dry-run"]) == 0
    output = capsys.readouterr().out
    assert "to be removed from here: 1 NodePool, 1 NodeClaim, 1 node with 1 pod\n" in output
    assert "  blocked: n: pod shop/till has the annotation karpenter.sh/do-not-disrupt\n" in output
    assert main([*arguments, "--dry-run", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["empty"], document["nodePools"], document["nodes"], document["pods"]) == (
        False,
        ["default"],
        ["n"],
        1,
    )
    assert list_writes() == []


def test_uninstall_removes_objects_in_order_and_prints_next_steps(
    kube: InMemoryKube, arguments: list[str], capsys: Out
) -> None:
    assert main([*arguments, "--yes"]) == 0
    assert capsys.readouterr().out.endswith(EXPECTED_OUTPUT)
    assert list_names(list_objects(kube, POOLS)) == []
    namespace = f"/api/v1/namespaces/{CLUSTER_NAMESPACE}"
    assert list_writes() == [("PATCH", namespace), ("DELETE", f"{POOLS}/default"), ("PATCH", namespace)]
    assert main([*arguments, "--yes", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["empty"], document["nextCommands"][0]) == (True, "npx cdk destroy -c cluster=CLUSTER")


def test_uninstall_is_cancelled_unless_confirmed(
    kube: InMemoryKube, arguments: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for reply, status in (("no\n", 1), ("", 1), ("yes\n", 0)):
        assert list_names(list_objects(kube, POOLS)) == ["default"]
        monkeypatch.setattr("sys.stdin", Terminal(reply))
        assert main(arguments) == status
        captured = capsys.readouterr()
        assert "remove all of it from here? Type yes: " in captured.err
        assert ("cancelled: nothing was removed" in captured.err) == bool(status)


def test_uninstall_without_a_terminal_requires_the_yes_flag(
    kube: InMemoryKube, arguments: list[str], capsys: Out
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "no terminal to ask for confirmation: add --yes" in capsys.readouterr().err
    assert list_names(list_objects(kube, POOLS)) == ["default"]


def test_uninstall_timeout_exits_with_1_and_keeps_launches_paused(
    kube: InMemoryKube, arguments: list[str], capsys: Out
) -> None:
    create_held_node(kube)
    assert main([*arguments, "--yes", "--timeout", "30s"]) == 1
    captured = capsys.readouterr()
    assert "timed out with 0 NodePools, 1 NodeClaim, 1 node with 0 pods left: run it again to continue" in captured.err
    noted = json.loads(kube.read(f"/api/v1/namespaces/{CLUSTER_NAMESPACE}"))["metadata"]["annotations"]
    assert "because joiner uninstall" in noted[LAUNCHES_PAUSED]


def test_ctrl_c_reports_that_nodes_continue_to_drain(
    kube: InMemoryKube, arguments: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(_: float) -> None:
        raise KeyboardInterrupt

    create_held_node(kube)
    monkeypatch.setattr("cli.uninstall.command.time.sleep", sleep)
    assert main([*arguments, "--yes"]) == 130
    assert "nodes continue to drain" in capsys.readouterr().err


def test_foreign_nodepools_are_kept(kube: InMemoryKube, arguments: list[str], capsys: Out) -> None:
    create(kube, POOLS, {**POOL, "metadata": {"name": "other"}, "spec": {"template": {"spec": FOREIGN}}})
    assert main([*arguments, "--yes"]) == 0
    assert "kept: NodePool other, which is not Joiner's" in capsys.readouterr().out
    assert list_names(list_objects(kube, POOLS)) == ["other"]


@pytest.mark.parametrize(("minutes", "status"), [(0, 1), (10, 0)])
def test_uninstall_stops_while_karpenter_is_active(
    kube: InMemoryKube, arguments: list[str], capsys: Out, minutes: int, status: int
) -> None:
    renewed = f"{datetime.now(UTC) - timedelta(minutes=minutes):%FT%T.%fZ}"
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "karpenter-leader-election", "namespace": "kube-system"},
        "spec": {"holderIdentity": "karpenter-1", "renewTime": renewed},
    }
    create(kube, LEASES, lease)
    assert main([*arguments, "--yes"]) == status
    assert ("Karpenter is active (kube-system/karpenter-1)" in capsys.readouterr().err) == bool(status)
    assert bool(list_writes()) != bool(status)


@pytest.mark.parametrize(
    ("forbidden", "words"),
    [
        ("/leases", "cannot tell whether Karpenter is active, so nothing is removed"),
        ("/nodepools", "NodePool *: "),
        (f"/namespaces/{CLUSTER_NAMESPACE}", "you need the permissions get and patch on it"),
    ],
)
def test_missing_permissions_are_reported(arguments: list[str], capsys: Out, forbidden: str, words: str) -> None:
    Guarded.forbidden = forbidden
    assert main([*arguments, "--yes"]) == 1
    assert words in capsys.readouterr().err


def test_failed_deletion_is_reported(arguments: list[str], capsys: Out) -> None:
    Guarded.forbidden = "/nodepools/default"
    assert main([*arguments, "--yes"]) == 1
    assert "NodePool default: DELETE" in capsys.readouterr().err
