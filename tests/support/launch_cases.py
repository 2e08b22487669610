"""A small market and a node class in it, for the launch tests."""

from datetime import UTC, datetime, timedelta
from typing import Any

from shared.cycles.setup.decision_driver import DecisionDriver, run_decision
from shared.decide.launch.fleets.launch_planning import LaunchPlan
from shared.decide.launch.fleets.launch_retries import reserve_limits
from shared.decide.launch.instance_types.capacity import CapacitySettings
from shared.decide.launch.instance_types.instance_types import build_instance_types
from shared.model.cloud_provider.instance_type import Catalog, InstanceType
from shared.model.cloud_provider.regional_offerings import RegionalOfferings
from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.core.metadata import Condition, ObjectMeta
from shared.model.core.requirements import Requirement, build_requirements, parse_requirement
from shared.model.core.resources import Resources, parse_resources
from shared.model.ec2.account import ControlPlaneFacts, SecurityGroup, Subnet
from shared.model.ec2.instance_type_info import InstanceTypeInfo, NetworkCard, SpotPrice
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.karpenter.node_class import EC2NodeClass, KubeletConfiguration, ResolvedImage
from shared.ports.storage import FencingToken
from shared.ports.world import World

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
FACTS = ControlPlaneFacts(
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
        requirements=build_requirements((Requirement(key=labels.ARCH, values=frozenset((arch,))),)),
    )
    for arch in ("amd64", "arm64")
)


def make_instance_type_info(
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
        network_cards=(NetworkCard(index=0, maximum_interfaces=enis, baseline_gbps=0.75, peak_gbps=10),),
        network_performance="Up to 10 Gigabit",
    )


INFOS = (
    make_instance_type_info("m5.large", 2, 8),
    make_instance_type_info("m5.xlarge", 4, 16, enis=4, ips=15),
    make_instance_type_info("c5.xlarge", 4, 8, enis=4, ips=15),
    make_instance_type_info("m6g.large", 2, 8, arch="arm64"),
    make_instance_type_info("m5.metal", 96, 384, enis=15, ips=50),
)
PRICES = {"m5.large": 0.1, "m5.xlarge": 0.2, "c5.xlarge": 0.18, "m6g.large": 0.08, "m5.metal": 4.6}
OFFERINGS = tuple(sorted((one.name, zone) for one in INFOS for zone in ("us-east-1a", "us-east-1b", "us-east-1c")))
MARKET = RegionalOfferings(
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


def make_node_class(**fields: Any) -> EC2NodeClass:
    ready = Condition(type="Ready", status="True", observed_generation=1)
    defaults: dict[str, Any] = {
        "meta": ObjectMeta(name="default", generation=1),
        "ami_family": "AL2023",
        "resolved_subnets": SUBNETS,
        "resolved_security_groups": (SecurityGroup(group_id="sg-1", name="nodes"),),
        "resolved_images": IMAGES,
        "resolved_profile": "profile",
        "conditions": (ready,),
    }
    return EC2NodeClass(**(defaults | fields))


def build_types_by_name(
    node_class: EC2NodeClass | None = None, settings: CapacitySettings | None = None
) -> dict[str, InstanceType]:
    instance_types = build_instance_types(
        INFOS, MARKET, node_class or make_node_class(), settings or CapacitySettings()
    )
    return {instance_type.name: instance_type for instance_type in instance_types}


def make_kubelet_node_class(**fields: Any) -> EC2NodeClass:
    return make_node_class(kubelet=KubeletConfiguration(**fields))


def make_claim(
    name: str, *, cpu: str = "1", capacity_types: tuple[str, ...] = ("on-demand", "spot"), **fields: Any
) -> NodeClaim:
    requirements = (
        parse_requirement(labels.CAPACITY_TYPE, "In", capacity_types),
        parse_requirement(labels.ARCH, "In", ("amd64",)),
        parse_requirement(labels.NODEPOOL, "In", ("default",)),
    )
    defaults: dict[str, Any] = {
        "meta": ObjectMeta(name=name, uid=f"uid-{name}", created_at=NOW, labels=((labels.NODEPOOL, "default"),)),
        "node_class": NodeClassRef(name="default"),
        "requirements": build_requirements(requirements),
        "requests": parse_resources({"cpu": cpu, "memory": "1Gi", "pods": "1"}),
    }
    return NodeClaim(**(defaults | fields))


def make_cluster(*claims: NodeClaim, **fields: Any) -> ClusterSnapshot:
    node_class = make_node_class()
    defaults: dict[str, Any] = {
        "taken_at": NOW,
        "node_claims": claims,
        "node_classes": (node_class,),
        "catalog": Catalog(
            region="us-east-1",
            instance_types=(),
            by_node_class=(("default", build_instance_types(INFOS, MARKET, node_class, CapacitySettings())),),
        ),
        "facts": FACTS,
    }
    return ClusterSnapshot(**(defaults | fields))


def get_time_after(seconds: int) -> datetime:
    return NOW + timedelta(seconds=seconds)


def get_amounts(resources: Resources) -> dict[str, int]:
    return dict(resources.amounts)


def write_limit_reservations(
    plan: LaunchPlan, cluster: ClusterSnapshot, world: World, fence: FencingToken | None
) -> LaunchPlan:
    """Reserve the limits of *plan* in *world*; return it without launches that lost a race."""
    return run_decision(reserve_limits(plan, cluster), DecisionDriver(world, fence, cluster).perform_request)
