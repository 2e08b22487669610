"""Problems with NodePools, EC2NodeClasses and quotas: check, facts, level, message, fix."""

from cli.facts.model import DoctorFacts, QuotaUsage, ReadFailure
from shared.model.core.labels import LIMIT_USD
from shared.model.core.metadata import Condition, ObjectMeta
from shared.model.core.requirements import build_requirements, parse_requirement
from shared.model.ec2.account import Subnet
from shared.model.ec2.dry_run import DryRunRefusal
from shared.model.ec2.launch_template import BlockDevice
from shared.model.karpenter.node_pool import NodePool
from tests.support.cli.doctor_facts import (
    make_facts,
    make_facts_with_answers,
    make_facts_with_node_class,
    make_node_class,
    make_node_class_facts,
    make_node_pool,
    make_preflight_facts,
)
from tests.unit.cli.doctor.doctor_worse_cluster import Worse


def make_facts_with_zones(**free: int) -> DoctorFacts:
    subnets = tuple(Subnet(subnet_id=z, zone=z, zone_id=z, available_ip_count=number) for z, number in free.items())
    return make_facts_with_answers(subnets=subnets)


def make_pool_requiring(**label_values: str) -> NodePool:
    """Return a NodePool that requires one value of each label; names have underscores for dashes."""
    items = (
        (KEYS.get(key, f"karpenter.k8s.aws/{key.replace('_', '-')}"), value) for key, value in label_values.items()
    )
    return make_node_pool(
        requirements=build_requirements(parse_requirement(key, "In", (value,)) for key, value in items)
    )


KEYS = {"kind": "karpenter.sh/capacity-type", "type": "node.kubernetes.io/instance-type"}
SPOT = make_pool_requiring(kind="spot", instance_category="m")
GPUS = make_pool_requiring(kind="on-demand", instance_category="g")
DENIED = ReadFailure(reason="Forbidden: no", is_denied=True)

