"""What `joiner audit` sees: the cluster, and in the account all that is tagged or named as ours."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from cli.audit_facts import Attached, Evidence, Named
from cli.checks.facts import Stack, Unseen
from cli.doctor_cluster import seen
from cli.doctor_stack import stack_named
from cli.files import InputError
from cli.kubeconfig import Reached
from cli.live import live_cluster
from cli.progress import progress
from shared.actions.command_rows import KIND
from shared.aws.clients import Clients
from shared.aws.dynamodb import DynamoTable
from shared.aws.ec2 import BotoEc2
from shared.aws.errors import faults
from shared.aws.s3 import S3Bucket
from shared.model.cluster import Cluster
from shared.model.commands import Standing
from shared.settings import Settings
from shared.snapshot.kinds import LISTINGS
from shared.snapshot.take import newest_catalogue

FIELDS: Final = ("nodes", "node_claims", "pods", "node_pools", "node_classes")
_OURS: Final = "tag:eks:eks-cluster-name"
_POOL: Final = "karpenter.sh/nodepool"
_NETWORK: Final = "cluster.k8s.amazonaws.com/name"
_MADE_FOR: Final = "node.k8s.amazonaws.com/instance_id"
"""The VPC's network plugin writes these on the interfaces that it makes."""


def evidence(clients: Clients, reached: Reached | None, cluster: str, stack: str, now: datetime) -> Evidence:
    """Ask for everything; what cannot be asked is `Unseen`, and the rest goes on."""
    ec2 = BotoEc2(clients, lambda: now)
    with progress(f"looking through {clients.region} for what is of {cluster}"):
        found = seen(lambda: stack_named(clients, stack, now))
        settings = found.settings if isinstance(found, Stack) else None
        return Evidence(
            now=now,
            name=cluster,
            cluster=_cluster(reached, clients, settings, now),
            instances=seen(lambda: ec2.describe_instances(cluster)),
            templates=seen(lambda: ec2.launch_templates(cluster)),
            attached=seen(lambda: (*_volumes(clients, cluster), *_interfaces(clients, cluster))),
            named=seen(lambda: (*_queues(clients, cluster), *_profiles(clients, stack))),
            commands=() if settings is None else seen(lambda: tuple(_commands(clients, settings))),
            is_installed=None if isinstance(found, Unseen) else found is not None,
        )


def _cluster(reached: Reached | None, clients: Clients, settings: Settings | None, now: datetime) -> Cluster | Unseen:
    if reached is None:
        return Unseen(why="no context leads to it: name one with --context")
    wanted = tuple(one for one in LISTINGS if one.field in FIELDS)
    try:
        found, _ = live_cluster(reached.kube, now, reached.context, wanted)
    except InputError as error:
        return Unseen(why=str(error))
    hidden = [one for one in found.problems if one.name == "*"]
    if hidden:
        return Unseen(why="; ".join(f"{one.kind}: {one.message}" for one in hidden), is_denied=True)
    if settings is None:
        return found
    catalogue = seen(lambda: newest_catalogue(S3Bucket(clients, settings.bucket_name), []))
    priced = None if isinstance(catalogue, Unseen) else catalogue
    return msgspec.structs.replace(found, catalogue=priced)


def _pages(clients: Clients, service: str, call: str, **given: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - boto3's
    with faults(f"{service}:{call}"):
        yield from clients.patient(service).get_paginator(call).paginate(**given)


def _volumes(clients: Clients, cluster: str) -> Iterator[Attached]:
    """Iterate over the volumes that launches of ours made; those of PersistentVolumes have other tags."""
    wanted = [{"Name": _OURS, "Values": [cluster]}, {"Name": "tag-key", "Values": [_POOL]}]
    for page in _pages(clients, "ec2", "describe_volumes", Filters=wanted):
        for one in page["Volumes"]:
            held: dict[str, Any] = next(iter(one.get("Attachments", ())), {})
            yield Attached(
                kind="Volume",
                name=one["VolumeId"],
                instance_id=held.get("InstanceId", ""),
                gib=int(one.get("Size", 0)),
                since=one.get("CreateTime"),
            )


def _interfaces(clients: Clients, cluster: str) -> Iterator[Attached]:
    """Iterate over the interfaces that launches of ours made, and those that the network plugin made for nodes."""
    ours = [{"Name": _OURS, "Values": [cluster]}, {"Name": "tag-key", "Values": [_POOL]}]
    found: dict[str, Attached] = {}
    for wanted in (ours, [{"Name": f"tag:{_NETWORK}", "Values": [cluster]}]):
        for page in _pages(clients, "ec2", "describe_network_interfaces", Filters=wanted):
            for one in page["NetworkInterfaces"]:
                tags = {tag["Key"]: tag["Value"] for tag in one.get("TagSet", ())}
                found[one["NetworkInterfaceId"]] = Attached(
                    kind="NetworkInterface",
                    name=one["NetworkInterfaceId"],
                    instance_id=one.get("Attachment", {}).get("InstanceId", ""),
                    made_for=tags.get(_MADE_FOR, ""),
                )
    yield from found.values()


def _queues(clients: Clients, cluster: str) -> Iterator[Named]:
    for page in _pages(clients, "sqs", "list_queues", QueueNamePrefix=f"{cluster}-joiner-"):
        yield from (Named(kind="Queue", name=url) for url in page.get("QueueUrls", ()))


def _profiles(clients: Clients, stack: str) -> Iterator[Named]:
    """Iterate over the instance profiles that CloudFormation named after the stack."""
    for page in _pages(clients, "iam", "list_instance_profiles"):
        for one in page["InstanceProfiles"]:
            if one["InstanceProfileName"].startswith(f"{stack}-"):
                yield Named(kind="InstanceProfile", name=one["InstanceProfileName"], since=one.get("CreateDate"))


def _commands(clients: Clients, settings: Settings) -> Iterator[tuple[str, Standing | None]]:
    for row in DynamoTable(clients, settings.table_name).rows(KIND):
        try:
            yield row.name, msgspec.json.decode(row.body, type=Standing)
        except msgspec.DecodeError:
            yield row.name, None
