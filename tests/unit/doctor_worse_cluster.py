"""What may be wrong with the way to a cluster, and with the cluster: check, facts, level, words, remedy."""

from typing import Any

import msgspec

from cli.checks.facts import Answer, Facts, Unseen, Workload
from cli.doctor_cluster import shipped
from shared.settings import Settings
from tests.unit.doctor_facts import (
    NAMES,
    ROLE,
    facts,
    function,
    plane,
    preflight,
    stacked,
)

DEAF = Unseen(why="Unreachable: nobody")
Worse = tuple[str, Facts, str, str, str]


def workload(name: str, image: str = "x", replicas: int = 2) -> dict[str, Any]:
    return {"workloads": (Workload(namespace="ops", name=name, images=(image,), replicas=replicas),)}


def older(name: str) -> tuple[Any, ...]:
    """Our definitions, one without its version and with a field less."""
    every: list[Any] = [msgspec.json.decode(msgspec.json.encode(one)) for one in shipped()]
    [one] = [each for each in every if each["metadata"]["name"] == name]
    one["spec"]["versions"][0]["name"] = "v1beta1"
    return tuple(every)


def poorer(name: str) -> tuple[Any, ...]:
    every: list[Any] = [msgspec.json.decode(msgspec.json.encode(one)) for one in shipped()]
    [one] = [each for each in every if each["metadata"]["name"] == name]
    del one["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["weight"]
    return tuple(every)


def settings_of(**parts: str) -> dict[str, Any]:
    told = Settings(cluster_name="prod", region="us-east-1", **parts)
    return {"functions": tuple(function(name, settings=told) for name in NAMES)}


WORSE: list[Worse] = [
    ("api-server", facts({"answer": DEAF}), "fail", "did not answer: Unreachable: nobody", "from within the VPC"),
    (
        "api-server",
        facts({"answer": Answer(version="1.34", seconds=4.0, ahead_seconds=None)}),
        "warn",
        "in 4.00 s",
        "request latencies",
    ),
    ("clock", facts(of_account={"ahead_seconds": 400.0}), "fail", "AWS is 400 s ahead of this machine", "NTP"),
    ("clock", facts(of_account={"ahead_seconds": -40.0}), "warn", "AWS is 40 s behind this machine", "NTP"),
    (
        "clock",
        facts({"answer": Answer(version="1", seconds=0.1, ahead_seconds=-301.0)}),
        "fail",
        "the API server is 301 s behind this machine: signatures are refused",
        "NTP",
    ),
    (
        "endpoint",
        facts(of_account={"plane": plane(is_public=False)}),
        "fail",
        "no public endpoint, and the functions are outside the VPC",
        "joiner:network=private",
    ),
    (
        "endpoint",
        facts(of_account={"plane": plane(public_cidrs=("1.2.3.4/32",))}),
        "fail",
        "open to 1.2.3.4/32 only",
        "joiner:network=private",
    ),
    (
        "endpoint",
        preflight(of_account={"plane": plane(is_public=False)}),
        "warn",
        "functions have no fixed address",
        "joiner:network=private",
    ),
    ("cluster", facts(of_account={"plane": None}), "fail", "us-east-1 has no cluster prod", "--region"),
    ("cluster", facts(of_account={"plane": plane(status="CREATING")}), "warn", "prod is CREATING", "wait"),
    (
        "authentication",
        facts(of_account={"plane": plane(authentication="CONFIG_MAP")}),
        "fail",
        "access entries do not count",
        "authenticationMode=API_AND_CONFIG_MAP --name prod",
    ),
    (
        "access-entries",
        facts(of_account={"entries": (f"{ROLE}nodes",)}),
        "fail",
        "no access entry for the role of provision, lifecycle",
        "deploy the stack again",
    ),
    (
        "access-entries",
        facts(of_account={"entries": tuple(f"{ROLE}{name}" for name in NAMES)}),
        "warn",
        f"{ROLE}nodes has no access entry",
        f"create-access-entry --cluster-name prod --type EC2_LINUX --principal-arn {ROLE}nodes",
    ),
    ("definitions", facts({"definitions": ()}), "fail", "not defined: ec2nodeclasses", "deploy the stack again"),
    (
        "definitions",
        facts({"definitions": older("nodepools.karpenter.sh")}),
        "fail",
        "nodepools.karpenter.sh: it does not serve v1",
        "upgrade",
    ),
    (
        "definitions",
        facts({"definitions": poorer("nodepools.karpenter.sh")}),
        "warn",
        "nodepools.karpenter.sh does not know spec.weight",
        "upgrade",
    ),
    ("rights", facts({"is_bound": False}), "fail", "no ClusterRoleBinding joiner-functions", "deploy the stack again"),
    (
        "autoscalers",
        facts(workload("karpenter")),
        "fail",
        "Deployment ops/karpenter is a Karpenter with 2 replicas",
        "kubectl -n ops scale deployment karpenter --replicas 0",
    ),
    (
        "autoscalers",
        facts(workload("k", "public.ecr.aws/karpenter/controller:1.5")),
        "fail",
        "ops/k is a Karpenter",
        "--replicas 0",
    ),
    ("autoscalers", preflight(workload("karpenter")), "warn", "is a Karpenter", "just before you deploy"),
    ("autoscalers", facts(workload("cluster-autoscaler")), "warn", "a Cluster Autoscaler", "--replicas 0, once"),
    (
        "autoscalers",
        facts(of_account={"plane": plane(has_auto_mode=True)}),
        "warn",
        "EKS Auto Mode is on",
        "select different pods",
    ),
    (
        "scheduler-log",
        stacked(**settings_of(reaction="logs")),
        "fail",
        "the scheduler's log is off",
        "joiner:reaction=watch",
    ),
]
