"""Collects the evidence of `joiner audit`: the cluster, and the account's resources with Joiner's tags or names."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from cli.audit.assets import AttachedResource, AuditEvidence, NamedResource
from cli.cluster.kubeconfig import ClusterConnection
from cli.cluster.live_cluster import read_live_cluster
from cli.facts.cluster import query_or_unseen
from cli.facts.model import ReadFailure, StackFacts
from cli.facts.stack import read_stack
from cli.terminal.errors import InputError
from cli.terminal.stderr import show_progress
from shared.aws.clients import Clients
from shared.aws.dynamodb import DynamoTable
from shared.aws.ec2.client import BotoEc2
from shared.aws.errors import translate_errors
from shared.aws.s3 import S3Bucket
from shared.model.decisions.command import CommandState
from shared.settings import Settings
from shared.state.cluster_state import ClusterState
from shared.store.commands import COMMAND_KIND, decode_command
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS
from shared.take.other_annotations import without_cluster_autoscaler_annotations
from shared.take.snapshot import read_newest_catalog

SNAPSHOT_FIELDS: Final = ("nodes", "node_claims", "pods", "node_pools", "node_classes")
_CLUSTER_TAG_FILTER: Final = "tag:eks:eks-cluster-name"
_NODE_POOL_TAG: Final = "karpenter.sh/nodepool"
_VPC_CNI_CLUSTER_TAG: Final = "cluster.k8s.amazonaws.com/name"
_VPC_CNI_INSTANCE_TAG: Final = "node.k8s.amazonaws.com/instance_id"
"""The VPC CNI plugin sets this tag and `_VPC_CNI_CLUSTER_TAG` on the network interfaces that it creates."""


def collect_evidence(
    clients: Clients, connection: ClusterConnection | None, cluster: str, stack_name: str, now: datetime
) -> AuditEvidence:
    """Read all parts; a part that cannot be read becomes a `ReadFailure`."""
    ec2 = BotoEc2(clients, lambda: now)
    with show_progress(f"reading the resources of {cluster} in {clients.region}"):
        stack_facts = query_or_unseen(lambda: read_stack(clients, stack_name, now))
        settings = stack_facts.settings if isinstance(stack_facts, StackFacts) else None
        return AuditEvidence(
            now=now,
            cluster_name=cluster,
            cluster_state=_read_cluster_state(connection, clients, settings, now),
            instances=query_or_unseen(lambda: ec2.describe_instances(cluster)),
            templates=query_or_unseen(lambda: ec2.describe_launch_templates(cluster)),
            attached=query_or_unseen(
                lambda: (*_list_volumes(clients, cluster), *_list_network_interfaces(clients, cluster))
            ),
            named_resources=query_or_unseen(
                lambda: (*_list_queues(clients, cluster), *_list_instance_profiles(clients, stack_name))
            ),
            commands=() if settings is None else query_or_unseen(lambda: tuple(_list_commands(clients, settings))),
            is_installed=None if isinstance(stack_facts, ReadFailure) else stack_facts is not None,
        )


def _read_cluster_state(
    connection: ClusterConnection | None, clients: Clients, settings: Settings | None, now: datetime
) -> ClusterState | ReadFailure:
    if connection is None:
        return ReadFailure(reason="no kubeconfig context for this cluster: add --context NAME")
    listings = tuple(listing for listing in RESOURCE_KINDS if listing.field in SNAPSHOT_FIELDS)
    try:
        cluster, _ = read_live_cluster(connection.kube, now, connection.context, listings)
    except InputError as error:
        return ReadFailure(reason=str(error))
    list_problems = [problem for problem in cluster.problems if problem.name == "*"]
    if list_problems:
        return ReadFailure(
            reason="; ".join(f"{problem.kind}: {problem.message}" for problem in list_problems), is_denied=True
        )
    if settings is None or settings.honor_cluster_autoscaler_annotations == "off":
        cluster = without_cluster_autoscaler_annotations(cluster)
    if settings is None:
        return ClusterState(cluster)
    catalog = query_or_unseen(lambda: read_newest_catalog(S3Bucket(clients, settings.bucket_name), []))
    readable_catalog = None if isinstance(catalog, ReadFailure) else catalog
    return ClusterState(msgspec.structs.replace(cluster, catalog=readable_catalog))


def _paginate(clients: Clients, service: str, call: str, **call_arguments: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - boto3's
    with translate_errors(f"{service}:{call}"):
        yield from clients.get_retrying_client(service).get_paginator(call).paginate(**call_arguments)


def _list_volumes(clients: Clients, cluster: str) -> Iterator[AttachedResource]:
    """Yield the volumes that Joiner's launches created; volumes of PersistentVolumes have other tags."""
    filters = [{"Name": _CLUSTER_TAG_FILTER, "Values": [cluster]}, {"Name": "tag-key", "Values": [_NODE_POOL_TAG]}]
    for page in _paginate(clients, "ec2", "describe_volumes", Filters=filters):
        for volume in page["Volumes"]:
            attachment: dict[str, Any] = next(iter(volume.get("Attachments", ())), {})
            yield AttachedResource(
                kind="Volume",
                name=volume["VolumeId"],
                instance_id=attachment.get("InstanceId", ""),
                size_gib=int(volume.get("Size", 0)),
                created_at=volume.get("CreateTime"),
            )


def _list_network_interfaces(clients: Clients, cluster: str) -> Iterator[AttachedResource]:
    """Yield the network interfaces that Joiner's launches created, and those that the VPC CNI created for nodes."""
    launch_filters = [
        {"Name": _CLUSTER_TAG_FILTER, "Values": [cluster]},
        {"Name": "tag-key", "Values": [_NODE_POOL_TAG]},
    ]
    interfaces_by_id: dict[str, AttachedResource] = {}
    for filters in (launch_filters, [{"Name": f"tag:{_VPC_CNI_CLUSTER_TAG}", "Values": [cluster]}]):
        for page in _paginate(clients, "ec2", "describe_network_interfaces", Filters=filters):
            for interface in page["NetworkInterfaces"]:
                tags = {tag["Key"]: tag["Value"] for tag in interface.get("TagSet", ())}
                interfaces_by_id[interface["NetworkInterfaceId"]] = AttachedResource(
                    kind="NetworkInterface",
                    name=interface["NetworkInterfaceId"],
                    instance_id=interface.get("Attachment", {}).get("InstanceId", ""),
                    made_for_instance_id=tags.get(_VPC_CNI_INSTANCE_TAG, ""),
                )
    yield from interfaces_by_id.values()


def _list_queues(clients: Clients, cluster: str) -> Iterator[NamedResource]:
    for page in _paginate(clients, "sqs", "list_queues", QueueNamePrefix=f"{cluster}-joiner-"):
        yield from (NamedResource(kind="Queue", name=url) for url in page.get("QueueUrls", ()))


def _list_instance_profiles(clients: Clients, stack_name: str) -> Iterator[NamedResource]:
    """Yield the instance profiles that CloudFormation named after the stack."""
    for page in _paginate(clients, "iam", "list_instance_profiles"):
        for profile in page["InstanceProfiles"]:
            if profile["InstanceProfileName"].startswith(f"{stack_name}-"):
                yield NamedResource(
                    kind="InstanceProfile", name=profile["InstanceProfileName"], created_at=profile.get("CreateDate")
                )


def _list_commands(clients: Clients, settings: Settings) -> Iterator[tuple[str, CommandState | None]]:
    for row in DynamoTable(clients, settings.table_name).list_rows(COMMAND_KIND):
        yield row.name, decode_command(row)
