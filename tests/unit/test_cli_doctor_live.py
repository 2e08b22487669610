"""`joiner doctor` over the wire: a cluster as a kubeconfig names it, and an embedded account with a stack in it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from cli.main import main
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from sim.cluster.api import ApiServer
from sim.cluster.kube import InMemoryKube
from sim.http.server import EmbeddedAws
from tests.contract.kube_front import create, serve
from tests.unit.cli_objects import POOL
from tests.unit.live_cases import TOKEN, Guarded
from tests.unit.test_cli_catalogues import NODE_CLASS

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
    """One that says which version it is, too."""

    def _answer(self, call: Callable[[], bytes]) -> None:
        super()._answer((lambda: VERSION) if self.path == "/version" else call)


@pytest.fixture
def kube() -> InMemoryKube:
    made = InMemoryKube(ApiServer(Clock()))
    create(made, "/apis/karpenter.sh/v1/nodepools", POOL)
    create(made, "/apis/karpenter.k8s.aws/v1/ec2nodeclasses", NODE_CLASS)
    return made


@pytest.fixture
def config(kube: InMemoryKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for limit in ("SLOW_SECONDS", "ODD_SECONDS"):
        monkeypatch.setattr(f"cli.checks.reach.{limit}", 3600)  # this machine may be slow
    Versioned.kube, Versioned.asked, Versioned.token, Versioned.forbidden = kube, [], TOKEN, "/nothing"
    for server in serve(Versioned):
        yield written(tmp_path / "kubeconfig", server, ARN)


def written(path: Path, server: str, cluster: str) -> str:
    said = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"token": TOKEN}}],
        "contexts": [{"name": "here", "context": {"cluster": cluster, "user": "me"}}],
        "current-context": "here",
    }
    path.write_text(json.dumps(said))
    return str(path)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedAws]:
    with EmbeddedAws(Cloud(Clock(), cluster="demo")) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        yield server


def looked(capsys: Out, *arguments: str) -> tuple[int, dict[str, list[dict[str, str]]], list[str]]:
    """Answer the exit status, the findings by check, and what was not asked."""
    status = main(["doctor", "-o", "json", *arguments])
    said = json.loads(capsys.readouterr().out)
    found: dict[str, list[dict[str, str]]] = {}
    for one in said["findings"]:
        found.setdefault(one["check"], []).append(one)
    return status, found, said["notAsked"]


def levels(found: dict[str, list[dict[str, str]]]) -> dict[str, set[str]]:
    return {check: {one["level"] for one in some} for check, some in found.items()}


@pytest.mark.usefixtures("account")
def test_before_an_installation_a_cluster_and_its_account_are_looked_at(config: str, capsys: Out) -> None:
    _, found, unasked = looked(capsys, "--kubeconfig", config)
    assert unasked == []
    assert found["api-server"][0]["what"].endswith("s") is True
    assert "Kubernetes 1.34.2, in " in found["api-server"][0]["what"]
    assert found["cluster"][0]["what"] == "demo: Kubernetes 1.34, ACTIVE"
    assert "Joiner is not installed for demo" in found["stack"][0]["what"]
    well = ("api-server", "identity", "clock", "definitions", "subnets", "security-groups", "images", "leaks")
    assert {check: levels(found)[check] for check in well} == {check: {"ok"} for check in well}
    assert levels(found)["rights"] == levels(found)["stack"] == {"later"}
    assert {verb for verb, _, _ in Versioned.asked} == {"GET"}


@pytest.mark.usefixtures("account")
def test_an_installation_is_found_by_the_name_of_its_stack(config: str, kube: InMemoryKube, capsys: Out) -> None:
    template = json.dumps({"Resources": DEPLOYED})
    boto3.client("cloudformation").create_stack(StackName="joiner-demo", TemplateBody=template)
    rights = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    create(kube, rights, {"metadata": {"name": "joiner-functions"}, "roleRef": {}, "subjects": []})
    status, found, _ = looked(capsys, "--kubeconfig", config)
    assert status == 1
    assert (levels(found)["stack"], levels(found)["rights"]) == ({"ok"}, {"ok"})
    assert "disrupt was not called yet" in found["functions"][0]["what"]
    assert f"the policy of {QUEUE} does not let joiner-demo-EventsSpot" in found["interruption"][0]["what"]
    assert "`catalog` made none yet" in found["catalogue"][0]["what"]
    assert levels(found)["quotas"] == levels(found)["authentication"] == {"ok"}
    _, other, _ = looked(capsys, "--kubeconfig", config, "--stack", "another")
    assert levels(other)["stack"] == {"later"}


def test_what_the_cluster_forbids_is_not_seen_and_the_rest_is(config: str, capsys: Out) -> None:
    Versioned.forbidden = "customresourcedefinitions"
    _, found, unasked = looked(capsys, "--kubeconfig", config, "--no-account")
    assert unasked == ["the account"]
    assert levels(found)["definitions"] == {"unseen"}
    assert "let yourself have list on customresourcedefinitions" in found["definitions"][0]["remedy"]
    assert levels(found)["api-server"] == levels(found)["autoscalers"] == {"ok"}


def test_a_cluster_that_lets_nobody_in_has_answered(config: str, capsys: Out) -> None:
    Versioned.token = "another"  # noqa: S105 - it opens nothing
    status, found, _ = looked(capsys, "--kubeconfig", config, "--no-account")
    assert (status, {level for some in levels(found).values() for level in some}) == (3, {"unseen"})


def test_a_cluster_that_does_not_answer_is_asked_once(tmp_path: Path, capsys: Out) -> None:
    config = written(tmp_path / "kubeconfig", "http://127.0.0.1:1", "elsewhere")
    status, found, unasked = looked(capsys, "--kubeconfig", config)
    assert (status, levels(found).pop("api-server")) == (1, {"fail"})
    assert {level for check, some in levels(found).items() for level in some if check != "api-server"} == {"unseen"}
    assert unasked == ["the account: which cluster is it there? --cluster NAME"]


@pytest.mark.usefixtures("account")
def test_the_current_context_is_looked_at_only_if_it_is_of_the_cluster_that_is_meant(
    config: str, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setenv("KUBECONFIG", config)
    _, found, unasked = looked(capsys, "--cluster", "demo", "--region", "us-east-1")
    assert ("api-server" in found, unasked) == (True, [])
    _, found, unasked = looked(capsys, "--cluster", "other", "--region", "us-east-1")
    assert "api-server" not in found
    assert unasked == [f"the cluster: the current context is of {ARN}: name that of other, --context"]
    assert found["cluster"][0]["what"] == "us-east-1 has no cluster other"


def test_deployments_are_read_page_by_page(config: str, kube: InMemoryKube, capsys: Out, monkeypatch: Any) -> None:
    monkeypatch.setattr("cli.listed._PAGE", 1)
    spec = {"replicas": 1, "selector": {}, "template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}
    for name in ("a", "cluster-autoscaler", "karpenter"):
        create(kube, "/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": name}, "spec": spec})
    _, found, _ = looked(capsys, "--kubeconfig", config, "--no-account")
    assert [one["level"] for one in found["autoscalers"]] == ["warn", "fail"]
    monkeypatch.undo()


def test_what_cannot_be_read_is_named(config: str, kube: InMemoryKube, capsys: Out) -> None:
    create(kube, "/api/v1/nodes", {"metadata": {"name": "odd"}, "spec": {}, "status": {"capacity": {"cpu": "lots"}}})
    status, found, _ = looked(capsys, "--kubeconfig", config, "--no-account")
    assert status == 1
    assert [one["what"] for one in found["nodepools"] if "odd" in one["what"] and one["level"] == "fail"]
