"""What to run next for a cluster of the hub: commands that find out more, with the credentials that they need."""

from collections.abc import Iterator
from shlex import quote
from typing import Final

import msgspec

from cli.hub.hub_file import HubCluster
from cli.hub.session import HubRow
from cli.hub.summary.cluster_summary import ClusterSummary

UNKNOWN_CONTEXT: Final = "CONTEXT"
"""Stands for the kubeconfig context, if the hub file has none."""
_SESSION: Final = "--role-session-name joiner-hub"
_KEYS: Final = "Credentials.[AccessKeyId,SecretAccessKey,SessionToken]"
_ENVIRONMENT: Final = "AWS_ACCESS_KEY_ID=%s AWS_SECRET_ACCESS_KEY=%s AWS_SESSION_TOKEN=%s"


class NextStep(msgspec.Struct, frozen=True, kw_only=True):
    """A command, and what it is for."""

    purpose: str
    command: str


def list_next_steps(row: HubRow) -> tuple[NextStep, ...]:
    """Return the commands for a cluster, the most urgent ones first."""
    steps = _list_checks(row.cluster) if row.summary is None else _list_views(row.cluster, row.summary)
    return tuple(NextStep(purpose=purpose, command=command) for purpose, command in steps)


def _list_checks(cluster: HubCluster) -> Iterator[tuple[str, str]]:
    """Yield what helps if the cluster could not be read."""
    if cluster.folder:
        yield "list the copied journal", f"ls {quote(cluster.folder)}/journal"
        return
    if cluster.role:
        yield "check who you are", "aws sts get-caller-identity"
        yield "check whether you can assume the role", f"{_build_assume_command(cluster)} --query AssumedRoleUser"
        yield "use the role in this shell for an hour", _build_export_command(cluster)
    yield "list the journal", f"aws s3 ls s3://{cluster.bucket}/journal/ --region {cluster.region}"
    yield "check the installation", f"joiner doctor {_build_context_argument(cluster)}"


def _list_views(cluster: HubCluster, summary: ClusterSummary) -> Iterator[tuple[str, str]]:
    """Yield what explains the values of a cluster that could be read."""
    context = _build_context_argument(cluster)
    if summary.is_silent:
        yield "find out why Joiner writes no journal entries", f"joiner doctor {context}"
    if summary.pending_pods:
        yield "see why pods are pending", f"joiner status {context}"
    if summary.pauses:
        yield "see who paused Joiner, and until when", f"joiner status {context}"
    if summary.drifted_nodes:
        yield "see why nodes have drifted", f"joiner drift {context}"
    if cluster.role:
        yield "use the role in this shell for an hour", _build_export_command(cluster)
    region = f"AWS_REGION={cluster.region} " if cluster.region else ""
    journal = quote(cluster.folder) if cluster.folder else f"s3://{cluster.bucket}"
    yield "open the interactive page of the cluster", f"{region}joiner ui --journal {journal}"
    yield "see the costs by NodePool", f"{region}joiner cost --journal {journal}"


def _build_context_argument(cluster: HubCluster) -> str:
    return f"--context {quote(cluster.context) if cluster.context else UNKNOWN_CONTEXT}"


def _build_assume_command(cluster: HubCluster) -> str:
    external_id = f" --external-id {quote(cluster.external_id)}" if cluster.external_id else ""
    return f"aws sts assume-role --role-arn {cluster.role} {_SESSION}{external_id}"


def _build_export_command(cluster: HubCluster) -> str:
    assume = f"{_build_assume_command(cluster)} --query '{_KEYS}' --output text"
    return f"export $(printf '{_ENVIRONMENT}' $({assume}))"
