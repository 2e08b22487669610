"""Facts of a healthy installation, for tests that make one of them worse."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from cli.checks.facts import (
    Account,
    Allowed,
    Answer,
    Called,
    ClassFacts,
    ControlPlane,
    Facts,
    FunctionFacts,
    Kubernetes,
    QueueFacts,
    Rule,
    Schedule,
    Stack,
    Topic,
    Workload,
)
from cli.doctor_cluster import shipped
from shared.launch.nodeclass import Found
from shared.model.cluster import Namespace
from shared.model.ec2 import Image, Instance, SecurityGroup, Subnet
from shared.model.nodeclasses import EC2NodeClass, ResolvedImage
from shared.model.nodepools import NodePool
from shared.model.nodes import Node, NodeClaim, NodeClassRef
from shared.model.objects import Condition, Meta
from shared.model.resources import resources
from shared.settings import Settings

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
READY = (Condition(type="Ready", status="True"),)
ROLE = "arn:aws:iam::1:role/"
QUEUE = "arn:aws:sqs:us-east-1:1:prod-joiner-interruption"
TOPIC = "arn:aws:sns:us-east-1:1:costs"
RULE = "arn:aws:events:us-east-1:1:rule/spot"
NAMES = ("provision", "lifecycle", "disrupt", "interrupt", "catalog")


def policy(rule: str = RULE) -> str:
    allowed = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Condition": {"ArnEquals": {"aws:SourceArn": rule}},
    }
    return json.dumps({"Statement": [allowed]})


def node_class(**parts: Any) -> EC2NodeClass:
    known: dict[str, Any] = {
        "meta": Meta(name="default"),
        "ami_family": "AL2023",
        "conditions": READY,
        "resolved_images": (ResolvedImage(image_id="ami-1"),),
    }
    return EC2NodeClass(**(known | parts))


def class_facts(**parts: Any) -> ClassFacts:
    subnets = tuple(Subnet(subnet_id=f"s-{zone}", zone=zone, zone_id=zone, available_ip_count=200) for zone in "ab")
    image = Image(image_id="ami-1", name="al2023", architecture="x86_64", created_at=LONG_AGO)
    found = Found(
        subnets=subnets,
        security_groups=(SecurityGroup(group_id="sg-1", name="nodes"),),
        images=((image, ()),),
        kubernetes_version="1.34",
    )
    known: dict[str, Any] = {
        "node_class": node_class(),
        "found": found,
        "refusals": (),
        "snapshots": (("ami-1", "/dev/xvda", 8),),
        "role_arn": f"{ROLE}nodes",
    }
    return ClassFacts(**(known | parts))


def function(name: str, **parts: Any) -> FunctionFacts:
    known: dict[str, Any] = {
        "name": name,
        "role_arn": f"{ROLE}{name}",
        "state": "Active",
        "update": "Successful",
        "is_in_vpc": False,
        "log_group": f"/joiner/{name}",
        "settings": Settings(cluster_name="prod", region="us-east-1"),
        "called": Called(calls=15, errors=0),
    }
    return FunctionFacts(**(known | parts))


def stack(**parts: Any) -> Stack:
    known: dict[str, Any] = {
        "name": "joiner-prod",
        "status": "UPDATE_COMPLETE",
        "since": LONG_AGO,
        "functions": tuple(map(function, NAMES)),
        "schedules": (Schedule(name="tick", is_enabled=True),),
        "queues": (
            QueueFacts(name="prod-joiner-interruption", arn=QUEUE, waiting=0, policy=policy()),
            QueueFacts(name="prod-joiner-dead-letters", arn="arn:dead", waiting=0, policy=""),
        ),
        "rules": (Rule(name="spot", arn=RULE, is_enabled=True, targets=(QUEUE,)),),
        "catalogue": (NOW - timedelta(minutes=30), NOW - timedelta(hours=3)),
        "topic": Topic(arn=TOPIC, listeners=2),
    }
    return Stack(**(known | parts))


def plane(**parts: Any) -> ControlPlane:
    known: dict[str, Any] = {
        "status": "ACTIVE",
        "version": "1.34",
        "endpoint": "https://prod.eks",
        "authentication": "API",
        "is_public": True,
        "is_private": True,
        "public_cidrs": ("0.0.0.0/0",),
        "has_auto_mode": False,
        "logs": (),
        "subnet_ids": ("subnet-1", "subnet-2"),
        "security_group_id": "sg-cluster",
    }
    return ControlPlane(**(known | parts))


def account(**parts: Any) -> Account:
    known: dict[str, Any] = {
        "region": "us-east-1",
        "cluster": "prod",
        "caller": "arn:aws:iam::1:user/me",
        "ahead_seconds": 0.4,
        "plane": plane(),
        "entries": tuple(f"{ROLE}{name}" for name in (*NAMES, "nodes")),
        "classes": (class_facts(),),
        "discovered": ((), ()),
        "instances": (instance("i-1"),),
        "templates": (),
        "quotas": {f"standard {kind}": Allowed(vcpus=640) for kind in ("on-demand", "spot")},
        "stack": stack(),
    }
    return Account(**(known | parts))


def instance(name: str, **parts: Any) -> Instance:
    known: dict[str, Any] = {
        "instance_id": name,
        "instance_type": "m5.large",
        "zone": "a",
        "subnet_id": "s-a",
        "image_id": "ami-1",
        "state": "running",
        "launched_at": LONG_AGO,
        "capacity_type": "spot",
    }
    return Instance(**(known | parts))


def claim(name: str, instance_id: str, **meta: Any) -> NodeClaim:
    known: dict[str, Any] = {"created_at": LONG_AGO, "labels": (("karpenter.sh/nodepool", "default"),)}
    ref = NodeClassRef(name="default")
    return NodeClaim(meta=Meta(name=name, **(known | meta)), node_class=ref, provider_id=f"aws:///a/{instance_id}")


def node(cpu: int, kind: str, instance_type: str = "m5.large") -> Node:
    labels = (
        ("karpenter.sh/capacity-type", kind),
        ("karpenter.sh/nodepool", "default"),
        ("node.kubernetes.io/instance-type", instance_type),
    )
    meta = Meta(name=f"n-{cpu}", labels=labels, created_at=NOW)
    return Node(meta=meta, capacity=resources({"cpu": cpu * 1000}), provider_id="aws:///a/i-1")


def pool(**parts: Any) -> NodePool:
    known: dict[str, Any] = {
        "meta": Meta(name="default"),
        "node_class": NodeClassRef(name="default"),
        "conditions": READY,
        "limits": resources({"cpu": 400_000}),
    }
    return NodePool(**(known | parts))


def kubernetes(**parts: Any) -> Kubernetes:
    known: dict[str, Any] = {
        "where": "https://prod.eks",
        "answer": Answer(version="1.34.1", seconds=0.1, ahead_seconds=0.0),
        "nodes": (node(16, "spot"),),
        "node_pools": (pool(),),
        "node_classes": (node_class(),),
        "node_claims": (claim("c-1", "i-1"),),
        "namespaces": (Namespace(name="kube-system"),),
        "definitions": shipped(),
        "workloads": (Workload(namespace="kube-system", name="coredns", images=("coredns:1",), replicas=2),),
        "is_bound": True,
        "notices": (),
    }
    return Kubernetes(**(known | parts))


def facts(of_cluster: Mapping[str, Any] | None = None, of_account: Mapping[str, Any] | None = None) -> Facts:
    """A healthy whole, with these parts instead."""
    return Facts(
        now=NOW, kubernetes=kubernetes(**(of_cluster or {})), account=account(**(of_account or {})), shipped=shipped()
    )


def preflight(of_cluster: Mapping[str, Any] | None = None, of_account: Mapping[str, Any] | None = None) -> Facts:
    """A cluster in which nothing was installed yet."""
    bare: dict[str, Any] = {
        "node_pools": (),
        "node_classes": (),
        "node_claims": (),
        "definitions": (),
        "is_bound": False,
    }
    nothing: dict[str, Any] = {"stack": None, "classes": (), "instances": (), "entries": ()}
    tagged = {"discovered": (class_facts().found.subnets, class_facts().found.security_groups)}
    return facts(bare | dict(of_cluster or {}), nothing | tagged | dict(of_account or {}))


def stacked(**parts: Any) -> Facts:
    """A healthy whole, with these parts of the installation."""
    return facts(of_account={"stack": stack(**parts)})


def classed(**parts: Any) -> Facts:
    """A healthy whole, with these facts of its node class."""
    return facts(of_account={"classes": (class_facts(**parts),)})


def found(**parts: Any) -> Facts:
    """A healthy whole, with these answers of the account about its node class."""
    return classed(found=replace(class_facts().found, **parts))
