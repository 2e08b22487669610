"""`joiner uninstall`: what it asks, what it touches, and how it ends."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cli.main import main
from shared.model.holds import HOME
from shared.model.labels import LAUNCHES_PAUSED
from sim.cluster.kube import InMemoryKube
from tests.contract.kube_front import create, listed, names
from tests.unit.fleet_files import POOL, claim, machine, pod
from tests.unit.live_cases import Guarded, live

pytestmark = pytest.mark.loopback
Out = pytest.CaptureFixture[str]
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
FOREIGN = {**POOL["spec"]["template"]["spec"], "nodeClassRef": {"group": "other.io", "kind": "Class", "name": "x"}}
DONE = """launches are paused
NodePool default is asked to go
left: 1 NodePool, 0 NodeClaims, 0 nodes with 0 pods
nothing of ours is left in the cluster; what is left to do:
  npx cdk destroy -c joiner:cluster=CLUSTER
  joiner audit --cluster CLUSTER
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[InMemoryKube, str]]:
    monkeypatch.setattr("cli.uninstall.time.sleep", lambda _: None)
    with live(tmp_path) as (kube, config):
        create(kube, POOLS, POOL)
        yield kube, config


@pytest.fixture
def kube(cluster: tuple[InMemoryKube, str]) -> InMemoryKube:
    return cluster[0]


@pytest.fixture
def asked(cluster: tuple[InMemoryKube, str]) -> list[str]:
    return ["uninstall", "--kubeconfig", cluster[1]]


def writes() -> list[tuple[str, str]]:
    return [(verb, path) for verb, path, _ in Guarded.asked if verb in ("PATCH", "DELETE")]


def held(kube: InMemoryKube) -> None:
    """Make a node whose claim nobody lets go."""
    create(kube, CLAIMS, claim("c", "n", 4, finalizers=["karpenter.sh/termination"]))
    kube.patch(f"{CLAIMS}/c/status", b'{"status": {"providerID": "x/n"}}')
    [node] = machine("n", 4)
    create(kube, "/api/v1/nodes", node)


def test_a_dry_run_says_what_would_go_and_writes_nothing(kube: InMemoryKube, asked: list[str], capsys: Out) -> None:
    held(kube)
    create(kube, "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    stays = pod("till", "n", "1")
    stays["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    create(kube, "/api/v1/namespaces/shop/pods", stays)
    assert main([*asked, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "of here would go: 1 NodePool, 1 NodeClaim, 1 node with 1 pod\n" in told
    assert "  in its way: n: pod shop/till has the annotation karpenter.sh/do-not-disrupt\n" in told
    assert main([*asked, "--dry-run", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["empty"], found["nodePools"], found["nodes"], found["pods"]) == (False, ["default"], ["n"], 1)
    assert writes() == []


def test_with_yes_it_is_done_in_order_and_says_what_is_left_to_do(
    kube: InMemoryKube, asked: list[str], capsys: Out
) -> None:
    assert main([*asked, "--yes"]) == 0
    assert capsys.readouterr().out.endswith(DONE)
    assert names(listed(kube, POOLS)) == []
    namespace = f"/api/v1/namespaces/{HOME}"
    assert writes() == [("PATCH", namespace), ("DELETE", f"{POOLS}/default"), ("PATCH", namespace)]
    assert main([*asked, "--yes", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["empty"], found["next"][0]) == (True, "npx cdk destroy -c joiner:cluster=CLUSTER")


def test_who_is_asked_may_say_no(
    kube: InMemoryKube, asked: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for said, status in (("no\n", 1), ("", 1), ("yes\n", 0)):
        assert names(listed(kube, POOLS)) == ["default"]
        monkeypatch.setattr("sys.stdin", Terminal(said))
        assert main(asked) == status
        told = capsys.readouterr()
        assert "take all of it out of here? write yes: " in told.err
        assert ("nothing was done" in told.err) == bool(status)


def test_nobody_who_is_not_there_says_yes(kube: InMemoryKube, asked: list[str], capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(asked)
    assert "nobody is there to be asked: --yes does it" in capsys.readouterr().err
    assert names(listed(kube, POOLS)) == ["default"]


def test_what_is_left_when_time_is_up_is_1_and_launches_stay_paused(
    kube: InMemoryKube, asked: list[str], capsys: Out
) -> None:
    held(kube)
    assert main([*asked, "--yes", "--timeout", "30s"]) == 1
    told = capsys.readouterr()
    assert "time is up; left are 0 NodePools, 1 NodeClaim, 1 node with 0 pods: run it again to go on" in told.err
    noted = json.loads(kube.read(f"/api/v1/namespaces/{HOME}"))["metadata"]["annotations"]
    assert "because joiner uninstall" in noted[LAUNCHES_PAUSED]


def test_ctrl_c_says_how_to_go_on(
    kube: InMemoryKube, asked: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(_: float) -> None:
        raise KeyboardInterrupt

    held(kube)
    monkeypatch.setattr("cli.uninstall.time.sleep", sleep)
    assert main([*asked, "--yes"]) == 130
    assert "what was asked for goes on" in capsys.readouterr().err


def test_what_is_not_ours_stays(kube: InMemoryKube, asked: list[str], capsys: Out) -> None:
    create(kube, POOLS, {**POOL, "metadata": {"name": "other"}, "spec": {"template": {"spec": FOREIGN}}})
    assert main([*asked, "--yes"]) == 0
    assert "stays, for it is not ours: NodePool other" in capsys.readouterr().out
    assert names(listed(kube, POOLS)) == ["other"]


@pytest.mark.parametrize(("minutes", "status"), [(0, 1), (10, 0)])
def test_nothing_is_done_where_a_karpenter_is_at_work(
    kube: InMemoryKube, asked: list[str], capsys: Out, minutes: int, status: int
) -> None:
    renewed = f"{datetime.now(UTC) - timedelta(minutes=minutes):%FT%T.%fZ}"
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "karpenter-leader-election", "namespace": "kube-system"},
        "spec": {"holderIdentity": "karpenter-1", "renewTime": renewed},
    }
    create(kube, LEASES, lease)
    assert main([*asked, "--yes"]) == status
    assert ("a Karpenter is at work (kube-system/karpenter-1)" in capsys.readouterr().err) == bool(status)
    assert bool(writes()) != bool(status)


@pytest.mark.parametrize(
    ("forbidden", "words"),
    [
        ("/leases", "whether a Karpenter is at work cannot be seen, so nothing is done"),
        ("/nodepools", "NodePool *: "),
        (f"/namespaces/{HOME}", "ask for the right to get and patch it"),
    ],
)
def test_what_is_in_the_way_is_said(asked: list[str], capsys: Out, forbidden: str, words: str) -> None:
    Guarded.forbidden = forbidden
    assert main([*asked, "--yes"]) == 1
    assert words in capsys.readouterr().err


def test_what_cannot_be_deleted_is_said(asked: list[str], capsys: Out) -> None:
    Guarded.forbidden = "/nodepools/default"
    assert main([*asked, "--yes"]) == 1
    assert "NodePool default: DELETE" in capsys.readouterr().err
