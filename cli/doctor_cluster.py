"""What `joiner doctor` sees of a cluster: over its API, or in files that kubectl wrote."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Final, TypeVar

import msgspec

from cli.checks.facts import Answer, Kubernetes, Manifest, Unseen, Workload
from cli.doctor_events import notices
from cli.files import InputError, Tell
from cli.inputs import documents_in, objects_of
from cli.kubeconfig import Reached, ReadOnlyKube
from cli.listed import listed
from cli.progress import progress
from cli.remedies import SIGN_IN, is_unsigned
from cli.text import cut
from shared.errors import Fault, Forbidden, Gone
from shared.kube.definitions import definitions
from shared.model.objects import Problem
from shared.snapshot.documents import cluster_from_documents
from shared.snapshot.kinds import LISTINGS, Listing
from shared.snapshot.watching import Watching

T = TypeVar("T")

FIELDS: Final = ("nodes", "node_pools", "node_classes", "node_claims", "namespaces")
DEFINITION: Final = "CustomResourceDefinition"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_BINDING: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/joiner-functions"
_DEPLOYMENTS: Final = "/apis/apps/v1/deployments"
_MOST: Final = 240
"""Characters of what somebody says who should have answered: a proxy sends a whole page."""
_NOT_THERE: Final = "the files have none"
_ADD: Final = "add what `kubectl get crd,clusterrolebindings,deployments,ns,nodepools,ec2nodeclasses -A -o json` writes"


class _Named(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""


class _Container(msgspec.Struct, frozen=True):
    image: str = ""


class _PodSpec(msgspec.Struct, frozen=True):
    containers: tuple[_Container, ...] = ()


class _Template(msgspec.Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _Spec(msgspec.Struct, frozen=True):
    template: _Template = _Template()
    replicas: int = 1


class _Deployment(msgspec.Struct, frozen=True):
    metadata: _Named
    spec: _Spec = _Spec()


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = ""


def seen(ask: Callable[[], T]) -> T | Unseen:
    """Answer what *ask* does, or why it does not."""
    try:
        return ask()
    except Fault as fault:
        words = " ".join(str(fault).split())
        return Unseen(
            why=f"{type(fault).__name__}: {cut(words, _MOST)}",
            is_denied=isinstance(fault, Forbidden),
            remedy=SIGN_IN if is_unsigned(fault) else "",
        )


def of_cluster(reached: Reached, now: datetime, shipped: Iterable[Manifest]) -> Kubernetes:
    """Look at the cluster that was *reached*; once it does not answer, it is not asked for the rest."""
    kube, problems = reached.kube, list[Problem]()
    with progress(f"looking at {reached.context}"):
        answer = seen(lambda: _answer(kube))
        if isinstance(answer, Unseen) and not answer.is_denied:
            return _blind(reached.server, answer)
        parts: dict[str, Any] = {}
        for listing in LISTINGS:
            if listing.field in FIELDS:
                parts[listing.field] = seen(partial(_listed, Watching(kube, None, now), listing, problems))
        names = [one["metadata"]["name"] for one in shipped]
        return Kubernetes(
            where=reached.server,
            answer=answer,
            definitions=seen(lambda: tuple(_defined(kube, names))),
            workloads=seen(lambda: tuple(map(_workload, listed(kube, _DEPLOYMENTS, _Deployment)))),
            is_bound=seen(lambda: _is_there(kube, _BINDING)),
            notices=seen(lambda: tuple(notices(kube, now))),
            told=_told(problems),
            **parts,
        )


def of_files(sources: Iterable[str], now: datetime, tell: Tell) -> Kubernetes:
    """Look at what kubectl wrote to files; of what is in none of them nothing is concluded.

    Raises:
        InputError: there is nothing in them.
    """
    with progress("reading files"):
        objects = list(objects_of(documents_in(sources, tell), tell))
        if not objects:
            raise InputError("nothing could be read of the cluster")
        cluster = cluster_from_documents([one.source for one in objects], now, assume_unschedulable=False)
    plain = [one.value for one in objects if isinstance(one.value, Mapping)]
    defined = tuple(one for one in plain if one.get("kind") == DEFINITION)
    deployed = tuple(one for one in plain if one.get("kind") == "Deployment")
    bound = any(one.get("kind") == "ClusterRoleBinding" and _name(one) == "joiner-functions" for one in plain)
    missing = Unseen(why=_NOT_THERE, remedy=_ADD)
    return Kubernetes(
        where="files",
        answer=None,
        nodes=cluster.nodes,
        node_pools=cluster.node_pools or missing,
        node_classes=cluster.node_classes or missing,
        node_claims=cluster.node_claims,
        namespaces=cluster.namespaces or missing,
        definitions=defined or missing,
        workloads=tuple(_workload(msgspec.convert(one, _Deployment)) for one in deployed) or missing,
        is_bound=bound or missing,
        told=_told(cluster.problems),
    )


def _blind(where: str, why: Unseen) -> Kubernetes:
    return Kubernetes(
        where=where,
        answer=why,
        nodes=why,
        node_pools=why,
        node_classes=why,
        node_claims=why,
        namespaces=why,
        definitions=why,
        workloads=why,
        is_bound=why,
        notices=why,
    )


def _answer(kube: ReadOnlyKube) -> Answer:
    begun = time.monotonic()
    version = msgspec.json.decode(kube.read("/version"), type=_Version).git_version
    passed = time.monotonic() - begun
    told = kube.answered_at
    ahead = None if told is None else (told - datetime.now(UTC)).total_seconds()
    return Answer(version=version.removeprefix("v"), seconds=passed, ahead_seconds=ahead)


def _listed(watching: Watching, listing: Listing, problems: list[Problem]) -> tuple[Any, ...]:
    values: tuple[Any, ...] = watching.lists([listing], problems)[listing.field]
    return values


def _defined(kube: ReadOnlyKube, names: Iterable[str]) -> Iterator[Manifest]:
    for name in names:
        try:
            yield msgspec.json.decode(kube.read(f"{_DEFINITIONS}/{name}"))
        except Gone:
            continue


def _workload(one: _Deployment) -> Workload:
    images = tuple(each.image for each in one.spec.template.spec.containers)
    replicas = one.spec.replicas
    return Workload(namespace=one.metadata.namespace, name=one.metadata.name, images=images, replicas=replicas)


def _is_there(kube: ReadOnlyKube, path: str) -> bool:
    try:
        kube.read(path)
    except Gone:
        return False
    return True


def _name(one: Mapping[str, Any]) -> str:
    return str(one.get("metadata", {}).get("name", ""))


def _told(problems: Iterable[Problem]) -> tuple[str, ...]:
    return tuple(f"{one.kind} {one.name}: {one.message}" for one in sorted(problems) if one.kind != DEFINITION)


@cache
def shipped() -> tuple[Manifest, ...]:
    """Answer our definitions, as they are installed."""
    return tuple(msgspec.yaml.decode(text) for text in definitions())
