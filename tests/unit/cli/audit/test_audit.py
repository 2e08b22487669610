"""`joiner audit`: the owner of each resource, and the resources without an owner."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from cli.audit.assets import Asset, AttachedResource, AuditEvidence, NamedResource, describe_unseen_parts
from cli.audit.rules import list_assets
from cli.aws import session
from cli.facts.model import ReadFailure
from cli.main import main
from shared.aws.clients import Clients
from shared.errors import Forbidden
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import NODEPOOL
from shared.model.ec2.instance import Instance
from shared.model.ec2.launch_template import LaunchTemplate
from shared.settings import Settings
from shared.state.cluster_state import ClusterState
from sim.cloud.cloud import Cloud
from sim.time.virtual_clock import Clock
from sim.world.memory_ports import MemoryTable
from tests.contract.http_face import get_clients, get_embedded_aws
from tests.contract.kube_front import create
from tests.support.cli.cli_objects import POOL as POOL_OBJECT
from tests.support.cli.live_cases import Guarded, serve_cluster, write_kubeconfig
from tests.support.command_cases import make_command, make_command_state
from tests.support.lifecycle_cases import NODE_CLASS, NOW, POOL, get_time_before, make_claim, make_node, replace_fields

Out = pytest.CaptureFixture[str]
INSIDE = ("node_claims", "nodes", "node_classes", "node_pools")
READ_DENIED = ReadFailure(reason="Forbidden: no", is_denied=True)
EMPTY = AuditEvidence(
    now=NOW,
    cluster_name="demo",
    cluster_state=ClusterState(ClusterSnapshot(taken_at=NOW, node_pools=(POOL,))),
    instances=(),
    templates=(),
    attached=(),
    named_resources=(),
    commands=(),
    is_installed=True,
)


def make_instance(name: str, **fields: Any) -> Instance:
    defaults: dict[str, Any] = {
        "state": "running",
        "launched_at": get_time_before(hours=1),
        "tags": ((NODEPOOL, "default"),),
    }
    return Instance(
        instance_id=name,
        instance_type="m5.large",
        zone="us-east-1a",
        subnet_id="s",
        image_id="ami",
        capacity_type="spot",
        **(defaults | fields),
    )


def make_evidence(**fields: Any) -> AuditEvidence:
    """Return evidence with the given fields of the cluster or of the account, and nothing else."""
    inside = {name: fields.pop(name) for name in INSIDE if name in fields}
    cluster = ClusterSnapshot(taken_at=NOW, **({"node_pools": (POOL,)} | inside))
    return msgspec.structs.replace(EMPTY, **({"cluster_state": ClusterState(cluster)} | fields))


def list_leaks(evidence: AuditEvidence) -> dict[str, Asset]:
    return {asset.name: asset for asset in list_assets(evidence) if asset.is_leaked}


def map_owners(evidence: AuditEvidence) -> dict[str, str]:
    return {asset.name: asset.owner for asset in list_assets(evidence)}


def make_launch_template(name: str, **fields: Any) -> LaunchTemplate:
    return LaunchTemplate(name=name, image_id="", user_data="", **({"created_at": get_time_before(hours=2)} | fields))


COMPLETE_EVIDENCE = make_evidence(
    node_claims=(make_claim("a"),),
    nodes=(make_node("a"),),
    node_classes=(NODE_CLASS,),
    instances=(make_instance("i-a"),),
    templates=(make_launch_template("joiner/demo/1"), make_launch_template("Karpenter/demo/2")),
    attached=(AttachedResource(kind="Volume", name="vol-1", instance_id="i-a", size_gib=20),),
    named_resources=(NamedResource(kind="Queue", name="q"),),
    commands=(
        ("c", make_command_state(make_command("a"), "DRAINING", since=get_time_before(minutes=1))),
        ("d", make_command_state(make_command("b"), "DONE")),
    ),
)


def test_every_resource_of_a_consistent_installation_has_an_owner() -> None:
    assert list_leaks(COMPLETE_EVIDENCE) == {}
    assert map_owners(COMPLETE_EVIDENCE) == {
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
    ("evidence", "name", "expected_reason", "remedy"),
    [
        (
            make_evidence(instances=(make_instance("i-x"),)),
            "i-x",
            "it has no NodeClaim",
            "terminate-instances --instance-ids i-x",
        ),
        (
            make_evidence(node_claims=(make_claim("a"),)),
            "a",
            "its instance does not exist: i-a",
            "kubectl delete nodeclaim a",
        ),
        (
            make_evidence(node_claims=(make_claim("a"),), instances=(make_instance("i-a"),), node_pools=()),
            "a",
            "its NodePool does not exist",
            "kubectl delete nodeclaim a",
        ),
        (
            make_evidence(
                node_claims=(make_claim("a", deleted=get_time_before(hours=2)),), instances=(make_instance("i-a"),)
            ),
            "a",
            "deleting for over an hour, held by karpenter.sh/termination",
            "joiner explain nodeclaim a",
        ),
        (
            make_evidence(nodes=(make_node("a"),)),
            "node-a",
            "it has no NodeClaim, held by karpenter.sh/termination",
            "kubectl delete node node-a",
        ),
        (
            make_evidence(nodes=(make_node("a", deleted=get_time_before(minutes=9)),)),
            "node-a",
            "it has no NodeClaim",
            'kubectl patch node node-a --type merge -p \'{"metadata": {"finalizers": null}}\'',
        ),
        (
            make_evidence(
                node_classes=(
                    replace_fields(
                        NODE_CLASS, meta=replace_fields(NODE_CLASS.meta, deleted_at=get_time_before(hours=2))
                    ),
                )
            ),
            "default",
            "deleting for over an hour, held by karpenter.k8s.aws/termination",
            "joiner doctor",
        ),
        (
            make_evidence(templates=(make_launch_template("joiner/demo/1"),), is_installed=False),
            "joiner/demo/1",
            "Joiner is no longer installed",
            "delete-launch-template --launch-template-name joiner/demo/1",
        ),
        (
            make_evidence(named_resources=(NamedResource(kind="Queue", name="q"),), is_installed=False),
            "q",
            "Joiner is no longer installed",
            "aws sqs delete-queue --queue-url q",
        ),
        (
            make_evidence(
                named_resources=(
                    NamedResource(kind="InstanceProfile", name="joiner-demo-x", created_at=get_time_before(days=9)),
                ),
                is_installed=False,
            ),
            "joiner-demo-x",
            "no longer installed",
            "delete-instance-profile --instance-profile-name joiner-demo-x",
        ),
        (
            make_evidence(
                attached=(
                    AttachedResource(
                        kind="Volume", name="vol-1", instance_id="", size_gib=100, created_at=get_time_before(days=1)
                    ),
                )
            ),
            "vol-1",
            "not attached to an instance",
            "aws ec2 delete-volume --volume-id vol-1",
        ),
        (
            make_evidence(
                attached=(
                    AttachedResource(
                        kind="NetworkInterface", name="eni-1", instance_id="", made_for_instance_id="i-gone"
                    ),
                )
            ),
            "eni-1",
            "not attached to an instance",
            "delete-network-interface --network-interface-id eni-1",
        ),
        (
            make_evidence(
                commands=(
                    (
                        "c",
                        make_command_state(
                            make_command("a"),
                            "LAUNCHED",
                            since=get_time_before(hours=3),
                            proposed_at=get_time_before(hours=3),
                        ),
                    ),
                )
            ),
            "c",
            "LAUNCHED for over two hours",
            "joiner explain command c",
        ),
        (make_evidence(commands=(("c", None),)), "c", "its row in the table cannot be read", "nothing"),
    ],
)
def test_leaked_resource_is_reported_with_reason_and_fix(
    evidence: AuditEvidence, name: str, expected_reason: str, remedy: str
) -> None:
    leaks = list_leaks(evidence)
    assert set(leaks) == {name}
    assert expected_reason in leaks[name].leak_reason
    assert remedy in leaks[name].fix


@pytest.mark.parametrize(
    "evidence",
    [
        make_evidence(instances=(make_instance("i-x", launched_at=get_time_before(minutes=1)),)),
        make_evidence(instances=(make_instance("i-x", state="shutting-down"),)),
        make_evidence(node_claims=(make_claim("a", created=get_time_before(minutes=1)),)),
        make_evidence(node_claims=(make_claim("a", launched=False),)),
        make_evidence(node_claims=(make_claim("a", deleted=get_time_before(minutes=1)),)),
        make_evidence(templates=(make_launch_template("Karpenter/demo/1"),), is_installed=False),
        make_evidence(
            templates=(make_launch_template("joiner/demo/1", created_at=get_time_before(minutes=1)),),
            is_installed=False,
        ),
        make_evidence(
            attached=(
                AttachedResource(kind="Volume", name="vol", instance_id="", created_at=get_time_before(minutes=1)),
            )
        ),
        make_evidence(
            instances=(make_instance("i-a"),),
            node_claims=(make_claim("a"),),
            attached=(
                AttachedResource(kind="NetworkInterface", name="eni", instance_id="", made_for_instance_id="i-a"),
            ),
        ),
    ],
)
def test_starting_or_terminating_resource_is_not_a_leak(evidence: AuditEvidence) -> None:
    assert list_leaks(evidence) == {}


@pytest.mark.parametrize(
    "evidence",
    [
        make_evidence(cluster_state=READ_DENIED, instances=(make_instance("i-x"),)),
        make_evidence(instances=READ_DENIED, node_claims=(make_claim("a"),)),
        make_evidence(instances=READ_DENIED, attached=(AttachedResource(kind="Volume", name="vol", instance_id=""),)),
        make_evidence(named_resources=(NamedResource(kind="Queue", name="q"),), is_installed=None),
        make_evidence(templates=(make_launch_template("joiner/demo/1"),), is_installed=None),
        make_evidence(templates=READ_DENIED, attached=READ_DENIED, named_resources=READ_DENIED, commands=READ_DENIED),
    ],
)
def test_unreadable_evidence_never_makes_a_resource_a_leak(evidence: AuditEvidence) -> None:
    assert list_leaks(evidence) == {}


def test_unreadable_evidence_is_reported() -> None:
    assert list(describe_unseen_parts(make_evidence(cluster_state=READ_DENIED, named_resources=READ_DENIED))) == [
        "the cluster: Forbidden: no",
        "queues and instance profiles: Forbidden: no",
    ]


# The command


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Clients:
    cloud = Cloud(Clock(), cluster="demo")
    get_embedded_aws().reset(cloud)

    @contextmanager
    def open_embedded_clients(*_: object, **__: object) -> Iterator[tuple[Clients, datetime]]:
        yield get_clients(), cloud.clock.get_time()

    monkeypatch.setattr(session, "open_clients", open_embedded_clients)
    return get_clients()


@pytest.fixture
def config(tmp_path: Path) -> Iterator[str]:
    with serve_cluster(tmp_path) as (kube, config):
        create(kube, "/apis/karpenter.sh/v1/nodepools", POOL_OBJECT)
        yield config


def create_leftover_volume(account: Clients) -> str:
    tags = [{"Key": "eks:eks-cluster-name", "Value": "demo"}, {"Key": NODEPOOL, "Value": "default"}]
    ec2 = account.get_retrying_client("ec2")
    volume = ec2.create_volume(
        AvailabilityZone="us-east-1a", Size=100, TagSpecifications=[{"ResourceType": "volume", "Tags": tags}]
    )
    ec2.create_volume(AvailabilityZone="us-east-1a", Size=5)
    return str(volume["VolumeId"])


@pytest.mark.loopback
@pytest.mark.usefixtures("account")
def test_account_without_leaks_exits_with_0(config: str, capsys: Out) -> None:
    assert main(["audit", "--kubeconfig", config, "--cluster", "demo"]) == 0
    assert capsys.readouterr().out == "no leaked resources; Joiner's resources: none\n"


@pytest.mark.loopback
def test_leaked_volume_exits_with_1_and_reports_its_price(
    account: Clients, config: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cli.audit import rules as judging  # noqa: PLC0415 - what is changed for this test alone

    monkeypatch.setattr(judging, "EVENTUAL_CONSISTENCY_DELAY", timedelta(days=-1000))
    queue = account.get_retrying_client("sqs").create_queue(QueueName="demo-joiner-provision")["QueueUrl"]
    volume = create_leftover_volume(account)
    arguments = ["audit", "--kubeconfig", config, "--cluster", "demo"]
    assert main(arguments) == 1
    output = capsys.readouterr().out
    assert output.startswith("2 leaked resources, $0.0110/h; Joiner's resources: 1 Queue, 1 Volume")
    [volume_line] = [line for line in output.splitlines() if line.startswith("Volume ")]
    assert " $0.0110/h " in volume_line
    assert f"    To fix: aws ec2 delete-volume --volume-id {volume}\n" in output
    assert main([*arguments, "-o", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["leaked"], report["usdPerHour"], report["unreadable"]) == (2, 0.010958904, [])
    assert [(asset["kind"], asset["name"]) for asset in report["assets"]] == [("Queue", queue), ("Volume", volume)]


@pytest.mark.loopback
@pytest.mark.usefixtures("account")
def test_unreadable_resources_exit_with_1_and_are_named(
    config: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(*_: object) -> None:
        raise Forbidden("sqs:ListQueues: no")

    monkeypatch.setattr("cli.audit.evidence._list_queues", deny)
    assert main(["audit", "--kubeconfig", config, "--context", "away", "--cluster", "demo"]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("no leak")
    assert "joiner audit: cannot be read: the cluster: away: GET" in captured.err
    assert "queues and instance profiles: Forbidden: sqs:ListQueues: no" in captured.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "the kubeconfig does not name the EKS cluster: add --cluster NAME"),
        (("--context", "nobody"), "context nobody"),
    ],
)
def test_missing_cluster_or_context_option_is_reported(
    tmp_path: Path, capsys: Out, arguments: tuple[str, ...], words: str
) -> None:
    path = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1", token="x")  # noqa: S106 - it opens nothing
    assert main(["audit", "--kubeconfig", path, *arguments]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.loopback
def test_leaked_interfaces_instance_profiles_and_commands_are_found(
    account: Clients, config: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    ec2, iam = account.get_retrying_client("ec2"), account.get_retrying_client("iam")
    subnet = ec2.create_subnet(VpcId=ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"], CidrBlock="10.9.0.0/24")[
        "Subnet"
    ]["SubnetId"]
    tags = {"cluster.k8s.amazonaws.com/name": "demo", "node.k8s.amazonaws.com/instance_id": "i-gone"}
    resource_tags = [{"Key": key, "Value": value} for key, value in tags.items()]
    interface = ec2.create_network_interface(
        SubnetId=subnet, TagSpecifications=[{"ResourceType": "network-interface", "Tags": resource_tags}]
    )
    for name in ("joiner-demo-Nodes-1", "others"):
        iam.create_instance_profile(InstanceProfileName=name)
    table = MemoryTable()
    table.write("command", "broken", "{", version=0)
    table.write(
        "command", "done", msgspec.json.encode(make_command_state(make_command("a"), "DONE")).decode(), version=0
    )
    settings = Settings(cluster_name="demo", region="us-east-1", table_name="t", bucket_name="b")
    installed = SimpleNamespace(settings=settings)
    monkeypatch.setattr("cli.audit.evidence.StackFacts", SimpleNamespace)
    monkeypatch.setattr("cli.audit.evidence.read_stack", lambda *_: installed)
    monkeypatch.setattr("cli.audit.evidence.DynamoTable", lambda *_: table)
    assert main(["audit", "--kubeconfig", config, "--cluster", "demo", "--all"]) == 1
    output = capsys.readouterr().out
    assert output.startswith("2 leaked resources, $0.0000/h; ")
    name = interface["NetworkInterface"]["NetworkInterfaceId"]
    assert f"aws ec2 delete-network-interface --network-interface-id {name}" in output
    assert "Command           broken" in output
    assert "InstanceProfile   joiner-demo-Nodes-1" in output
    assert "others" not in output


@pytest.mark.loopback
@pytest.mark.usefixtures("account")
def test_cluster_without_list_permission_is_reported_as_unreadable(config: str, capsys: Out) -> None:
    Guarded.forbidden = "/nodepools"
    assert main(["audit", "--kubeconfig", config, "--cluster", "demo"]) == 1
    assert "cannot be read: the cluster: NodePool: " in capsys.readouterr().err


@pytest.mark.loopback
@pytest.mark.usefixtures("account")
def test_without_kubeconfig_context_only_the_account_is_audited(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert main(["audit", "--cluster", "demo"]) == 1
    assert "the cluster: no kubeconfig context for this cluster: add --context NAME" in capsys.readouterr().err