WORSE: list[Worse] = [
    ("nodepools", make_facts({"node_pools": ()}), "warn", "there is no NodePool", "getting-started"),
    ("nodepools", make_facts({"node_pools": (make_node_pool(conditions=()),)}), "warn", "has no status", "`lifecycle`"),
    (
        "nodepools",
        make_facts(
            {
                "node_pools": (
                    make_node_pool(
                        conditions=(
                            Condition(type="NodeClassReady", status="False", message="no EC2NodeClass x"),
                            Condition(type="Ready", status="False"),
                        )
                    ),
                )
            }
        ),
        "fail",
        "NodePool default is not ready: no EC2NodeClass x",
        "joiner explain nodepool default",
    ),
    ("nodepools", make_facts({"read_errors": ("NodePool odd: Expected `int`",)}), "fail", "NodePool odd", "correct it"),
    (
        "money-limits",
        make_facts({"node_pools": (make_node_pool(meta=ObjectMeta(name="default", annotations=((LIMIT_USD, "x"),))),)}),
        "fail",
        "NodePool default: joiner.dev/limit-usd-per-hour: 'x' is not an amount",
        "correct the annotation",
    ),
    ("nodeclasses", make_facts({"node_classes": ()}), "warn", "there is no EC2NodeClass", "getting-started"),
    (
        "nodeclasses",
        make_facts({"node_classes": (make_node_class(conditions=()),)}),
        "warn",
        "EC2NodeClass default has not been resolved since its last change",
        "`catalog`",
    ),
    (
        "nodeclasses",
        make_facts(
            {
                "node_classes": (
                    make_node_class(
                        conditions=(
                            Condition(type="ValidationSucceeded", status="False", message="give ec2:RunInstances"),
                        )
                    ),
                )
            }
        ),
        "fail",
        "ValidationSucceeded: give ec2:RunInstances",
        "joiner nodeclass resolve",
    ),
    (
        "discovery",
        make_preflight_facts(of_account={"discoverable": ((), ())}),
        "warn",
        "no subnet has the tag karpenter.sh/discovery=prod",
        "create-tags --resources subnet-1 subnet-2 --tags Key=karpenter.sh/discovery,Value=prod",
    ),
    (
        "discovery",
        make_preflight_facts(of_account={"discoverable": (make_node_class_facts().answers.subnets, ())}),
        "warn",
        "no security group has the tag",
        "--resources sg-cluster",
    ),
    (
        "subnets",
        make_facts_with_answers(subnets=()),
        "fail",
        "EC2NodeClass default: spec.subnetSelectorTerms match no subnet",
        "nodeclass resolve",
    ),
    (
        "subnets",
        make_facts_with_zones(a=200),
        "warn",
        "all subnets are in one zone",
        "in two or more zones, in case a zone fails or has no capacity",
    ),
    (
        "subnets",
        make_facts_with_zones(a=0, b=0),
        "fail",
        "no subnet has a free address",
        "add subnets, or a secondary CIDR block to the VPC",
    ),
    (
        "subnets",
        make_facts_with_zones(a=200, b=3),
        "warn",
        "EC2NodeClass default: fewer than 16 free IP addresses in b",
        "add subnets",
    ),
    (
        "security-groups",
        make_facts_with_answers(security_groups=()),
        "fail",
        "securityGroupSelectorTerms match no security group",
        "nodeclass resolve",
    ),
    (
        "images",
        make_facts_with_node_class(node_class=make_node_class(resolved_images=())),
        "fail",
        "EC2NodeClass default: no image for Kubernetes 1.34",
        "nodeclass resolve",
    ),
    (
        "volumes",
        make_facts_with_node_class(snapshots=(("ami-1", "/dev/xvda", 30),)),
        "fail",
        "/dev/xvda has 20 GiB, but the image's snapshot has 30 GiB",
        "volumeSize: 30Gi or more for /dev/xvda",
    ),
    (
        "volumes",
        make_facts_with_node_class(
            node_class=make_node_class(block_devices=(BlockDevice(device_name="/dev/xvda", volume_size_gib=4),))
        ),
        "fail",
        "spec.blockDeviceMappings /dev/xvda has 4 GiB",
        "volumeSize: 8Gi",
    ),
    (
        "launch",
        make_facts_with_node_class(
            refusals=(DryRunRefusal(action="RunInstances", code="InvalidGroup.NotFound", message="none"),)
        ),
        "fail",
        "ec2:RunInstances: InvalidGroup.NotFound: none",
        "nodeclass resolve",
    ),
    (
        "quotas",
        make_facts({"node_pools": (SPOT,)}, {"quotas": {"standard spot": QuotaUsage(vcpus=0)}}),
        "fail",
        "spot: quota 0 vCPUs, 16 in use by NodePools: no more instances can start for NodePool default",
        "--quota-code L-34B43A08",
    ),
    (
        "quotas",
        make_facts(of_account={"quotas": {"standard spot": QuotaUsage(vcpus=16)}}),
        "warn",
        "16 in use by NodePools: NodePools use their other instance families",
        "L-34B43A08",
    ),
    (
        "quotas",
        make_facts({"node_pools": DENIED}, {"quotas": {"standard spot": QuotaUsage(vcpus=16)}}),
        "fail",
        "quota 16 vCPUs, 16 in use by NodePools: no more instances can start",
        "L-34B43A08",
    ),
    (
        "quotas",
        make_facts({"node_pools": DENIED}, {"quotas": {"P spot": QuotaUsage(vcpus=0)}}),
        "warn",
        "P spot: quota 0 vCPUs, 0 in use by NodePools",
        "L-7212CCBC",
    ),
    (
        "quotas",
        make_facts(of_account={"quotas": {"standard spot": QuotaUsage(vcpus=17)}}),
        "warn",
        "17 vCPUs, 16 in use",
        "L-34B43A08",
    ),
    (
        "quotas",
        make_facts(of_account={"quotas": {"standard spot": QuotaUsage(vcpus=600, used=590)}}),
        "warn",
        "quota 600 vCPUs, 16 in use by NodePools, 590 in use in the account",
        "L-34B43A08",
    ),
    (
        "quotas",
        make_facts({"node_pools": (GPUS,)}, {"quotas": {"G and VT on-demand": QuotaUsage(vcpus=64)}}),
        "warn",
        "G and VT on-demand: NodePool limits allow 400 vCPUs, quota 64 vCPUs",
        "--quota-code L-DB2E81BA --desired-value 400",
    ),
    (
        "quotas",
        make_facts(of_account={"quotas": {"standard on-demand": QuotaUsage(vcpus=64.0)}}),
        "warn",
        "NodePool limits allow 400 vCPUs, quota 64 vCPUs, 0 in use by NodePools",
        "--desired-value 400, or lower spec.limits",
    ),
]
