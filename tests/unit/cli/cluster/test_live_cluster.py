"""`joiner plan --context`: a cluster over HTTP, as a kubeconfig describes it; only listed, never written to."""

import json
import stat
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from cli.cluster.kubeconfig import ReadOnlyKube, connect_to_cluster
from cli.main import main
from shared.errors import InvariantViolated
from sim.cluster.api_server.kube_port import InMemoryKube
from tests.contract.kube_front import Front, create
from tests.support.cli.cli_objects import CATALOGUE, POOL, make_pod, make_workload
from tests.support.cli.live_cases import TOKEN, Guarded, make_kube, serve_kube, write_kubeconfig

pytestmark = pytest.mark.loopback
Out = pytest.CaptureFixture[str]
PODS = "/api/v1/namespaces/default/pods"
UNSCHEDULABLE = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


@pytest.fixture
def kube() -> InMemoryKube:
    return make_kube()


@pytest.fixture
def endpoint(kube: InMemoryKube) -> Iterator[str]:
    yield from serve_kube(kube)


@pytest.fixture
def config(tmp_path: Path, endpoint: str) -> str:
    return write_kubeconfig(tmp_path / "kubeconfig", endpoint, token=TOKEN)


@pytest.fixture
def catalogue(tmp_path: Path) -> str:
    path = tmp_path / "catalogue.json"
    path.write_text(json.dumps(CATALOGUE))
    return str(path)


def create_pool_and_pods(kube: InMemoryKube) -> None:
    create(kube, "/apis/karpenter.sh/v1/nodepools", POOL)
    for name in ("waits", "new"):
        create(kube, PODS, make_pod(name))
    kube.patch(f"{PODS}/waits/status", json.dumps({"status": UNSCHEDULABLE}).encode())


def plan(catalogue: str, *arguments: str) -> int:
    return main(["plan", "--instance-types", catalogue, "-o", "json", *arguments])


def list_planned_pods(capsys: Out) -> list[str]:
    return [name for node in json.loads(capsys.readouterr().out)["newNodes"] for name in node["pods"]]


def test_plan_of_a_live_cluster_sends_only_list_requests(
    kube: InMemoryKube, config: str, catalogue: str, capsys: Out
) -> None:
    create_pool_and_pods(kube)
    Guarded.token = TOKEN
    assert plan(catalogue, "--kubeconfig", config) == 0
    assert list_planned_pods(capsys) == ["default/waits"]
    assert {verb for verb, _, _ in Guarded.requests} == {"GET"}
    assert not [path for _, path, _ in Guarded.requests if "watch=" in path]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [((), ["default/waits"]), (("--assume-unschedulable",), ["default/new", "default/waits"])],
)
def test_pod_without_unschedulable_condition_is_planned_only_with_the_flag(
    kube: InMemoryKube, config: str, catalogue: str, capsys: Out, flags: tuple[str, ...], expected: list[str]
) -> None:
    create_pool_and_pods(kube)
    assert plan(catalogue, "--kubeconfig", config, "--context", "here", *flags) == 0
    assert list_planned_pods(capsys) == expected


