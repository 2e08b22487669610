"""`joiner plan --kubeconfig` on a real API server: what it says, with which rights, and that it leaves no trace."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
from urllib3.connectionpool import HTTPConnectionPool

from cli.main import main
from shared.kube.client import KubeClient
from tests.controlplane.fixtures import FUNCTIONS, STRANGER
from tests.controlplane.plane import ControlPlane
from tests.kubernetes.manifests import deployment, node_class, node_pool

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]
Out = pytest.CaptureFixture[str]
CATALOGUE = str(Path(__file__).parents[2] / "examples" / "catalogue.json")
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLASSES = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"


def versions(kube: KubeClient) -> dict[str, dict[str, str]]:
    """Answer the version of every object that nobody but Joiner writes: of all others Kubernetes has its own."""
    return {
        path: {
            one["metadata"]["name"]: one["metadata"]["resourceVersion"]
            for one in json.loads(kube.list(path, limit=0))["items"]
        }
        for path in (CLAIMS, CLASSES, POOLS)
    }


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Answer the methods of all requests over HTTP from now on."""
    methods: list[str] = []
    truly = HTTPConnectionPool.urlopen

    def urlopen(self: HTTPConnectionPool, method: str, *arguments: Any, **options: Any) -> Any:
        methods.append(method)
        return truly(self, method, *arguments, **options)

    monkeypatch.setattr(HTTPConnectionPool, "urlopen", urlopen)
    return methods


def waiting(kube: KubeClient, namespace: str) -> int:
    """Count the pods that kube-scheduler has given up on."""
    pods = json.loads(kube.list(f"/api/v1/namespaces/{namespace}/pods"))["items"]
    return sum(any(one.get("reason") == "Unschedulable" for one in pod["status"].get("conditions", ())) for pod in pods)


@pytest.fixture
def namespace(cluster: ControlPlane) -> Any:
    """Answer a namespace with three pods that wait, and the pool that is theirs; all of it goes afterwards."""
    kube = cluster.client()
    made = json.loads(kube.create("/api/v1/namespaces", b'{"metadata": {"generateName": "plan-"}}'))["metadata"]["name"]
    kube.create(CLASSES, json.dumps(node_class()).encode())
    kube.create(POOLS, json.dumps(node_pool("default")).encode())
    path = DEPLOYMENTS.format(made)
    kube.create(path, json.dumps(deployment("web", 3, "500m", "512Mi")).encode())
    cluster.wait_for(lambda: waiting(kube, made) == 3, "kube-scheduler to give up on three pods")
    yield made
    kube.delete(f"{path}/web")
    kube.delete(f"{POOLS}/default")
    kube.delete(f"{CLASSES}/default")


def plan(config: Path, *arguments: str) -> int:
    return main(["plan", "--kubeconfig", str(config), "--instance-types", CATALOGUE, "-o", "json", *arguments])


def kubeconfig(tmp_path: Path, cluster: ControlPlane, token: str = "") -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(cluster.kubeconfig(token))
    return path


def placed(capsys: Out, namespace: str) -> list[str]:
    """Answer who of *namespace* gets a new node: pods of other tests may be on their way out still."""
    out, said = capsys.readouterr()
    assert out, said
    told = cast("dict[str, Any]", json.loads(out))
    found = sorted(name for node in told["newNodes"] for name in node["pods"])
    return [name for name in found if name.startswith(f"{namespace}/")]


def test_pods_that_kube_scheduler_gave_up_on_are_planned_for_and_nothing_is_written(
    cluster: ControlPlane, namespace: str, tmp_path: Path, capsys: Out, sent: list[str]
) -> None:
    """With the rights of the functions: nothing is sent but what reads."""
    kube = cluster.client()
    config = kubeconfig(tmp_path, cluster, cluster.token_of(FUNCTIONS))
    before = versions(kube)
    assert plan(config, "--context", "joiner") == 0
    found = placed(capsys, namespace)
    assert len(found) == 3, found
    assert all(name.startswith(f"{namespace}/web-") for name in found)
    assert versions(kube) == before
    assert {*sent} == {"GET"}


def test_a_deployment_that_would_be_scaled_up_adds_only_what_is_missing(
    cluster: ControlPlane, namespace: str, tmp_path: Path, capsys: Out
) -> None:
    more = deployment("web", 5, "500m", "512Mi")
    more["metadata"]["namespace"] = namespace
    (tmp_path / "web.json").write_text(json.dumps(more))
    assert plan(kubeconfig(tmp_path, cluster), "-f", str(tmp_path / "web.json")) == 0
    found = placed(capsys, namespace)
    assert len(found) == 5, found
    assert {f"{namespace}/web-4", f"{namespace}/web-5"} < set(found)


def test_who_may_not_list_is_told_what_is_missing(cluster: ControlPlane, tmp_path: Path, capsys: Out) -> None:
    for token, words in ((cluster.token_of(STRANGER), "cannot list resource"), ("nobody's", "401")):
        assert plan(kubeconfig(tmp_path, cluster, token)) == 1
        told = capsys.readouterr()
        assert words in told.err
        assert "nothing can be planned without nodes" in told.err
        assert told.out == ""


def test_a_certificate_of_somebody_else_is_not_trusted(cluster: ControlPlane, tmp_path: Path, capsys: Out) -> None:
    config = json.loads(cluster.kubeconfig())
    del config["clusters"][0]["cluster"]["certificate-authority-data"]
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    assert plan(tmp_path / "kubeconfig") == 1
    assert "certificate verify failed" in capsys.readouterr().err
    config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    with pytest.warns(match="Unverified HTTPS request"):
        assert plan(tmp_path / "kubeconfig") == 0
