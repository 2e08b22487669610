"""Problems with the connection to a cluster and with the cluster: check, facts, level, message, fix."""

from typing import Any

import msgspec

from cli.facts.model import ApiServerResponse, DeploymentFacts, DoctorFacts, ReadFailure
from shared.crds.definitions import load_shipped_crds
from shared.settings import Settings
from tests.support.cli.doctor_facts import (
    NAMES,
    ROLE,
    make_control_plane,
    make_facts,
    make_facts_with_stack,
    make_function_facts,
    make_preflight_facts,
)

DEAF = ReadFailure(reason="Unreachable: nobody")
Worse = tuple[str, DoctorFacts, str, str, str]


def make_deployment_facts(name: str, image: str = "x", replicas: int = 2) -> dict[str, Any]:
    return {"deployments": (DeploymentFacts(namespace="ops", name=name, images=(image,), replicas=replicas),)}


def list_crds_with_old_version(name: str) -> tuple[Any, ...]:
    """Return the shipped CRDs; the CRD *name* does not serve its version."""
    crds: list[Any] = [msgspec.json.decode(msgspec.json.encode(shipped_crd)) for shipped_crd in load_shipped_crds()]
    [crd] = [item for item in crds if item["metadata"]["name"] == name]
    crd["spec"]["versions"][0]["name"] = "v1beta1"
    return tuple(crds)


def list_crds_without_weight(name: str) -> tuple[Any, ...]:
    crds: list[Any] = [msgspec.json.decode(msgspec.json.encode(shipped_crd)) for shipped_crd in load_shipped_crds()]
    [crd] = [item for item in crds if item["metadata"]["name"] == name]
    del crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["weight"]
    return tuple(crds)


def make_function_parts(**parts: Any) -> dict[str, Any]:
    settings = Settings(cluster_name="prod", region="us-east-1", **parts)
    return {"functions": tuple(make_function_facts(name, settings=settings) for name in NAMES)}


WORSE: list[Worse] = [
    (
        "api-server",
        make_facts({"response": DEAF}),
        "fail",
        "https://prod.eks does not respond: Unreachable: nobody",
        "check with kubectl; a private endpoint responds only within the VPC",
    ),
    (
        "api-server",
        make_facts({"response": ApiServerResponse(version="1.34", seconds=4.0, clock_offset_seconds=None)}),
        "warn",
        "in 4.00 s",
        "check the network path and the request latency of the API server",
    ),
    (
        "clock",
        make_facts(of_account={"clock_offset_seconds": 400.0}),
        "fail",
        "AWS is 400 s ahead of this machine",
        "NTP",
    ),
    ("clock", make_facts(of_account={"clock_offset_seconds": -40.0}), "warn", "AWS is 40 s behind this machine", "NTP"),
    (
        "clock",
        make_facts({"response": ApiServerResponse(version="1", seconds=0.1, clock_offset_seconds=-301.0)}),
        "fail",
        "the API server is 301 s behind this machine: AWS rejects signatures",
        "NTP",
    ),
    (
        "endpoint",
        make_facts(of_account={"control_plane": make_control_plane(is_public=False)}),
        "fail",
        "has no public endpoint, but the functions are outside the VPC",
        "network: private",
    ),
    (
        "endpoint",
        make_facts(of_account={"control_plane": make_control_plane(public_cidrs=("1.2.3.4/32",))}),
        "fail",
        "open to 1.2.3.4/32 only",
        "network: private",
    ),
    (
        "endpoint",
        make_preflight_facts(of_account={"control_plane": make_control_plane(is_public=False)}),
        "warn",
        "endpoint, but functions outside a VPC have no fixed address",
        "network: private",
    ),
    ("cluster", make_facts(of_account={"control_plane": None}), "fail", "us-east-1 has no cluster prod", "--region"),
    (
        "cluster",
        make_facts(of_account={"control_plane": make_control_plane(status="CREATING")}),
        "warn",
        "prod is CREATING",
        "wait",
    ),
    (
        "authentication",
        make_facts(of_account={"control_plane": make_control_plane(authentication_mode="CONFIG_MAP")}),
        "fail",
        "access entries have no effect",
        "authenticationMode=API_AND_CONFIG_MAP --name prod",
    ),
    (
        "access-entries",
        make_facts(of_account={"access_entries": (f"{ROLE}nodes",)}),
        "fail",
        "no access entry for the role of provision, lifecycle",
        "deploy the stack again",
    ),
    (
        "access-entries",
        make_facts(of_account={"access_entries": tuple(f"{ROLE}{name}" for name in NAMES)}),
        "warn",
        f"{ROLE}nodes has no access entry",
        f"create-access-entry --cluster-name prod --type EC2_LINUX --principal-arn {ROLE}nodes",
    ),
    (
        "crds",
        make_facts({"crds": ()}),
        "fail",
        "missing CRDs: ec2nodeclasses",
        "deploy the stack again",
    ),
    (
        "crds",
        make_facts({"crds": list_crds_with_old_version("nodepools.karpenter.sh")}),
        "fail",
        "nodepools.karpenter.sh: it does not serve v1",
        "upgrade",
    ),
    (
        "crds",
        make_facts({"crds": list_crds_without_weight("nodepools.karpenter.sh")}),
        "warn",
        "nodepools.karpenter.sh lacks spec.weight",
        "upgrade",
    ),
    (
        "permissions",
        make_facts({"has_role_binding": False}),
        "fail",
        "ClusterRoleBinding joiner-functions is missing",
        "deploy the stack again",
    ),
    (
        "permissions",
        make_facts({"missing_permissions": ("get on nodeclaims.karpenter.sh",)}),
        "fail",
        "ClusterRole joiner-functions lacks get on nodeclaims.karpenter.sh",
        "deploy the stack again",
    ),
    (
        "autoscalers",
        make_facts(make_deployment_facts("karpenter")),
        "fail",
        "ops/karpenter runs Karpenter (2 replicas) on the same objects",
        "kubectl -n ops scale deployment karpenter --replicas 0",
    ),
    (
        "autoscalers",
        make_facts(make_deployment_facts("k", "public.ecr.aws/karpenter/controller:1.5")),
        "fail",
        "Deployment ops/k runs Karpenter (2 replicas) on the same objects",
        "--replicas 0",
    ),
    (
        "autoscalers",
        make_preflight_facts(make_deployment_facts("karpenter")),
        "warn",
        "Deployment ops/karpenter runs Karpenter",
        "just before you deploy",
    ),
    (
        "autoscalers",
        make_facts(make_deployment_facts("cluster-autoscaler")),
        "warn",
        "runs Cluster Autoscaler, which launches nodes for the same pods",
        "--replicas 0, after NodePools",
    ),
    (
        "autoscalers",
        make_facts(of_account={"control_plane": make_control_plane(has_auto_mode=True)}),
        "warn",
        "EKS Auto Mode is enabled: it launches nodes for the same pods",
        "select different pods",
    ),
    (
        "scheduler-log",
        make_facts_with_stack(**make_function_parts(reaction="logs")),
        "fail",
        "the setting reaction is logs, but the kube-scheduler log is disabled",
        "reaction: watch",
    ),
]
