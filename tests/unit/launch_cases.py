"""A small market and a node class in it, for the tests of the launch room."""

from datetime import UTC, datetime, timedelta
from typing import Any

from shared.launch.type_room import Knobs
from shared.launch.types import Market, instance_types
from shared.model import labels
from shared.model.catalogue import Catalogue, InstanceType
from shared.model.cluster import Cluster
from shared.model.ec2 import ClusterFacts, InstanceTypeInfo, NetworkCard, SecurityGroup, SpotPrice, Subnet
from shared.model.nodeclasses import EC2NodeClass, Kubelet, ResolvedImage
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Condition, Meta
from shared.model.requirements import Requirement, requirement, requirements
from shared.model.resources import Resources, parse_resources

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
FACTS = ClusterFacts(
    name="c", endpoint="https://k", certificate_authority="Q0E=", version="1.34", service_cidr="10.100.0.0/16"
)
SUBNETS = (
    Subnet(subnet_id="subnet-a", zone="us-east-1a", zone_id="use1-az1", available_ip_count=9),
    Subnet(subnet_id="subnet-b", zone="us-east-1b", zone_id="use1-az2", available_ip_count=5),
    Subnet(subnet_id="subnet-z", zone="us-east-1a", zone_id="use1-az1", available_ip_count=1),
)
IMAGES = tuple(
    ResolvedImage(
        image_id=f"ami-{arch}",
        requirements=requirements((Requirement(key=labels.ARCH, values=frozenset((arch,))),)),
    )
    for arch in ("amd64", "arm64")
)


def info(
    name: str, vcpus: int, memory_gib: float, *, enis: int = 3, ips: int = 10, arch: str = "x86_64"
) -> InstanceTypeInfo:
    return InstanceTypeInfo(
        name=name,
        architectures=(arch,),
        usage_classes=("on-demand", "spot"),
        vcpus=vcpus,
        memory_mib=int(memory_gib * 1024),
        maximum_interfaces=enis,
        ipv4_per_interface=ips,
        cpu_manufacturer="Intel",
        hypervisor="nitro",
        network_cards=(NetworkCard(index=0, maximum_interfaces=enis, baseline_gbps=0.75),),
    )


INFOS = (
    info("m5.large", 2, 8),
    info("m5.xlarge", 4, 16, enis=4, ips=15),
    info("c5.xlarge", 4, 8, enis=4, ips=15),
    info("m6g.large", 2, 8, arch="arm64"),
    info("m5.metal", 96, 384, enis=15, ips=50),
)
PRICES = {"m5.large": 0.1, "m5.xlarge": 0.2, "c5.xlarge": 0.18, "m6g.large": 0.08, "m5.metal": 4.6}
OFFERINGS = tuple(sorted((one.name, zone) for one in INFOS for zone in ("us-east-1a", "us-east-1b", "us-east-1c")))
MARKET = Market(
    region="us-east-1",
    offerings=OFFERINGS,
    on_demand=PRICES,
    spot=tuple(
        SpotPrice(
            instance_type=name, zone=zone, price_usd_per_hour=price * (0.3 if zone.endswith("a") else 0.4), at=NOW
        )
        for name, price in sorted(PRICES.items())
        for zone in ("us-east-1a", "us-east-1b")
    ),
)


def node_class(**fields: Any) -> EC2NodeClass:
    ready = Condition(type="Ready", status="True", observed_generation=1)
    defaults: dict[str, Any] = {
        "meta": Meta(name="default", generation=1),
        "ami_family": "AL2023",
        "resolved_subnets": SUBNETS,
        "resolved_security_groups": (SecurityGroup(group_id="sg-1", name="nodes"),),
        "resolved_images": IMAGES,
        "resolved_profile": "profile",
        "conditions": (ready,),
    }
    return EC2NodeClass(**(defaults | fields))


def types(some: EC2NodeClass | None = None, knobs: Knobs | None = None) -> dict[str, InstanceType]:
    made = instance_types(INFOS, MARKET, some or node_class(), knobs or Knobs())
    return {one.name: one for one in made}


def kubelet(**fields: Any) -> EC2NodeClass:
    return node_class(kubelet=Kubelet(**fields))


def claim(
    name: str, *, cpu: str = "1", capacity_types: tuple[str, ...] = ("on-demand", "spot"), **fields: Any
) -> NodeClaim:
    wanted = (
        requirement(labels.CAPACITY_TYPE, "In", capacity_types),
        requirement(labels.ARCH, "In", ("amd64",)),
        requirement(labels.NODEPOOL, "In", ("default",)),
    )
    defaults: dict[str, Any] = {
        "meta": Meta(name=name, uid=f"uid-{name}", created_at=NOW, labels=((labels.NODEPOOL, "default"),)),
        "node_class": NodeClassRef(name="default"),
        "requirements": requirements(wanted),
        "requests": parse_resources({"cpu": cpu, "memory": "1Gi", "pods": "1"}),
    }
    return NodeClaim(**(defaults | fields))


def cluster(*claims: NodeClaim, **fields: Any) -> Cluster:
    some = node_class()
    defaults: dict[str, Any] = {
        "taken_at": NOW,
        "node_claims": claims,
        "node_classes": (some,),
        "catalogue": Catalogue(
            region="us-east-1",
            instance_types=(),
            by_node_class=(("default", instance_types(INFOS, MARKET, some, Knobs())),),
        ),
        "facts": FACTS,
    }
    return Cluster(**(defaults | fields))


def later(seconds: int) -> datetime:
    return NOW + timedelta(seconds=seconds)


def amounts(some: Resources) -> dict[str, int]:
    return dict(some.amounts)
