"""Facts about an account for `joiner doctor`: caller, control plane, subnets, images, quotas and instances."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Final

from cli.aws.account_api import build_account_apis
from cli.facts.cluster import query_or_unseen
from cli.facts.model import AccountFacts, ControlPlane, NodeClassFacts, ReadFailure, StackFacts
from cli.facts.quota_families import DEFAULT_QUOTAS, Quota
from cli.facts.quotas import read_quotas
from cli.facts.role_permissions import read_role_permissions
from cli.facts.stack import read_stack
from cli.node_class.resolution import build_account_world
from cli.terminal.stderr import show_progress
from shared.aws.clients import Clients
from shared.aws.errors import translate_errors
from shared.cycles.interactions.account_lookup import query_account
from shared.decide.node_class.dry_run import build_dry_run_request
from shared.decide.node_class.status import with_answers
from shared.errors import NotFound
from shared.model.cloud_provider.node_class_findings import NodeClassAnswers
from shared.model.ec2.account import ControlPlaneFacts, SecurityGroup, SelectorTerm, Subnet
from shared.model.ec2.dry_run import DryRunRefusal
from shared.model.karpenter.node_class import EC2NodeClass
from shared.ports.world import World
from shared.settings import Settings

DISCOVERY_TAG: Final = "karpenter.sh/discovery"


def read_account_facts(
    clients: Clients,
    cluster: str,
    stack_name: str,
    node_classes: Iterable[EC2NodeClass],
    now: datetime,
    quotas: Iterable[Quota] = DEFAULT_QUOTAS,
) -> AccountFacts:
    """Read all facts; a part that cannot be read becomes a `ReadFailure`, and the other parts are still read."""
    with show_progress(f"reading {cluster} in {clients.region}"):
        caller, clock_offset_seconds = _read_caller(clients)
        stack = query_or_unseen(lambda: read_stack(clients, stack_name, now))
        stack_settings = stack.settings if isinstance(stack, StackFacts) else None
        settings = stack_settings or Settings(cluster_name=cluster, region=clients.region)
        world = build_account_world(build_account_apis(clients, now), settings)
        control_plane = query_or_unseen(lambda: _read_control_plane(clients, cluster))
        class_facts = tuple(_read_class_facts(world, clients, tuple(node_classes)))
        ip_family = control_plane.ip_family if isinstance(control_plane, ControlPlane) else "ipv4"
        return AccountFacts(
            region=clients.region,
            cluster=cluster,
            caller=caller,
            clock_offset_seconds=clock_offset_seconds,
            control_plane=control_plane,
            cluster_names=query_or_unseen(lambda: _list_clusters(clients)) if control_plane is None else (),
            access_entries=query_or_unseen(lambda: _list_access_entries(clients, cluster)),
            node_classes=class_facts,
            discoverable=query_or_unseen(lambda: _list_discovered_resources(world, cluster)),
            instances=query_or_unseen(lambda: world.ec2.describe_instances(cluster)),
            launch_templates=query_or_unseen(lambda: world.ec2.describe_launch_templates(cluster)),
            quotas=read_quotas(clients, quotas, now),
            stack=stack,
            role_permissions=query_or_unseen(lambda: read_role_permissions(clients, ip_family, stack, class_facts)),
        )


def _read_caller(clients: Clients) -> tuple[str | ReadFailure, float | None]:
    """Return the caller's ARN, and how many seconds AWS's clock is ahead of the local one."""

    def get_caller_identity() -> dict[str, Any]:
        with translate_errors("sts:GetCallerIdentity"):
            answer: dict[str, Any] = clients.get_retrying_client("sts").get_caller_identity()
            return answer

    answer = query_or_unseen(get_caller_identity)
    if isinstance(answer, ReadFailure):
        return answer, None
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    clock_offset_seconds = (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds() if date else None
    return str(answer["Arn"]), clock_offset_seconds


def _read_control_plane(clients: Clients, cluster: str) -> ControlPlane | None:
    try:
        with translate_errors(f"eks:DescribeCluster {cluster}"):
            description = clients.get_retrying_client("eks").describe_cluster(name=cluster)["cluster"]
    except NotFound:
        return None
    network = description.get("resourcesVpcConfig", {})
    logs = description.get("logging", {}).get("clusterLogging", ())
    return ControlPlane(
        status=description.get("status", ""),
        version=description.get("version", ""),
        endpoint=description.get("endpoint", ""),
        authentication_mode=description.get("accessConfig", {}).get("authenticationMode", ""),
        is_public=network.get("endpointPublicAccess", True),
        is_private=network.get("endpointPrivateAccess", False),
        public_cidrs=tuple(network.get("publicAccessCidrs", ("0.0.0.0/0",))),
        has_auto_mode=bool(description.get("computeConfig", {}).get("enabled")),
        log_types=tuple(
            sorted(kind for log_setup in logs if log_setup.get("enabled") for kind in log_setup.get("types", ()))
        ),
        subnet_ids=tuple(network.get("subnetIds", ())),
        security_group_id=network.get("clusterSecurityGroupId", ""),
        vpc_id=network.get("vpcId", ""),
        ip_family=description.get("kubernetesNetworkConfig", {}).get("ipFamily", "ipv4"),
    )


def _list_clusters(clients: Clients) -> tuple[str, ...]:
    with translate_errors("eks:ListClusters"):
        pages = clients.get_retrying_client("eks").get_paginator("list_clusters").paginate()
        return tuple(sorted(name for page in pages for name in page["clusters"]))


def _list_access_entries(clients: Clients, cluster: str) -> tuple[str, ...]:
    with translate_errors(f"eks:ListAccessEntries {cluster}"):
        pages = clients.get_retrying_client("eks").get_paginator("list_access_entries").paginate(clusterName=cluster)
        return tuple(sorted(principal_arn for page in pages for principal_arn in page["accessEntries"]))


def _list_discovered_resources(world: World, cluster: str) -> tuple[tuple[Subnet, ...], tuple[SecurityGroup, ...]]:
    tagged = (SelectorTerm(tags=((DISCOVERY_TAG, cluster),)),)
    return world.ec2.describe_subnets(tagged), world.ec2.describe_security_groups(tagged)


def _read_class_facts(
    world: World, clients: Clients, node_classes: tuple[EC2NodeClass, ...]
) -> Iterator[NodeClassFacts]:
    if not node_classes:
        return
    account_answers = query_account(world, node_classes)
    answers_by_class = dict(account_answers.node_class_answers)
    for node_class in node_classes:
        class_with_status = with_answers(
            node_class, answers_by_class[node_class.name], world.settings.instance_profile, world.clock()
        )
        names, answers = (node_class.name, world.settings.cluster_name), answers_by_class[node_class.name]
        class_problems = (problem for problem in account_answers.problems if problem.name in names)
        yield NodeClassFacts(
            node_class=class_with_status,
            answers=answers,
            refusals=_dry_run_launch(class_with_status, answers, world, account_answers.facts),
            snapshots=query_or_unseen(partial(_list_snapshot_sizes, class_with_status, clients)),
            role_arn=query_or_unseen(partial(_get_role_arn, class_with_status.resolved_profile, clients)),
            errors=tuple(problem.message for problem in class_problems),
        )


def _dry_run_launch(
    node_class: EC2NodeClass, answers: NodeClassAnswers, world: World, facts: ControlPlaneFacts | None
) -> tuple[DryRunRefusal, ...] | ReadFailure | None:
    if facts is None or answers.findings or not node_class.resolved_profile or not node_class.resolved_security_groups:
        return None
    request = build_dry_run_request(node_class, facts)
    return None if request is None else query_or_unseen(lambda: world.ec2.dry_run_launch(request))


def _list_snapshot_sizes(node_class: EC2NodeClass, clients: Clients) -> tuple[tuple[str, str, int], ...]:
    ids = [image.image_id for image in node_class.resolved_images]
    if not ids:
        return ()
    with translate_errors(f"ec2:DescribeImages {', '.join(ids)}"):
        answer = clients.get_retrying_client("ec2").describe_images(ImageIds=ids)
    return tuple(
        (image["ImageId"], device["DeviceName"], int(size))
        for image in answer["Images"]
        for device in image.get("BlockDeviceMappings", ())
        if (size := device.get("Ebs", {}).get("VolumeSize"))
    )


def _get_role_arn(profile: str, clients: Clients) -> str:
    if not profile:
        return ""
    try:
        with translate_errors(f"iam:GetInstanceProfile {profile}"):
            roles = clients.get_retrying_client("iam").get_instance_profile(InstanceProfileName=profile)[
                "InstanceProfile"
            ]["Roles"]
    except NotFound:
        return ""
    return str(roles[0]["Arn"]) if roles else ""
