"""What may be wrong with NodePools, EC2NodeClasses and quotas: check, facts, level, words, remedy."""

from cli.checks.facts import Allowed, Facts, Unseen
from shared.model.ec2 import BlockDevice, Refusal, Subnet
from shared.model.nodepools import NodePool
from shared.model.objects import Condition
from shared.model.requirements import requirement, requirements
from tests.unit.doctor_facts import (
    class_facts,
    classed,
    facts,
    found,
    node_class,
    pool,
    preflight,
)
from tests.unit.doctor_worse_cluster import Worse


def zones(**free: int) -> Facts:
    subnets = tuple(Subnet(subnet_id=z, zone=z, zone_id=z, available_ip_count=number) for z, number in free.items())
    return found(subnets=subnets)


def asking(**what: str) -> NodePool:
    """Answer a NodePool that asks for one value of each label: underscores for dashes."""
    items = ((KEYS.get(key, f"karpenter.k8s.aws/{key.replace('_', '-')}"), value) for key, value in what.items())
    return pool(requirements=requirements(requirement(key, "In", (value,)) for key, value in items))


KEYS = {"kind": "karpenter.sh/capacity-type", "type": "node.kubernetes.io/instance-type"}
SPOT = asking(kind="spot", instance_category="m")
GPUS = asking(kind="on-demand", instance_category="g")
DENIED = Unseen(why="Forbidden: no", is_denied=True)

WORSE: list[Worse] = [
    ("nodepools", facts({"node_pools": ()}), "warn", "there is no NodePool", "getting-started"),
    ("nodepools", facts({"node_pools": (pool(conditions=()),)}), "warn", "has no status", "`lifecycle`"),
    (
        "nodepools",
        facts(
            {
                "node_pools": (
                    pool(
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
    ("nodepools", facts({"told": ("NodePool odd: Expected `int`",)}), "fail", "NodePool odd", "correct it"),
    ("nodeclasses", facts({"node_classes": ()}), "warn", "there is no EC2NodeClass", "getting-started"),
    ("nodeclasses", facts({"node_classes": (node_class(conditions=()),)}), "warn", "not looked at", "`catalog`"),
    (
        "nodeclasses",
        facts(
            {
                "node_classes": (
                    node_class(
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
        preflight(of_account={"discovered": ((), ())}),
        "warn",
        "no subnet has the tag karpenter.sh/discovery=prod",
        "create-tags --resources subnet-1 subnet-2 --tags Key=karpenter.sh/discovery,Value=prod",
    ),
    (
        "discovery",
        preflight(of_account={"discovered": (class_facts().found.subnets, ())}),
        "warn",
        "no security group has the tag",
        "--resources sg-cluster",
    ),
    ("subnets", found(subnets=()), "fail", "spec.subnetSelectorTerms matched nothing", "nodeclass resolve"),
    ("subnets", zones(a=200), "warn", "all subnets are in one zone", "two zones"),
    ("subnets", zones(a=0, b=0), "fail", "no subnet has a free address", "secondary block"),
    ("subnets", zones(a=200, b=3), "warn", "few addresses left in b", "add subnets"),
    ("security-groups", found(security_groups=()), "fail", "matched nothing", "nodeclass resolve"),
    (
        "images",
        classed(node_class=node_class(resolved_images=())),
        "fail",
        "there is no image for Kubernetes 1.34",
        "nodeclass resolve",
    ),
    (
        "volumes",
        classed(snapshots=(("ami-1", "/dev/xvda", 30),)),
        "fail",
        "/dev/xvda has 20 GiB, and the image's snapshot 30 GiB",
        "volumeSize: 30Gi or more for /dev/xvda",
    ),
    (
        "volumes",
        classed(node_class=node_class(block_devices=(BlockDevice(device_name="/dev/xvda", volume_size_gib=4),))),
        "fail",
        "spec.blockDeviceMappings /dev/xvda has 4 GiB",
        "volumeSize: 8Gi",
    ),
    (
        "launch",
        classed(refusals=(Refusal(action="RunInstances", code="InvalidGroup.NotFound", message="none"),)),
        "fail",
        "ec2:RunInstances: InvalidGroup.NotFound: none",
        "nodeclass resolve",
    ),
    (
        "quotas",
        facts({"node_pools": (SPOT,)}, {"quotas": {"standard spot": Allowed(vcpus=0)}}),
        "fail",
        "spot: the account may run 0 vCPUs, 16 in use by NodePools: nothing more starts for NodePool default",
        "--quota-code L-34B43A08",
    ),
    (
        "quotas",
        facts(of_account={"quotas": {"standard spot": Allowed(vcpus=16)}}),
        "warn",
        "16 in use by NodePools: NodePools get what else they allow",
        "L-34B43A08",
    ),
    (
        "quotas",
        facts({"node_pools": DENIED}, {"quotas": {"standard spot": Allowed(vcpus=16)}}),
        "fail",
        "nothing more starts",
        "L-34B43A08",
    ),
    (
        "quotas",
        facts({"node_pools": DENIED}, {"quotas": {"P spot": Allowed(vcpus=0)}}),
        "warn",
        "P spot: the account may run 0 vCPUs",
        "L-7212CCBC",
    ),
    (
        "quotas",
        facts(of_account={"quotas": {"standard spot": Allowed(vcpus=17)}}),
        "warn",
        "17 vCPUs, 16 in use",
        "L-34B43A08",
    ),
    (
        "quotas",
        facts(of_account={"quotas": {"standard spot": Allowed(vcpus=600, used=590)}}),
        "warn",
        "600 vCPUs, 16 in use by NodePools, 590 in use by all",
        "L-34B43A08",
    ),
    (
        "quotas",
        facts({"node_pools": (GPUS,)}, {"quotas": {"G and VT on-demand": Allowed(vcpus=64)}}),
        "warn",
        "G and VT on-demand: NodePools may ask for 400 vCPUs, the account may run 64",
        "--quota-code L-DB2E81BA --desired-value 400",
    ),
    (
        "quotas",
        facts(of_account={"quotas": {"standard on-demand": Allowed(vcpus=64.0)}}),
        "warn",
        "NodePools may ask for 400 vCPUs, the account may run 64",
        "--desired-value 400, or lower spec.limits",
    ),
]
