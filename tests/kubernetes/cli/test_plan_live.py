"""`joiner plan --kubeconfig` on a real API server: its output, its permissions, and that it leaves no trace."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
from urllib3.connectionpool import HTTPConnectionPool

from cli.main import main
from shared.kubernetes.client import KubeClient
from tests.controlplane.fixtures import FUNCTIONS, STRANGER
from tests.controlplane.plane import ControlPlane
from tests.kubernetes.manifests import make_deployment, make_node_class, make_node_pool

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]
Out = pytest.CaptureFixture[str]
CATALOGUE = str(Path(__file__).parents[3] / "examples" / "catalogue.json")
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLASSES = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"


def read_versions(kube: KubeClient) -> dict[str, dict[str, str]]:
    """Return the version of every object that only Joiner writes: Kubernetes itself changes all others."""
    return {
        path: {
            item["metadata"]["name"]: item["metadata"]["resourceVersion"]
            for item in json.loads(kube.list(path, limit=0))["items"]
        }
        for path in (CLAIMS, CLASSES, POOLS)
    }


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the methods of all HTTP requests from now on."""
    methods: list[str] = []
    real_urlopen = HTTPConnectionPool.urlopen

    def record_urlopen(self: HTTPConnectionPool, method: str, *arguments: Any, **options: Any) -> Any:
        methods.append(method)
        return real_urlopen(self, method, *arguments, **options)

    monkeypatch.setattr(HTTPConnectionPool, "urlopen", record_urlopen)
    return methods


def count_unschedulable_pods(kube: KubeClient, namespace: str) -> int:
    """Count the pods that kube-scheduler has marked as unschedulable."""
    pods = json.loads(kube.list(f"/api/v1/namespaces/{namespace}/pods"))["items"]
    return sum(
        any(condition.get("reason") == "Unschedulable" for condition in pod["status"].get("conditions", ()))
        for pod in pods
    )


@pytest.fixture
def namespace(cluster: ControlPlane) -> Any:
    """Yield a namespace with three unschedulable pods, and their pool; all of it is deleted afterwards."""
    kube = cluster.get_client()
    name = json.loads(kube.create("/api/v1/namespaces", b'{"metadata": {"generateName": "plan-"}}'))["metadata"]["name"]
    kube.create(CLASSES, json.dumps(make_node_class()).encode())
    kube.create(POOLS, json.dumps(make_node_pool("default")).encode())
    path = DEPLOYMENTS.format(name)
    kube.create(path, json.dumps(make_deployment("web", 3, "500m", "512Mi")).encode())
    cluster.wait_until(lambda: count_unschedulable_pods(kube, name) == 3, "kube-scheduler to give up on three pods")
    yield name
    kube.delete(f"{path}/web")
    kube.delete(f"{POOLS}/default")
    kube.delete(f"{CLASSES}/default")


def run_plan(config: Path, *arguments: str) -> int:
    return main(["plan", "--kubeconfig", str(config), "--instance-types", CATALOGUE, "-o", "json", *arguments])


def write_kubeconfig(tmp_path: Path, cluster: ControlPlane, token: str = "") -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(cluster.build_kubeconfig(token))
    return path


def list_planned_pods(capsys: Out, namespace: str) -> list[str]:
    """Return the pods of *namespace* that get a new node: pods of other tests may still be terminating."""
    out, error_output = capsys.readouterr()
    assert out, error_output
    document = cast("dict[str, Any]", json.loads(out))
    pod_names = sorted(name for node in document["newNodes"] for name in node["pods"])
    return [name for name in pod_names if name.startswith(f"{namespace}/")]


def test_plan_covers_unschedulable_pods_and_sends_only_read_requests(
    cluster: ControlPlane, namespace: str, tmp_path: Path, capsys: Out, sent: list[str]
) -> None:
    """With the permissions of the functions; only requests that read are sent."""
    kube = cluster.get_client()
    config = write_kubeconfig(tmp_path, cluster, cluster.get_token(FUNCTIONS))
    before = read_versions(kube)
    assert run_plan(config, "--context", "joiner") == 0
    pod_names = list_planned_pods(capsys, namespace)
    assert len(pod_names) == 3, pod_names
    assert all(name.startswith(f"{namespace}/web-") for name in pod_names)
    assert read_versions(kube) == before
    assert {*sent} == {"GET"}


def test_plan_for_a_scaled_up_deployment_adds_only_the_missing_pods(
    cluster: ControlPlane, namespace: str, tmp_path: Path, capsys: Out
) -> None:
    larger_deployment = make_deployment("web", 5, "500m", "512Mi")
    larger_deployment["metadata"]["namespace"] = namespace
    (tmp_path / "web.json").write_text(json.dumps(larger_deployment))
    assert run_plan(write_kubeconfig(tmp_path, cluster), "-f", str(tmp_path / "web.json")) == 0
    pod_names = list_planned_pods(capsys, namespace)
    assert len(pod_names) == 5, pod_names
    assert {f"{namespace}/web-4", f"{namespace}/web-5"} < set(pod_names)


def test_plan_without_list_permission_reports_the_missing_permission(
    cluster: ControlPlane, tmp_path: Path, capsys: Out
) -> None:
    for token, words in ((cluster.get_token(STRANGER), "cannot list resource"), ("nobody's", "401")):
        assert run_plan(write_kubeconfig(tmp_path, cluster, token)) == 1
        output = capsys.readouterr()
        assert words in output.err
        assert "cannot plan without nodes" in output.err
        assert output.out == ""


def test_untrusted_server_certificate_is_rejected_unless_tls_verification_is_skipped(
    cluster: ControlPlane, tmp_path: Path, capsys: Out
) -> None:
    config = json.loads(cluster.build_kubeconfig())
    del config["clusters"][0]["cluster"]["certificate-authority-data"]
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    assert run_plan(tmp_path / "kubeconfig") == 1
    assert "certificate verify failed" in capsys.readouterr().err
    config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    with pytest.warns(match="Unverified HTTPS request"):
        assert run_plan(tmp_path / "kubeconfig") == 0
