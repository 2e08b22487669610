"""Over HTTP, keys of volumes and IPv6 addresses of pods need the deployed permissions, as in the embedded world.

tests/scenario/provisioning/test_node_permissions.py has the consequences for the cluster.
"""

import base64
from collections.abc import Iterator
from datetime import timedelta

import msgspec
import pytest

from shared.aws.clients import Clients
from shared.aws.ec2.client import BotoEc2
from shared.model.ec2.account import SelectorTerm
from shared.model.ec2.fleet import FleetRequest, LaunchTemplateConfig, Override
from shared.model.ec2.launch_template import BlockDevice, LaunchTemplate
from sim.cluster.kubelet.node_boot_data import NodeBoot
from sim.time.virtual_clock import Clock
from sim.world.instance_boot import NETWORK_TIMEOUT, InstanceBooter
from tests.contract.account_stage import Json, Stage
from tests.contract.asking import FIRST_LAUNCH, STANDARD

pytestmark = pytest.mark.loopback

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OTHER_KEY = "arn:aws:kms:us-east-1:123456789012:key/00000000-12ab-34cd-56ef-1234567890ab"
TAGS = (
    ("eks:eks-cluster-name", "demo"),
    ("karpenter.k8s.aws/ec2nodeclass", "default"),
    ("karpenter.sh/nodepool", "default"),
    ("kubernetes.io/cluster/demo", "owned"),
)
NODE_CONFIG = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: demo, apiServerEndpoint: https://k, certificateAuthority: Q0E=, cidr: "fd00:1::/108"}
"""


class BootLog:
    """Takes the boots of nodes."""

    def __init__(self) -> None:
        """Start without boots."""
        self.boots: list[NodeBoot] = []

    def start_node(self, boot: NodeBoot) -> None:
        self.boots.append(boot)

    def stop_node(self, node_name: str, *, terminated: bool = True) -> None:
        del node_name, terminated


@pytest.fixture
def stage() -> Iterator[Stage]:
    """An account on a virtual clock."""
    new_stage = Stage(Clock())
    with new_stage.account:
        yield new_stage


def launch_instance(stage: Stage, monkeypatch: pytest.MonkeyPatch, device: BlockDevice) -> Json:
    """Launch an instance with the credentials of `provision`; return how EC2 describes it a minute later."""
    for name, value in stage.issue_function_credentials("provision").build_environment().items():
        monkeypatch.setenv(name, value)
    clients = Clients("us-east-1", endpoint_url=stage.account.url)
    ec2 = BotoEc2(clients, stage.account.clock.get_time)
    template, fleet_request = build_launch(stage, device)
    ec2.ensure_launch_template(template)
    [launched] = ec2.create_fleet(fleet_request).instances
    with stage.account.lock:
        stage.account.clock.advance(timedelta(minutes=1))
    clients.close()
    response = stage.get_client("ec2").describe_instances(InstanceIds=[launched.instance_id])
    [instance] = response["Reservations"][0]["Instances"]
    return dict(instance)


def build_launch(stage: Stage, device: BlockDevice) -> tuple[LaunchTemplate, FleetRequest]:
    """Return the launch template and the fleet request of one node with the stack's instance profile."""
    image = stage.account.cloud.images.get_parameter(STANDARD)
    [profile] = stage.get_client("iam").list_instance_profiles()["InstanceProfiles"]
    template = LaunchTemplate(
        name="karpenter.k8s.aws/1",
        image_id=image,
        user_data=base64.b64encode(NODE_CONFIG.encode()).decode(),
        instance_profile=profile["InstanceProfileName"],
        block_devices=(device,),
        tags=TAGS,
    )
    subnet, *_ = stage.account.cloud.network.select_subnets((SelectorTerm(tags=(("karpenter.sh/discovery", "*"),)),))
    override = Override(instance_type="m5.large", zone=subnet.zone, subnet_id=subnet.subnet_id, image_id=image)
    fleet_request = FleetRequest(
        client_token=FIRST_LAUNCH,
        capacity=1,
        capacity_type="on-demand",
        allocation_strategy="lowest-price",
        configs=(LaunchTemplateConfig(launch_template_name=template.name, overrides=(override,)),),
        tags=TAGS,
    )
    return template, fleet_request


@pytest.mark.parametrize(
    ("kms_keys", "state", "state_reason"),
    [
        ("", "terminated", "Client.InternalError: Client error on launch"),
        (OTHER_KEY, "terminated", "Client.InternalError: Client error on launch"),
        (KEY, "running", ""),
    ],
    ids=["no-keys", "another-key", "the-key"],
)
def test_an_instance_runs_only_if_the_deployed_role_may_use_the_key_of_its_volume(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, kms_keys: str, state: str, state_reason: str
) -> None:
    stage.deploy_joiner(kms_keys=kms_keys)
    device = BlockDevice(device_name="/dev/xvda", encrypted=True, kms_key_id=KEY)
    instance = launch_instance(stage, monkeypatch, device)
    assert instance["State"]["Name"] == state
    assert instance.get("StateReason", {}).get("Message", "") == state_reason


@pytest.mark.parametrize(("ip_family", "is_ready"), [("ipv4", False), ("ipv6", True)])
def test_a_node_of_an_ipv6_cluster_becomes_ready_only_if_its_deployed_role_can_assign_addresses(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, ip_family: str, *, is_ready: bool
) -> None:
    stage.deploy_joiner(ip_family=ip_family)
    cloud, boot_log = stage.account.cloud, BootLog()
    cloud.facts = msgspec.structs.replace(cloud.facts, service_cidr="fd00:1::/108")
    booter = InstanceBooter(cloud, boot_log)
    booter.can_assign_ipv6_addresses = stage.account.service_permissions.can_assign_ipv6_addresses
    launch_instance(stage, monkeypatch, BlockDevice(device_name="/dev/xvda"))
    [boot] = boot_log.boots
    assert (boot.ready_after < NETWORK_TIMEOUT) == is_ready


def test_a_profile_of_another_owner_can_assign_addresses(stage: Stage) -> None:
    assert stage.account.service_permissions.can_assign_ipv6_addresses("made-elsewhere")


def test_the_deployer_can_use_every_key(stage: Stage) -> None:
    assert stage.account.cloud.instances.volume_keys.can_use_key(KEY)
