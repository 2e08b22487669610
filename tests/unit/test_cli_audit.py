"""`joiner audit`: whom things belong to, and what belongs to nobody."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from cli import clouds
from cli.audit_facts import Asset, Attached, Evidence, Named, unseen
from cli.audited import audited
from cli.checks.facts import Unseen
from cli.main import main
from shared.aws.clients import Clients
from shared.errors import Forbidden
from shared.model.cluster import Cluster
from shared.model.ec2 import Instance, LaunchTemplate
from shared.model.labels import NODEPOOL
from shared.settings import Settings
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from sim.memory import MemoryTable
from tests.contract.http_face import clients, embedded_aws
from tests.contract.kube_front import create
from tests.unit.cli_objects import POOL as POOL_OBJECT
from tests.unit.command_cases import order, stands
from tests.unit.lifecycle_cases import NODE_CLASS, NOW, POOL, ago, changed, claim, node
from tests.unit.live_cases import Guarded, kubeconfig, live

Out = pytest.CaptureFixture[str]
INSIDE = ("node_claims", "nodes", "node_classes", "node_pools")
NOBODY = Unseen(why="Forbidden: no", is_denied=True)
EMPTY = Evidence(
    now=NOW,
    name="demo",
    cluster=Cluster(taken_at=NOW, node_pools=(POOL,)),
    instances=(),
    templates=(),
    attached=(),
    named=(),
    commands=(),
    is_installed=True,
)


def instance(name: str, **fields: Any) -> Instance:
    given: dict[str, Any] = {"state": "running", "launched_at": ago(hours=1), "tags": ((NODEPOOL, "default"),)}
    return Instance(
        instance_id=name,
        instance_type="m5.large",
        zone="us-east-1a",
        subnet_id="s",
        image_id="ami",
        capacity_type="spot",
        **(given | fields),
    )


def seen(**fields: Any) -> Evidence:
    """Answer evidence of what is given, a field of the cluster or of the account, and of nothing else."""
    inside = {name: fields.pop(name) for name in INSIDE if name in fields}
    whole = Cluster(taken_at=NOW, **({"node_pools": (POOL,)} | inside))
    return msgspec.structs.replace(EMPTY, **({"cluster": whole} | fields))


def leaked(evidence: Evidence) -> dict[str, Asset]:
    return {one.name: one for one in audited(evidence) if one.is_leaked}


def owners(evidence: Evidence) -> dict[str, str]:
    return {one.name: one.owner for one in audited(evidence)}


def template(name: str, **fields: Any) -> LaunchTemplate:
    return LaunchTemplate(name=name, image_id="", user_data="", **({"created_at": ago(hours=2)} | fields))


WHOLE = seen(
    node_claims=(claim("a"),),
    nodes=(node("a"),),
    node_classes=(NODE_CLASS,),
    instances=(instance("i-a"),),
    templates=(template("joiner/demo/1"), template("Karpenter/demo/2")),
    attached=(Attached(kind="Volume", name="vol-1", instance_id="i-a", gib=20),),
    named=(Named(kind="Queue", name="q"),),
    commands=(("c", stands(order("a"), "DRAINING", since=ago(minutes=1))), ("d", stands(order("b"), "DONE"))),
)


def test_where_everything_belongs_together_each_thing_has_its_owner() -> None:
    assert leaked(WHOLE) == {}
    assert owners(WHOLE) == {
        "c": "`disrupt`",
        "default": "you",
        "i-a": "NodeClaim a",
        "a": "NodePool default",
        "node-a": "NodeClaim a",
        "joiner/demo/1": "launches",
        "vol-1": "instance i-a",
        "q": "the installation",
    }


@pytest.mark.parametrize(
    ("evidence", "name", "why", "remedy"),
    [
        (seen(instances=(instance("i-x"),)), "i-x", "no NodeClaim has it", "terminate-instances --instance-ids i-x"),
        (seen(node_claims=(claim("a"),)), "a", "its instance is not there: i-a", "kubectl delete nodeclaim a"),
        (
            seen(node_claims=(claim("a"),), instances=(instance("i-a"),), node_pools=()),
            "a",
            "its NodePool is not there",
            "kubectl delete nodeclaim a",
        ),
        (
            seen(node_claims=(claim("a", deleted=ago(hours=2)),), instances=(instance("i-a"),)),
            "a",
            "going for over an hour, held by karpenter.sh/termination",
            "joiner explain nodeclaim a",
        ),
        (
            seen(nodes=(node("a"),)),
            "node-a",
            "no NodeClaim has it, held by karpenter.sh/termination",
            "kubectl delete node node-a",
        ),
        (
            seen(nodes=(node("a", deleted=ago(minutes=9)),)),
            "node-a",
            "no NodeClaim has it",
            'kubectl patch node node-a --type merge -p \'{"metadata": {"finalizers": null}}\'',
        ),
        (
            seen(node_classes=(changed(NODE_CLASS, meta=changed(NODE_CLASS.meta, deleted_at=ago(hours=2))),)),
            "default",
            "going for over an hour, held by karpenter.k8s.aws/termination",
            "joiner doctor",
        ),
        (
            seen(templates=(template("joiner/demo/1"),), is_installed=False),
            "joiner/demo/1",
            "Joiner is not installed any more",
            "delete-launch-template --launch-template-name joiner/demo/1",
        ),
        (
            seen(named=(Named(kind="Queue", name="q"),), is_installed=False),
            "q",
            "Joiner is not installed any more",
            "aws sqs delete-queue --queue-url q",
        ),
        (
            seen(named=(Named(kind="InstanceProfile", name="joiner-demo-x", since=ago(days=9)),), is_installed=False),
            "joiner-demo-x",
            "not installed",
            "delete-instance-profile --instance-profile-name joiner-demo-x",
        ),
        (
            seen(attached=(Attached(kind="Volume", name="vol-1", instance_id="", gib=100, since=ago(days=1)),)),
            "vol-1",
            "it is attached to nothing",
            "aws ec2 delete-volume --volume-id vol-1",
        ),
        (
            seen(attached=(Attached(kind="NetworkInterface", name="eni-1", instance_id="", made_for="i-gone"),)),
            "eni-1",
            "it is attached to nothing",
            "delete-network-interface --network-interface-id eni-1",
        ),
        (
            seen(commands=(("c", stands(order("a"), "LAUNCHED", since=ago(hours=3), proposed_at=ago(hours=3))),)),
            "c",
            "it is LAUNCHED for over two hours",
            "joiner explain command c",
        ),
        (seen(commands=(("c", None),)), "c", "its row cannot be read", "nothing"),
    ],
)
def test_what_nothing_accounts_for_is_named_with_its_remedy(
    evidence: Evidence, name: str, why: str, remedy: str
) -> None:
    found = leaked(evidence)
    assert set(found) == {name}
    assert why in found[name].why
    assert remedy in found[name].remedy


@pytest.mark.parametrize(
    "evidence",
    [
        seen(instances=(instance("i-x", launched_at=ago(minutes=1)),)),
        seen(instances=(instance("i-x", state="shutting-down"),)),
        seen(node_claims=(claim("a", created=ago(minutes=1)),)),
        seen(node_claims=(claim("a", launched=False),)),
        seen(node_claims=(claim("a", deleted=ago(minutes=1)),)),
        seen(templates=(template("Karpenter/demo/1"),), is_installed=False),
        seen(templates=(template("joiner/demo/1", created_at=ago(minutes=1)),), is_installed=False),
        seen(attached=(Attached(kind="Volume", name="vol", instance_id="", since=ago(minutes=1)),)),
        seen(
            instances=(instance("i-a"),),
            node_claims=(claim("a"),),
            attached=(Attached(kind="NetworkInterface", name="eni", instance_id="", made_for="i-a"),),
        ),
    ],
)
def test_what_comes_or_goes_is_not_called_leaked(evidence: Evidence) -> None:
    assert leaked(evidence) == {}


@pytest.mark.parametrize(
    "evidence",
    [
        seen(cluster=NOBODY, instances=(instance("i-x"),)),
        seen(instances=NOBODY, node_claims=(claim("a"),)),
        seen(instances=NOBODY, attached=(Attached(kind="Volume", name="vol", instance_id=""),)),
        seen(named=(Named(kind="Queue", name="q"),), is_installed=None),
        seen(templates=(template("joiner/demo/1"),), is_installed=None),
        seen(templates=NOBODY, attached=NOBODY, named=NOBODY, commands=NOBODY),
    ],
)
def test_what_could_not_be_seen_makes_nothing_a_leak(evidence: Evidence) -> None:
    assert leaked(evidence) == {}


def test_what_could_not_be_seen_is_told() -> None:
    assert list(unseen(seen(cluster=NOBODY, named=NOBODY))) == [
        "the cluster: Forbidden: no",
        "queues and instance profiles: Forbidden: no",
    ]


# The command


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Clients:
    made = Cloud(Clock(), cluster="demo")
    embedded_aws().reset(made)

    @contextmanager
    def opened(*_: object, **__: object) -> Iterator[tuple[Clients, datetime]]:
        yield clients(), made.clock.now()

    monkeypatch.setattr(clouds, "opened", opened)
    return clients()


@pytest.fixture
def config(tmp_path: Path) -> Iterator[str]:
    with live(tmp_path) as (kube, config):
        create(kube, "/apis/karpenter.sh/v1/nodepools", POOL_OBJECT)
        yield config


def left_behind(account: Clients) -> str:
    tags = [{"Key": "eks:eks-cluster-name", "Value": "demo"}, {"Key": NODEPOOL, "Value": "default"}]
    ec2 = account.patient("ec2")
    made = ec2.create_volume(
        AvailabilityZone="us-east-1a", Size=100, TagSpecifications=[{"ResourceType": "volume", "Tags": tags}]
    )
    ec2.create_volume(AvailabilityZone="us-east-1a", Size=5)
    return str(made["VolumeId"])


@pytest.mark.loopback
@pytest.mark.usefixtures("account")
def test_an_account_without_leaks_is_0(config: str, capsys: Out) -> None:
    assert main(["audit", "--kubeconfig", config, "--cluster", "demo"]) == 0
    assert capsys.readouterr().out == "no leak; of ours there are no things\n"


@pytest.mark.loopback
def test_what_instances_left_behind_is_1_and_told_with_its_price(
    account: Clients, config: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cli import audited as judging  # noqa: PLC0415 - what is changed for this test alone

    monkeypatch.setattr(judging, "YOUNG", timedelta(days=-1000))
    queue = account.patient("sqs").create_queue(QueueName="demo-joiner-provision")["QueueUrl"]
    volume = left_behind(account)
    asked = ["audit", "--kubeconfig", config, "--cluster", "demo"]
    assert main(asked) == 1
    told = capsys.readouterr().out
    assert told.startswith("2 things that nothing accounts for, $0.0110 per hour; of ours there are 1 Queue, 1 Volume")
    assert f"    aws ec2 delete-volume --volume-id {volume}\n" in told
    assert main([*asked, "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["leaked"], found["usdPerHour"], found["unseen"]) == (2, 0.010958904, [])
    assert [(one["kind"], one["name"]) for one in found["assets"]] == [("Queue", queue), ("Volume", volume)]


@pytest.mark.loopback
@pytest.mark.usefixtures("account")
def test_what_could_not_be_looked_at_is_1_and_named(config: str, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise Forbidden("sqs:ListQueues: no")

    monkeypatch.setattr("cli.audit_look._queues", denied)
    assert main(["audit", "--kubeconfig", config, "--context", "away", "--cluster", "demo"]) == 1
    told = capsys.readouterr()
    assert told.out.startswith("no leak")
    assert "joiner audit: could not be looked at: the cluster: away: GET" in told.err
    assert "queues and instance profiles: Forbidden: sqs:ListQueues: no" in told.err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((), "which EKS cluster is it? the kubeconfig does not say: write --cluster NAME"),
        (("--context", "nobody"), "context nobody"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, capsys: Out, given: tuple[str, ...], words: str) -> None:
    path = kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1", token="x")  # noqa: S106 - it opens nothing
    assert main(["audit", "--kubeconfig", path, *given]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.loopback
def test_interfaces_profiles_and_commands_are_looked_for(
    account: Clients, config: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    ec2, iam = account.patient("ec2"), account.patient("iam")
    subnet = ec2.create_subnet(VpcId=ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"], CidrBlock="10.9.0.0/24")[
        "Subnet"
    ]["SubnetId"]
    tags = {"cluster.k8s.amazonaws.com/name": "demo", "node.k8s.amazonaws.com/instance_id": "i-gone"}
    named = [{"Key": key, "Value": value} for key, value in tags.items()]
    made = ec2.create_network_interface(
        SubnetId=subnet, TagSpecifications=[{"ResourceType": "network-interface", "Tags": named}]
    )
    for name in ("joiner-demo-Nodes-1", "others"):
        iam.create_instance_profile(InstanceProfileName=name)
    table = MemoryTable()
    table.write("command", "broken", "{", version=0)
    table.write("command", "done", msgspec.json.encode(stands(order("a"), "DONE")).decode(), version=0)
    settings = Settings(cluster_name="demo", region="us-east-1", table_name="t", bucket_name="b")
    installed = SimpleNamespace(settings=settings)
    monkeypatch.setattr("cli.audit_look.Stack", SimpleNamespace)
    monkeypatch.setattr("cli.audit_look.stack_named", lambda *_: installed)
    monkeypatch.setattr("cli.audit_look.DynamoTable", lambda *_: table)
    assert main(["audit", "--kubeconfig", config, "--cluster", "demo", "--all"]) == 1
    told = capsys.readouterr().out
    assert told.startswith("2 things that nothing accounts for, $0.0000 per hour; ")
    name = made["NetworkInterface"]["NetworkInterfaceId"]
    assert f"aws ec2 delete-network-interface --network-interface-id {name}" in told
    assert "Command           broken" in told
    assert "InstanceProfile   joiner-demo-Nodes-1" in told
    assert "others" not in told


@pytest.mark.loopback
@pytest.mark.usefixtures("account")
def test_without_a_right_to_list_the_cluster_counts_as_unseen(config: str, capsys: Out) -> None:
    Guarded.forbidden = "/nodepools"
    assert main(["audit", "--kubeconfig", config, "--cluster", "demo"]) == 1
    assert "could not be looked at: the cluster: NodePool: " in capsys.readouterr().err


@pytest.mark.loopback
@pytest.mark.usefixtures("account")
def test_without_a_context_the_account_is_looked_at_alone(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert main(["audit", "--cluster", "demo"]) == 1
    assert "the cluster: no context leads to it: name one with --context" in capsys.readouterr().err
