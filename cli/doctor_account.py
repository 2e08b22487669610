"""What `joiner doctor` sees of an account: who asks, the control plane, subnets, images, quotas, machines."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Final

from cli.checks.facts import Account, ClassFacts, ControlPlane, Stack, Unseen
from cli.checks.families import USUAL, Quota
from cli.doctor_cluster import seen
from cli.doctor_quotas import allowed
from cli.doctor_stack import stack_named
from cli.nodeclass_account import asking
from cli.progress import progress
from shared.aws.clients import Clients
from shared.aws.errors import faults
from shared.errors import Gone
from shared.launch.nodeclass import Found, filled
from shared.launch.probes import probe
from shared.model.ec2 import ClusterFacts, Refusal, SecurityGroup, Selector, Subnet
from shared.model.nodeclasses import EC2NodeClass
from shared.ports import World
from shared.settings import Settings
from shared.snapshot.account import look

DISCOVERY: Final = "karpenter.sh/discovery"


def of_account(
    clients: Clients,
    cluster: str,
    stack_name: str,
    classes: Iterable[EC2NodeClass],
    now: datetime,
    quotas: Iterable[Quota] = USUAL,
) -> Account:
    """Ask for everything; what cannot be asked is `Unseen`, and the rest goes on."""
    with progress(f"asking {clients.region} about {cluster}"):
        caller, ahead = _caller(clients)
        found = seen(lambda: stack_named(clients, stack_name, now))
        told = found.settings if isinstance(found, Stack) else None
        settings = told or Settings(cluster_name=cluster, region=clients.region)
        world = asking(clients, settings, lambda: now)
        plane = seen(lambda: _plane(clients, cluster))
        return Account(
            region=clients.region,
            cluster=cluster,
            caller=caller,
            ahead_seconds=ahead,
            plane=plane,
            clusters=seen(lambda: _clusters(clients)) if plane is None else (),
            entries=seen(lambda: _entries(clients, cluster)),
            classes=tuple(_classes(world, clients, tuple(classes))),
            discovered=seen(lambda: _discovered(world, cluster)),
            instances=seen(lambda: world.ec2.describe_instances(cluster)),
            templates=seen(lambda: world.ec2.launch_templates(cluster)),
            quotas=allowed(clients, quotas, now),
            stack=found,
        )


def _caller(clients: Clients) -> tuple[str | Unseen, float | None]:
    """Answer who asks, and how far AWS's clock is ahead of ours."""

    def ask() -> dict[str, Any]:
        with faults("sts:GetCallerIdentity"):
            answer: dict[str, Any] = clients.patient("sts").get_caller_identity()
            return answer

    answer = seen(ask)
    if isinstance(answer, Unseen):
        return answer, None
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    ahead = (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds() if date else None
    return str(answer["Arn"]), ahead


def _plane(clients: Clients, cluster: str) -> ControlPlane | None:
    try:
        with faults(f"eks:DescribeCluster {cluster}"):
            said = clients.patient("eks").describe_cluster(name=cluster)["cluster"]
    except Gone:
        return None
    network = said.get("resourcesVpcConfig", {})
    logs = said.get("logging", {}).get("clusterLogging", ())
    return ControlPlane(
        status=said.get("status", ""),
        version=said.get("version", ""),
        endpoint=said.get("endpoint", ""),
        authentication=said.get("accessConfig", {}).get("authenticationMode", ""),
        is_public=network.get("endpointPublicAccess", True),
        is_private=network.get("endpointPrivateAccess", False),
        public_cidrs=tuple(network.get("publicAccessCidrs", ("0.0.0.0/0",))),
        has_auto_mode=bool(said.get("computeConfig", {}).get("enabled")),
        logs=tuple(sorted(kind for one in logs if one.get("enabled") for kind in one.get("types", ()))),
        subnet_ids=tuple(network.get("subnetIds", ())),
        security_group_id=network.get("clusterSecurityGroupId", ""),
    )


def _clusters(clients: Clients) -> tuple[str, ...]:
    with faults("eks:ListClusters"):
        pages = clients.patient("eks").get_paginator("list_clusters").paginate()
        return tuple(sorted(one for page in pages for one in page["clusters"]))


def _entries(clients: Clients, cluster: str) -> tuple[str, ...]:
    with faults(f"eks:ListAccessEntries {cluster}"):
        pages = clients.patient("eks").get_paginator("list_access_entries").paginate(clusterName=cluster)
        return tuple(sorted(one for page in pages for one in page["accessEntries"]))


def _discovered(world: World, cluster: str) -> tuple[tuple[Subnet, ...], tuple[SecurityGroup, ...]]:
    tagged = (Selector(tags=((DISCOVERY, cluster),)),)
    return world.ec2.subnets(tagged), world.ec2.security_groups(tagged)


def _classes(world: World, clients: Clients, classes: tuple[EC2NodeClass, ...]) -> Iterator[ClassFacts]:
    if not classes:
        return
    looked = look(world, classes)
    found = dict(looked.found)
    for one in classes:
        own = filled(one, found[one.name], world.settings.instance_profile, world.clock())
        wrong = (each for each in looked.problems if each.name in (one.name, world.settings.cluster_name))
        yield ClassFacts(
            node_class=own,
            found=found[one.name],
            refusals=_refusals(own, found[one.name], world, looked.facts),
            snapshots=seen(partial(_snapshots, own, clients)),
            role_arn=seen(partial(_role_arn, own.resolved_profile, clients)),
            told=tuple(each.message for each in wrong),
        )


def _refusals(
    own: EC2NodeClass, found: Found, world: World, facts: ClusterFacts | None
) -> tuple[Refusal, ...] | Unseen | None:
    if facts is None or found.findings or not own.resolved_profile or not own.resolved_security_groups:
        return None
    asked = probe(own, facts)
    return None if asked is None else seen(lambda: world.ec2.refusals(asked))


def _snapshots(own: EC2NodeClass, clients: Clients) -> tuple[tuple[str, str, int], ...]:
    ids = [one.image_id for one in own.resolved_images]
    if not ids:
        return ()
    with faults(f"ec2:DescribeImages {', '.join(ids)}"):
        answer = clients.patient("ec2").describe_images(ImageIds=ids)
    return tuple(
        (image["ImageId"], device["DeviceName"], int(size))
        for image in answer["Images"]
        for device in image.get("BlockDeviceMappings", ())
        if (size := device.get("Ebs", {}).get("VolumeSize"))
    )


def _role_arn(profile: str, clients: Clients) -> str:
    if not profile:
        return ""
    try:
        with faults(f"iam:GetInstanceProfile {profile}"):
            roles = clients.patient("iam").get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]["Roles"]
    except Gone:
        return ""
    return str(roles[0]["Arn"]) if roles else ""
