"""Facts about a cluster for `joiner doctor`: from its API, or from files that kubectl wrote."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from cli.cluster.fixes import SIGN_IN_HINT, is_credential_error
from cli.cluster.kubeconfig import ClusterConnection, ReadOnlyKube
from cli.cluster.paging import list_objects
from cli.facts.events import list_pause_events
from cli.facts.model import ApiServerResponse, DeploymentFacts, KubernetesFacts, Manifest, ReadFailure
from cli.inputs.documents import iterate_objects, read_documents
from cli.inputs.files import ErrorReporter
from cli.terminal.errors import InputError
from cli.terminal.stderr import show_progress
from cli.terminal.text import truncate_text
from shared.decide.gangs.waiting_gangs import WaitingGang, list_waiting_gangs
from shared.errors import Fault, Forbidden, NotFound
from shared.installer.rbac import (
    format_permission,
    is_granted,
    list_permissions,
    read_optional_rules,
    read_rbac_manifests,
)
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.ports.kubernetes import Kube
from shared.state.cluster_state import ClusterState
from shared.state.gangs.gangs import needs_pod_groups
from shared.take.kubernetes.optional_resources import OPTIONAL_KINDS, POD_GROUP_LISTS
from shared.take.kubernetes.reflector import Reflector
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS, ResourceKind
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents
from shared.wire.paths import CRD_KIND

T = TypeVar("T")

SNAPSHOT_FIELDS: Final = ("nodes", "node_pools", "node_classes", "node_claims", "namespaces")
_OTHER_PARTS: Final = (
    "crds",
    "deployments",
    "has_role_binding",
    "missing_permissions",
    "missing_feature_permissions",
    "pause_events",
)
_CRDS_PATH: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CLUSTER_ROLE_BINDING_PATH: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/joiner-functions"
_CLUSTER_ROLE_PATH: Final = "/apis/rbac.authorization.k8s.io/v1/clusterroles/joiner-functions"
_DEPLOYMENTS_PATH: Final = "/apis/apps/v1/deployments"
_MAX_MESSAGE_CHARACTERS: Final = 240
"""Limit for error messages: a proxy that answers instead of the API server sends a whole page."""
_NOT_IN_FILES: Final = "not in the files"
_FILES_FIX: Final = (
    "add the output of `kubectl get crd,clusterroles,clusterrolebindings,deployments,ns,nodepools,ec2nodeclasses "
    "-A -o json`"
)


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""


class _Container(msgspec.Struct, frozen=True):
    image: str = ""


class _PodSpec(msgspec.Struct, frozen=True):
    containers: tuple[_Container, ...] = ()


class _PodTemplate(msgspec.Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _DeploymentSpec(msgspec.Struct, frozen=True):
    template: _PodTemplate = _PodTemplate()
    replicas: int = 1


class _Deployment(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _DeploymentSpec = _DeploymentSpec()


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = ""


def query_or_unseen(query: Callable[[], T]) -> T | ReadFailure:
    """Return the result of *query*, or a `ReadFailure` with the reason if it fails."""
    try:
        return query()
    except Fault as fault:
        message = " ".join(str(fault).split())
        return ReadFailure(
            reason=f"{type(fault).__name__}: {truncate_text(message, _MAX_MESSAGE_CHARACTERS)}",
            is_denied=isinstance(fault, Forbidden),
            fix=SIGN_IN_HINT if is_credential_error(fault) else "",
        )


def read_cluster_facts(
    connection: ClusterConnection, now: datetime, shipped_crds: Iterable[Manifest]
) -> KubernetesFacts:
    """Read the cluster; if its API server does not respond, the other parts are not queried."""
    kube, problems = connection.kube, list[Problem]()
    with show_progress(f"reading {connection.context}"):
        answer = query_or_unseen(lambda: _measure_api_server(kube))
        if isinstance(answer, ReadFailure) and not answer.is_denied:
            unseen_parts: dict[str, Any] = dict.fromkeys((*SNAPSHOT_FIELDS, *_OTHER_PARTS), answer)
            return KubernetesFacts(source=connection.server, response=answer, **unseen_parts)
        parts: dict[str, Any] = {
            listing.field: query_or_unseen(partial(_list_objects, Reflector(kube, None, now), listing, problems))
            for listing in RESOURCE_KINDS
            if listing.field in SNAPSHOT_FIELDS
        }
        names = [crd["metadata"]["name"] for crd in shipped_crds]
        role = query_or_unseen(lambda: _read_role(kube))
        return KubernetesFacts(
            source=connection.server,
            response=answer,
            crds=query_or_unseen(lambda: tuple(_read_crds(kube, names))),
            deployments=query_or_unseen(
                lambda: tuple(map(_build_workload, list_objects(kube, _DEPLOYMENTS_PATH, _Deployment)))
            ),
            has_role_binding=query_or_unseen(lambda: _is_there(kube, _CLUSTER_ROLE_BINDING_PATH)),
            missing_permissions=role if isinstance(role, ReadFailure) else _find_missing_permissions(role),
            missing_feature_permissions=role if isinstance(role, ReadFailure) else _find_missing_by_feature(role),
            pause_events=query_or_unseen(lambda: tuple(list_pause_events(kube, now))),
            read_errors=_format_problems(problems),
            **parts,
        )


def read_waiting_gangs(kube: Kube, kubernetes: KubernetesFacts, now: datetime) -> tuple[WaitingGang, ...] | ReadFailure:
    """List the pods, and the PodGroups if pods need them; return the gangs that wait for nodes."""

    def list_gangs() -> tuple[WaitingGang, ...]:
        reflector, problems = Reflector(kube, None, now), list[Problem]()
        pod_kinds = [kind for kind in RESOURCE_KINDS if kind.field == "pods"]
        pod_fields: dict[str, Any] = dict(reflector.read_lists(pod_kinds, problems))
        cluster = ClusterSnapshot(
            taken_at=now,
            nodes=() if isinstance(kubernetes.nodes, ReadFailure) else kubernetes.nodes,
            node_pools=() if isinstance(kubernetes.node_pools, ReadFailure) else kubernetes.node_pools,
            node_claims=() if isinstance(kubernetes.node_claims, ReadFailure) else kubernetes.node_claims,
            has_gangs=True,
            **pod_fields,
        )
        if needs_pod_groups(cluster):
            group_kinds = [kind for kind in OPTIONAL_KINDS if kind.field in POD_GROUP_LISTS]
            cluster = replace(cluster, **reflector.read_lists(group_kinds, problems))
        return list_waiting_gangs(ClusterState(cluster))

    return query_or_unseen(list_gangs)


def read_file_facts(sources: Iterable[str], now: datetime, tell: ErrorReporter) -> KubernetesFacts:
    """Read files that kubectl wrote; kinds that no file contains count as unseen.

    Raises:
        InputError: The files contain no object.
    """
    with show_progress("reading files"):
        documents = list(iterate_objects(read_documents(sources, tell), tell))
        if not documents:
            raise InputError("the files contain no readable Kubernetes object")
        cluster = build_snapshot_from_documents(
            [document.source for document in documents], now, assume_unschedulable=False
        )
    manifests = [document.value for document in documents if isinstance(document.value, Mapping)]
    crds = tuple(manifest for manifest in manifests if manifest.get("kind") == CRD_KIND)
    deployments = tuple(manifest for manifest in manifests if manifest.get("kind") == "Deployment")
    is_bound = any(
        manifest.get("kind") == "ClusterRoleBinding" and _get_name(manifest) == "joiner-functions"
        for manifest in manifests
    )
    roles = [
        manifest
        for manifest in manifests
        if manifest.get("kind") == "ClusterRole" and _get_name(manifest) == "joiner-functions"
    ]
    missing = ReadFailure(reason=_NOT_IN_FILES, fix=_FILES_FIX)
    return KubernetesFacts(
        source="files",
        response=None,
        nodes=cluster.nodes,
        node_pools=cluster.node_pools or missing,
        node_classes=cluster.node_classes or missing,
        node_claims=cluster.node_claims,
        namespaces=cluster.namespaces or missing,
        crds=crds or missing,
        deployments=tuple(_build_workload(msgspec.convert(manifest, _Deployment)) for manifest in deployments)
        or missing,
        has_role_binding=is_bound or missing,
        missing_permissions=_find_missing_permissions(roles[0]) if roles else missing,
        missing_feature_permissions=_find_missing_by_feature(roles[0]) if roles else missing,
        read_errors=_format_problems(cluster.problems),
    )


def _measure_api_server(kube: ReadOnlyKube) -> ApiServerResponse:
    started_at = time.monotonic()
    version = msgspec.json.decode(kube.read("/version"), type=_Version).git_version
    elapsed_seconds = time.monotonic() - started_at
    server_time = kube.answered_at
    clock_offset_seconds = None if server_time is None else (server_time - datetime.now(UTC)).total_seconds()
    return ApiServerResponse(
        version=version.removeprefix("v"), seconds=elapsed_seconds, clock_offset_seconds=clock_offset_seconds
    )


def _list_objects(reflector: Reflector, listing: ResourceKind, problems: list[Problem]) -> tuple[Any, ...]:
    values: tuple[Any, ...] = reflector.read_lists([listing], problems)[listing.field]
    return values


def _read_crds(kube: ReadOnlyKube, names: Iterable[str]) -> Iterator[Manifest]:
    for name in names:
        try:
            yield msgspec.json.decode(kube.read(f"{_CRDS_PATH}/{name}"))
        except NotFound:
            continue


def _build_workload(deployment: _Deployment) -> DeploymentFacts:
    images = tuple(container.image for container in deployment.spec.template.spec.containers)
    replicas = deployment.spec.replicas
    return DeploymentFacts(
        namespace=deployment.metadata.namespace, name=deployment.metadata.name, images=images, replicas=replicas
    )


def _is_there(kube: ReadOnlyKube, path: str) -> bool:
    try:
        kube.read(path)
    except NotFound:
        return False
    return True


def _read_role(kube: ReadOnlyKube) -> Manifest:
    """Return the ClusterRole of the functions; one without rules if it does not exist."""
    try:
        role: Manifest = msgspec.json.decode(kube.read(_CLUSTER_ROLE_PATH))
    except NotFound:
        return {"metadata": {"name": "joiner-functions"}}
    return role


def _find_missing_permissions(live_role: Manifest, features: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return the permissions of the shipped ClusterRole with the optional *features* that *live_role* lacks, sorted."""
    granted = frozenset(list_permissions(live_role))
    shipped_role = read_rbac_manifests(features)[0]
    return tuple(
        format_permission(permission)
        for permission in sorted(set(list_permissions(shipped_role)))
        if not is_granted(granted, permission)
    )


def _find_missing_by_feature(live_role: Manifest) -> dict[str, tuple[str, ...]]:
    """Return the permissions that *live_role* lacks only because a feature may be off, by feature."""
    base_permissions = frozenset(_find_missing_permissions(live_role))
    return {
        feature: tuple(
            permission
            for permission in _find_missing_permissions(live_role, frozenset({feature}))
            if permission not in base_permissions
        )
        for feature in sorted(read_optional_rules())
    }


def _get_name(manifest: Mapping[str, Any]) -> str:
    return str(manifest.get("metadata", {}).get("name", ""))


def _format_problems(problems: Iterable[Problem]) -> tuple[str, ...]:
    return tuple(
        f"{problem.kind} {problem.name}: {problem.message}" for problem in sorted(problems) if problem.kind != CRD_KIND
    )
