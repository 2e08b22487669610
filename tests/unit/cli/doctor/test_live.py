"""`joiner doctor` over HTTP: a cluster as a kubeconfig names it, and an embedded account with a stack."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from cli.facts.model import StackFacts
from cli.main import main
from shared.installer.rbac import read_rbac_manifests
from shared.settings import Settings
from sim.aws_http.server import EmbeddedAws
from sim.cloud.cloud import Cloud
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.time.virtual_clock import Clock
from tests.contract.kube_front import create, run_server
from tests.support.cli.cli_objects import POOL
from tests.support.cli.live_cases import TOKEN, Guarded
from tests.unit.cli.planning.test_catalog_source import NODE_CLASS

pytestmark = pytest.mark.loopback
Out = pytest.CaptureFixture[str]
ARN = "arn:aws:eks:us-east-1:123456789012:cluster/demo"
VERSION = json.dumps({"gitVersion": "v1.34.2"}).encode()
QUEUE = "demo-joiner-interruption"
DEPLOYED: dict[str, Any] = {
    "Role": {
        "Type": "AWS::IAM::Role",
        "Properties": {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": []}},
    },
    "Disrupt": {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Handler": "functions.disrupt.handler.handler",
            "Runtime": "python3.13",
            "Role": {"Fn::GetAtt": ["Role", "Arn"]},
            "Code": {"ZipFile": "pass"},
            "Environment": {"Variables": {"CLUSTER_NAME": "demo", "JOINER_REGION": "us-east-1"}},
        },
    },
    "QueuesInterruption": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": QUEUE}},
    "EventsSpot": {
        "Type": "AWS::Events::Rule",
        "Properties": {
            "EventPattern": {"source": ["aws.ec2"]},
            "State": "ENABLED",
            "Targets": [{"Id": "t", "Arn": {"Fn::GetAtt": ["QueuesInterruption", "Arn"]}}],
        },
    },
    "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "joiner-things"}},
}


class Versioned(Guarded):
    """A guarded API server that also serves its version."""

    def _respond(self, call: Callable[[], bytes]) -> None:
        super()._respond((lambda: VERSION) if self.path == "/version" else call)


@pytest.fixture
def kube() -> InMemoryKube:
    memory_kube = InMemoryKube(ApiServer(Clock()))
    create(memory_kube, "/apis/karpenter.sh/v1/nodepools", POOL)
    create(memory_kube, "/apis/karpenter.k8s.aws/v1/ec2nodeclasses", NODE_CLASS)
    return memory_kube


@pytest.fixture
def config(kube: InMemoryKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for limit in ("SLOW_RESPONSE_SECONDS", "CLOCK_WARNING_SECONDS"):
        monkeypatch.setattr(f"cli.doctor.checks.connectivity.{limit}", 3600)  # this machine may be slow
    Versioned.kube, Versioned.requests, Versioned.token, Versioned.forbidden = kube, [], TOKEN, "/nothing"
    for server in run_server(Versioned):
        yield write_kubeconfig(tmp_path / "kubeconfig", server, ARN)


def write_kubeconfig(path: Path, server: str, cluster: str) -> str:
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"token": TOKEN}}],
        "contexts": [{"name": "here", "context": {"cluster": cluster, "user": "me"}}],
        "current-context": "here",
    }
    path.write_text(json.dumps(kubeconfig))
    return str(path)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedAws]:
    with EmbeddedAws(Cloud(Clock(), cluster="demo")) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        yield server


def run_doctor(capsys: Out, *arguments: str) -> tuple[int, dict[str, list[dict[str, str]]], list[str]]:
    """Return the exit status, the findings by check, and the parts that were not read."""
    status = main(["doctor", "-o", "json", *arguments])
    document = json.loads(capsys.readouterr().out)
    findings: dict[str, list[dict[str, str]]] = {}
    for finding in document["findings"]:
        findings.setdefault(finding["check"], []).append(finding)
    return status, findings, document["skipped"]


def map_levels(findings: dict[str, list[dict[str, str]]]) -> dict[str, set[str]]:
    return {check: {finding["level"] for finding in check_findings} for check, check_findings in findings.items()}


@pytest.mark.usefixtures("account")
def test_doctor_checks_cluster_and_account_before_an_installation(config: str, capsys: Out) -> None:
    _, findings, unasked = run_doctor(capsys, "--kubeconfig", config)
    assert unasked == []
    assert findings["api-server"][0]["message"].endswith("s") is True
    assert "Kubernetes 1.34.2, in " in findings["api-server"][0]["message"]
    assert findings["cluster"][0]["message"] == "demo: Kubernetes 1.34, ACTIVE"
    assert "Joiner is not installed for demo" in findings["stack"][0]["message"]
    well = ("api-server", "identity", "clock", "crds", "subnets", "security-groups", "images", "leaks")
    assert {check: map_levels(findings)[check] for check in well} == {check: {"ok"} for check in well}
    assert map_levels(findings)["permissions"] == map_levels(findings)["stack"] == {"later"}
    assert {verb for verb, _, _ in Versioned.requests} == {"GET"}


@pytest.mark.usefixtures("account")
def test_installation_is_found_by_its_stack_name(config: str, kube: InMemoryKube, capsys: Out) -> None:
    template = json.dumps({"Resources": DEPLOYED})
    boto3.client("cloudformation").create_stack(StackName="joiner-demo", TemplateBody=template)
    rights = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    create(kube, rights, {"metadata": {"name": "joiner-functions"}, "roleRef": {}, "subjects": []})
    role = json.loads(json.dumps(read_rbac_manifests()[0]))
    create(kube, "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    status, findings, _ = run_doctor(capsys, "--kubeconfig", config)
    assert status == 1
    assert (map_levels(findings)["stack"], map_levels(findings)["permissions"]) == ({"ok"}, {"ok"})
    assert "disrupt: CloudWatch has no invocation yet" in findings["functions"][0]["message"]
    assert f"the policy of {QUEUE} does not allow joiner-demo-EventsSpot" in findings["interruption"][0]["message"]
    assert "`catalog` has not built a catalog yet" in findings["catalog"][0]["message"]
    assert map_levels(findings)["quotas"] == map_levels(findings)["authentication"] == {"ok"}
    _, second_findings, _ = run_doctor(capsys, "--kubeconfig", config, "--stack", "another")
    assert map_levels(second_findings)["stack"] == {"later"}


def test_a_cluster_role_without_a_permission_is_a_failure(config: str, kube: InMemoryKube, capsys: Out) -> None:
    role = json.loads(json.dumps(read_rbac_manifests()[0]))
    for rule in role["rules"]:
        rule["verbs"] = [verb for verb in rule["verbs"] if verb != "get"]
    create(kube, "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    binding = json.loads(json.dumps(read_rbac_manifests()[1]))
    create(kube, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    _, findings, _ = run_doctor(capsys, "--kubeconfig", config, "--no-account")
    assert findings["permissions"][0]["level"] == "fail"
    message = "ClusterRole joiner-functions lacks get on events, get on nodeclaims.karpenter.sh"
    assert findings["permissions"][0]["message"] == message


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("granted_features", [frozenset[str](), frozenset({"surge_drain"})])
def test_permissions_of_settings_that_are_on_are_checked(
    config: str, kube: InMemoryKube, capsys: Out, monkeypatch: pytest.MonkeyPatch, granted_features: frozenset[str]
) -> None:
    def get_settings(_stack: StackFacts) -> Settings:
        return Settings(cluster_name="demo", region="us-east-1", surge_drain="on")

    monkeypatch.setattr(StackFacts, "settings", property(get_settings))
    template = json.dumps({"Resources": DEPLOYED})
    boto3.client("cloudformation").create_stack(StackName="joiner-demo", TemplateBody=template)
    role, binding = json.loads(json.dumps(read_rbac_manifests(granted_features)))
    create(kube, "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    create(kube, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    _, findings, _ = run_doctor(capsys, "--kubeconfig", config)
    messages = [finding["message"] for finding in findings["permissions"] if finding["level"] == "fail"]
    expected = "surge-drain is on, but ClusterRole joiner-functions lacks patch on deployments.apps"
    assert messages == ([] if granted_features else [expected])


def test_forbidden_kind_is_reported_as_unseen_and_other_checks_run(config: str, capsys: Out) -> None:
    Versioned.forbidden = "customresourcedefinitions"
    _, findings, unasked = run_doctor(capsys, "--kubeconfig", config, "--no-account")
    assert unasked == ["the account"]
    assert map_levels(findings)["crds"] == {"unseen"}
    assert "grant yourself list on customresourcedefinitions" in findings["crds"][0]["fix"]
    assert map_levels(findings)["api-server"] == map_levels(findings)["autoscalers"] == {"ok"}


def test_unauthorized_api_server_makes_all_checks_unseen(config: str, capsys: Out) -> None:
    Versioned.token = "another"  # noqa: S105 - it opens nothing
    status, findings, _ = run_doctor(capsys, "--kubeconfig", config, "--no-account")
    assert (status, {level for check_levels in map_levels(findings).values() for level in check_levels}) == (
        3,
        {"unseen"},
    )


def test_unreachable_api_server_fails_one_check_and_leaves_others_unseen(tmp_path: Path, capsys: Out) -> None:
    config = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1", "elsewhere")
    status, findings, unasked = run_doctor(capsys, "--kubeconfig", config)
    assert (status, map_levels(findings).pop("api-server")) == (1, {"fail"})
    assert {
        level for check, check_levels in map_levels(findings).items() for level in check_levels if check != "api-server"
    } == {"unseen"}
    assert unasked == ["the account: the EKS cluster is unknown; add --cluster NAME"]


@pytest.mark.usefixtures("account")
def test_current_context_is_used_only_if_it_matches_the_named_cluster(
    config: str, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setenv("KUBECONFIG", config)
    _, findings, unasked = run_doctor(capsys, "--cluster", "demo", "--region", "us-east-1")
    assert ("api-server" in findings, unasked) == (True, [])
    _, findings, unasked = run_doctor(capsys, "--cluster", "other", "--region", "us-east-1")
    assert "api-server" not in findings
    assert unasked == [f"the cluster: the current context is {ARN}; select other with --context"]
    assert findings["cluster"][0]["message"] == "us-east-1 has no cluster other"


def test_deployments_are_read_with_pagination(config: str, kube: InMemoryKube, capsys: Out, monkeypatch: Any) -> None:
    monkeypatch.setattr("cli.cluster.paging._PAGE_SIZE", 1)
    spec = {"replicas": 1, "selector": {}, "template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}
    for name in ("a", "cluster-autoscaler", "karpenter"):
        create(kube, "/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": name}, "spec": spec})
    _, findings, _ = run_doctor(capsys, "--kubeconfig", config, "--no-account")
    assert [finding["level"] for finding in findings["autoscalers"]] == ["warn", "fail"]
    monkeypatch.undo()


def test_invalid_node_is_reported(config: str, kube: InMemoryKube, capsys: Out) -> None:
    create(kube, "/api/v1/nodes", {"metadata": {"name": "odd"}, "spec": {}, "status": {"capacity": {"cpu": "lots"}}})
    status, findings, _ = run_doctor(capsys, "--kubeconfig", config, "--no-account")
    assert status == 1
    assert [
        finding["message"]
        for finding in findings["nodepools"]
        if "odd" in finding["message"] and finding["level"] == "fail"
    ]