@pytest.mark.parametrize("command", ["plan", "consolidate", "rebalance --plan"])
def test_current_context_is_used_and_announced_if_no_source_is_given(
    kube: InMemoryKube, config: str, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    create_pool_and_pods(kube)
    monkeypatch.setenv("KUBECONFIG", config)
    assert main([*command.split(), "--instance-types", catalogue]) == 0
    captured = capsys.readouterr()
    name = command.partition(" ")[0]
    assert (
        captured.err == f"joiner {name}: reading the current context here (use --context for another, -f for files)\n"
    )
    assert {verb for verb, _, _ in Guarded.requests} == {"GET"}


def test_kubeconfig_without_current_context_is_reported(
    config: str, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig_document = json.loads(Path(config).read_text())
    Path(config).write_text(json.dumps({**kubeconfig_document, "current-context": ""}))
    monkeypatch.setenv("KUBECONFIG", config)
    assert plan(catalogue) == 1
    captured = capsys.readouterr()
    assert (captured.out, "reading the current context" in captured.err) == ("", False)
    assert f"{config}: context (current): " in captured.err


def test_explain_reports_the_current_state_of_a_pending_pod(kube: InMemoryKube, config: str, capsys: Out) -> None:
    create_pool_and_pods(kube)
    assert main(["explain", "pod", "waits", "--kubeconfig", config, "-o", "json"]) == 0
    explanation = json.loads(capsys.readouterr().out)
    assert explanation["answers"][0] == {
        "question": "current state",
        "sentences": [
            "pending: Unschedulable",
            "`joiner plan --pod default/waits` shows where Joiner would schedule it now",
        ],
    }
    assert main(["explain", "pod", "waits", "--kubeconfig", config, "--context", "nobody"]) == 1
    assert "kubectl config get-contexts" in capsys.readouterr().err


def test_plan_adds_workloads_from_files_to_the_live_cluster(
    kube: InMemoryKube, config: str, catalogue: str, capsys: Out, tmp_path: Path
) -> None:
    create_pool_and_pods(kube)
    create(kube, PODS, make_pod("web-a", labels={"app": "web"}))
    (tmp_path / "web.json").write_text(json.dumps(make_workload("web", 3)))
    assert plan(catalogue, "--kubeconfig", config, "-f", str(tmp_path / "web.json")) == 0
    assert list_planned_pods(capsys) == ["default/waits", "default/web-2", "default/web-3"]


def test_volume_claims_from_files_use_the_default_storage_class_of_the_cluster(
    kube: InMemoryKube, config: str, catalogue: str, capsys: Out, tmp_path: Path
) -> None:
    create_pool_and_pods(kube)
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    create(
        kube,
        "/apis/storage.k8s.io/v1/storageclasses",
        {
            "metadata": {"name": "gp3", "annotations": annotations},
            "provisioner": "ebs.csi.aws.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    body = make_workload("db", 1, kind="StatefulSet", volumeClaimTemplates=[claim])
    (tmp_path / "db.json").write_text(json.dumps(body))
    assert plan(catalogue, "--kubeconfig", config, "-f", str(tmp_path / "db.json")) == 0
    assert list_planned_pods(capsys) == ["default/db-0", "default/waits"]


def test_exec_plugin_provides_the_kubeconfig_token(
    kube: InMemoryKube, endpoint: str, catalogue: str, capsys: Out, tmp_path: Path
) -> None:
    create_pool_and_pods(kube)
    Guarded.token = TOKEN
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "status": {"token": TOKEN},
    }
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!{sys.executable}\nprint({json.dumps(credential)!r})\n")
    plugin.chmod(stat.S_IRWXU)
    exec_config = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": str(plugin)}
    before = write_kubeconfig(tmp_path / "kubeconfig", endpoint, exec=exec_config)
    text = Path(before).read_text()
    assert plan(catalogue, "--kubeconfig", before) == 0
    assert list_planned_pods(capsys) == ["default/waits"]
    assert Path(before).read_text() == text


def test_drift_command_reads_a_live_cluster(config: str, capsys: Out) -> None:
    assert main(["drift", "--kubeconfig", config, "--context", "here"]) == 0
    assert capsys.readouterr().out == "0 of 0 nodes have drifted\n"
    assert {method for method, _, _ in Guarded.requests} == {"GET"}


def test_explain_reports_disruption_paused_by_a_user(kube: InMemoryKube, config: str, capsys: Out) -> None:
    noted = {"joiner.dev/disruption-paused": "Empty by anna because Black Friday"}
    create(kube, "/apis/karpenter.sh/v1/nodepools", POOL)
    kube.patch("/api/v1/namespaces/kube-system", json.dumps({"metadata": {"annotations": noted}}).encode())
    assert main(["explain", "nodepool", "default", "--kubeconfig", config]) == 0
    assert "a user paused Empty disruption, by anna: Black Friday" in capsys.readouterr().out


def test_kubeconfig_environment_variable_is_used(
    kube: InMemoryKube, config: str, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_pool_and_pods(kube)
    monkeypatch.setenv("KUBECONFIG", config)
    assert plan(catalogue, "--context") == 0
    assert list_planned_pods(capsys) == ["default/waits"]


@pytest.mark.parametrize(
    ("arguments", "user", "token", "forbidden", "words"),
    [
        (("--context", "xyz"), {}, "", "", ("context xyz", "kubectl config get-contexts")),
        (("--context", "away"), {}, "", "", ("away: GET /api", "check with kubectl")),
        (("--kubeconfig", "/nonexistent"), {}, "", "", ("/nonexistent: no such kubeconfig",)),
        ((), {"token": "wrong"}, "right", "", ("401", "cannot plan without nodes")),
        ((), {"token": "t"}, "", "/v1/pods", ("403", "cannot plan without pods")),
        ((), {"exec": {"apiVersion": "v1", "command": "/no/plugin"}}, "", "", ("/no/plugin", "users[].user.exec")),
        ((), {"client-certificate-data": "%%"}, "", "", ("not YAML",)),
    ],
)
def test_unreachable_cluster_is_reported_with_a_fix(
    endpoint: str,
    catalogue: str,
    capsys: Out,
    tmp_path: Path,
    arguments: tuple[str, ...],
    user: dict[str, Any],
    token: str,
    forbidden: str,
    words: tuple[str, ...],
) -> None:
    path = write_kubeconfig(tmp_path / "kubeconfig", endpoint, **user)
    if "client-certificate-data" in user:
        Path(path).write_text("a: [")
        words = ("kubeconfig: context (current): ", "check the file with kubectl")
    Guarded.token, Guarded.forbidden = token, forbidden or "/nothing"
    assert plan(catalogue, "--kubeconfig", path, *arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    for word in words:
        assert word in captured.err


def test_forbidden_resource_kind_is_reported_and_other_kinds_are_planned(
    kube: InMemoryKube, config: str, catalogue: str, capsys: Out
) -> None:
    create_pool_and_pods(kube)
    Guarded.forbidden = "/storageclasses"
    assert plan(catalogue, "--kubeconfig", config) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["totals"]["scheduled"] == 1
    assert "StorageClass *: GET /apis/storage.k8s.io/v1/storageclasses" in captured.err
    assert "Joiner plans without them: you need the permission to list them" in captured.err


def test_cluster_without_karpenter_crds_can_be_planned(
    kube: InMemoryKube, config: str, catalogue: str, capsys: Out, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Joiner is installed, users can plan what it would do."""
    monkeypatch.setattr(Guarded, "do_GET", _without_definitions)
    create(kube, PODS, make_pod("waits"))
    kube.patch(f"{PODS}/waits/status", json.dumps({"status": UNSCHEDULABLE}).encode())
    (tmp_path / "pool.json").write_text(json.dumps(POOL))
    assert plan(catalogue, "--kubeconfig", config, "-f", str(tmp_path / "pool.json")) == 0
    plan_document = json.loads(capsys.readouterr().out)
    assert plan_document["totals"]["scheduled"] == 1
    assert "nodepools.karpenter.sh is not installed in here" in plan_document["notes"]


def _without_definitions(handler: BaseHTTPRequestHandler) -> None:
    if "karpenter" in handler.path:
        handler.send_response(404)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
    else:
        Front.do_GET(handler)  # type: ignore[arg-type] # it is one


def test_feature_gated_kinds_are_listed_only_if_enabled(
    kube: InMemoryKube, config: str, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_pool_and_pods(kube)
    are_overlays_listed = []
    for gates in ("", "NodeOverlay=true"):
        Guarded.requests.clear()
        monkeypatch.setenv("FEATURE_GATES", gates)
        assert plan(catalogue, "--kubeconfig", config) == 0
        assert list_planned_pods(capsys) == ["default/waits"]
        are_overlays_listed.append(any("/nodeoverlays" in path for _, path, _ in Guarded.requests))
    assert are_overlays_listed == [False, True]


def test_read_only_connection_rejects_every_write(config: str) -> None:
    kube: ReadOnlyKube = connect_to_cluster(config, "here").kube
    for write in (
        lambda: kube.create(PODS, b"{}"),
        lambda: kube.patch(f"{PODS}/a", b"{}"),
        lambda: kube.delete(f"{PODS}/a"),
        lambda: kube.watch(PODS, since="1"),
    ):
        with pytest.raises(InvariantViolated, match=PODS):
            write()
    assert not Guarded.requests
