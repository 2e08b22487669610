"""Facts of a healthy installation, for tests that change one of them for the worse."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from cli.facts.model import (
    AccountFacts,
    ApiServerResponse,
    ControlPlane,
    DeploymentFacts,
    DoctorFacts,
    EventRule,
    FunctionFacts,
    InvocationCounts,
    KubernetesFacts,
    NodeClassFacts,
    QueueFacts,
    QuotaUsage,
    ScheduleFacts,
    StackFacts,
    TopicFacts,
)
from shared.crds.definitions import load_shipped_crds
from shared.model.cloud_provider.node_class_findings import NodeClassAnswers
from shared.model.core.metadata import Condition, ObjectMeta
from shared.model.core.resources import build_resources
from shared.model.ec2.account import Image, SecurityGroup, Subnet
from shared.model.ec2.instance import Instance
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.karpenter.node_class import EC2NodeClass, ResolvedImage
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.workloads import Namespace
from shared.settings import Settings

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
READY = (Condition(type="Ready", status="True"),)
ROLE = "arn:aws:iam::1:role/"
QUEUE = "arn:aws:sqs:us-east-1:1:prod-joiner-interruption"
TOPIC = "arn:aws:sns:us-east-1:111122223333:costs"
RULE = "arn:aws:events:us-east-1:1:rule/spot"
NAMES = ("provision", "lifecycle", "disrupt", "interrupt", "catalog")


def make_queue_policy(rule: str = RULE) -> str:
    allowed = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Condition": {"ArnEquals": {"aws:SourceArn": rule}},
    }
    return json.dumps({"Statement": [allowed]})


def make_node_class(**parts: Any) -> EC2NodeClass:
    defaults: dict[str, Any] = {
        "meta": ObjectMeta(name="default"),
        "ami_family": "AL2023",
        "conditions": READY,
        "resolved_images": (ResolvedImage(image_id="ami-1"),),
    }
    return EC2NodeClass(**(defaults | parts))


def make_node_class_facts(**parts: Any) -> NodeClassFacts:
    subnets = tuple(Subnet(subnet_id=f"s-{zone}", zone=zone, zone_id=zone, available_ip_count=200) for zone in "ab")
    image = Image(image_id="ami-1", name="al2023", architecture="x86_64", created_at=LONG_AGO)
    answers = NodeClassAnswers(
        subnets=subnets,
        security_groups=(SecurityGroup(group_id="sg-1", name="nodes"),),
        images=((image, ()),),
        kubernetes_version="1.34",
    )
    defaults: dict[str, Any] = {
        "node_class": make_node_class(),
        "answers": answers,
        "refusals": (),
        "snapshots": (("ami-1", "/dev/xvda", 8),),
        "role_arn": f"{ROLE}nodes",
    }
    return NodeClassFacts(**(defaults | parts))


def make_function_facts(name: str, **parts: Any) -> FunctionFacts:
    defaults: dict[str, Any] = {
        "name": name,
        "role_arn": f"{ROLE}{name}",
        "state": "Active",
        "last_update_status": "Successful",
        "is_in_vpc": False,
        "log_group": f"/joiner/{name}",
        "settings": Settings(cluster_name="prod", region="us-east-1"),
        "invocation_counts": InvocationCounts(invocations=15, errors=0),
    }
    return FunctionFacts(**(defaults | parts))


def make_stack_facts(**parts: Any) -> StackFacts:
    defaults: dict[str, Any] = {
        "name": "joiner-prod",
        "status": "UPDATE_COMPLETE",
        "created_at": LONG_AGO,
        "functions": tuple(map(make_function_facts, NAMES)),
        "schedules": (ScheduleFacts(name="tick", is_enabled=True),),
        "queues": (
            QueueFacts(name="prod-joiner-interruption", arn=QUEUE, message_count=0, policy=make_queue_policy()),
            QueueFacts(name="prod-joiner-dead-letters", arn="arn:dead", message_count=0, policy=""),
        ),
        "rules": (EventRule(name="spot", arn=RULE, is_enabled=True, target_arns=(QUEUE,)),),
        "catalog_times": (NOW - timedelta(minutes=30), NOW - timedelta(hours=3)),
        "topic": TopicFacts(arn=TOPIC, confirmed_subscriptions=2),
    }
    return StackFacts(**(defaults | parts))


def make_control_plane(**parts: Any) -> ControlPlane:
    defaults: dict[str, Any] = {
        "status": "ACTIVE",
        "version": "1.34",
        "endpoint": "https://prod.eks",
        "authentication_mode": "API",
        "is_public": True,
        "is_private": True,
        "public_cidrs": ("0.0.0.0/0",),
        "has_auto_mode": False,
        "log_types": (),
        "subnet_ids": ("subnet-1", "subnet-2"),
        "security_group_id": "sg-cluster",
    }
    return ControlPlane(**(defaults | parts))


def make_account_facts(**parts: Any) -> AccountFacts:
    defaults: dict[str, Any] = {
        "region": "us-east-1",
        "cluster": "prod",
        "caller": "arn:aws:iam::1:user/me",
        "clock_offset_seconds": 0.4,
        "control_plane": make_control_plane(),
        "access_entries": tuple(f"{ROLE}{name}" for name in (*NAMES, "nodes")),
        "node_classes": (make_node_class_facts(),),
        "discoverable": ((), ()),
        "instances": (make_instance("i-1"),),
        "launch_templates": (),
        "quotas": {f"standard {kind}": QuotaUsage(vcpus=640) for kind in ("on-demand", "spot")},
        "stack": make_stack_facts(),
    }
    return AccountFacts(**(defaults | parts))


def make_instance(name: str, **parts: Any) -> Instance:
    defaults: dict[str, Any] = {
        "instance_id": name,
        "instance_type": "m5.large",
        "zone": "a",
        "subnet_id": "s-a",
        "image_id": "ami-1",
        "state": "running",
        "launched_at": LONG_AGO,
        "capacity_type": "spot",
    }
    return Instance(**(defaults | parts))


def make_claim(name: str, instance_id: str, **meta: Any) -> NodeClaim:
    defaults: dict[str, Any] = {"created_at": LONG_AGO, "labels": (("karpenter.sh/nodepool", "default"),)}
    ref = NodeClassRef(name="default")
    return NodeClaim(
        meta=ObjectMeta(name=name, **(defaults | meta)), node_class=ref, provider_id=f"aws:///a/{instance_id}"
    )


def make_node(cpu: int, kind: str, instance_type: str = "m5.large") -> Node:
    labels = (
        ("karpenter.sh/capacity-type", kind),
        ("karpenter.sh/nodepool", "default"),
        ("node.kubernetes.io/instance-type", instance_type),
    )
    meta = ObjectMeta(name=f"n-{cpu}", labels=labels, created_at=NOW)
    return Node(meta=meta, capacity=build_resources({"cpu": cpu * 1000}), provider_id="aws:///a/i-1")


def make_node_pool(**parts: Any) -> NodePool:
    defaults: dict[str, Any] = {
        "meta": ObjectMeta(name="default"),
        "node_class": NodeClassRef(name="default"),
        "conditions": READY,
        "limits": build_resources({"cpu": 400_000}),
    }
    return NodePool(**(defaults | parts))


def make_kubernetes_facts(**parts: Any) -> KubernetesFacts:
    defaults: dict[str, Any] = {
        "source": "https://prod.eks",
        "response": ApiServerResponse(version="1.34.1", seconds=0.1, clock_offset_seconds=0.0),
        "nodes": (make_node(16, "spot"),),
        "node_pools": (make_node_pool(),),
        "node_classes": (make_node_class(),),
        "node_claims": (make_claim("c-1", "i-1"),),
        "namespaces": (Namespace(name="kube-system"),),
        "crds": load_shipped_crds(),
        "deployments": (DeploymentFacts(namespace="kube-system", name="coredns", images=("coredns:1",), replicas=2),),
        "has_role_binding": True,
        "pause_events": (),
    }
    return KubernetesFacts(**(defaults | parts))


def make_facts(of_cluster: Mapping[str, Any] | None = None, of_account: Mapping[str, Any] | None = None) -> DoctorFacts:
    """Return a healthy installation with these parts replaced."""
    return DoctorFacts(
        now=NOW,
        kubernetes=make_kubernetes_facts(**(of_cluster or {})),
        account=make_account_facts(**(of_account or {})),
        shipped_crds=load_shipped_crds(),
    )


def make_preflight_facts(
    of_cluster: Mapping[str, Any] | None = None, of_account: Mapping[str, Any] | None = None
) -> DoctorFacts:
    """Return a cluster in which nothing is installed yet."""
    bare: dict[str, Any] = {
        "node_pools": (),
        "node_classes": (),
        "node_claims": (),
        "crds": (),
        "has_role_binding": False,
    }
    empty_facts: dict[str, Any] = {"stack": None, "node_classes": (), "instances": (), "access_entries": ()}
    tagged = {
        "discoverable": (make_node_class_facts().answers.subnets, make_node_class_facts().answers.security_groups)
    }
    return make_facts(bare | dict(of_cluster or {}), empty_facts | tagged | dict(of_account or {}))


def make_facts_with_stack(**parts: Any) -> DoctorFacts:
    """Return a healthy installation with these parts of the stack replaced."""
    return make_facts(of_account={"stack": make_stack_facts(**parts)})


def make_facts_with_node_class(**parts: Any) -> DoctorFacts:
    """Return a healthy installation with these facts of its node class replaced."""
    return make_facts(of_account={"node_classes": (make_node_class_facts(**parts),)})


def make_facts_with_answers(**parts: Any) -> DoctorFacts:
    """Return a healthy installation with these answers of the account about its node class replaced."""
    return make_facts_with_node_class(answers=replace(make_node_class_facts().answers, **parts))
