"""Node registration with nominations: pods are nominated, the nominations are verified, then the node is opened.

kube-scheduler drops the nomination of a pod that it tries in vain, at any moment while the node is still tainted. So
the time between the last check of the nominations and the registration must be short: a list by field, and a patch.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

import msgspec

from shared.apply.kubernetes.writes import patch_object
from shared.errors import Conflict, Invalid, NotFound
from shared.model.core.taints import Taint, encode_taint
from shared.model.decisions.action import NominatePod, RegisterNode
from shared.ports.kubernetes import Kube
from shared.wire.encode.node_claim import encode_owner_reference
from shared.wire.paths import COLLECTION_PATHS, build_object_path

PODS_PATH: Final = "/api/v1/pods"
MAX_NOMINATION_ROUNDS: Final = 3
"""How often dropped nominations are repeated before the node is registered in any case."""


def register_node(action: RegisterNode, kube: Kube) -> None:
    """Nominate the pods that the node was created for, then write all changes of the registration in one patch.

    Raises:
        Conflict: the node is being deleted, or another controller keeps changing it.
    """
    if action.nominations:
        nominated_pods = _list_pod_names(kube, f"status.nominatedNodeName={action.name}")
        _send_nominations(
            (hint for hint in action.nominations if (hint.namespace, hint.name) not in nominated_pods), kube
        )
        for _ in range(MAX_NOMINATION_ROUNDS):
            if not _send_nominations(_find_dropped_nominations(action.name, action.nominations, kube), kube):
                break
    _write_registration(action, kube)
    if action.nominations:
        _send_nominations(_find_dropped_nominations(action.name, action.nominations, kube), kube)


def nominate_pod(action: NominatePod, kube: Kube) -> None:
    """Set the node's name in the status of the pod with this uid.

    Raises:
        Conflict: the pod with this name is another one.
    """
    body = {"metadata": {"uid": action.uid}, "status": {"nominatedNodeName": action.node}}
    try:
        path = f"/api/v1/namespaces/{action.namespace}/pods/{action.name}/status"
        kube.patch(path, msgspec.json.encode(body))
    except Invalid as refused:
        raise Conflict(str(refused)) from refused


def _send_nominations(nominations: Iterable[NominatePod], kube: Kube) -> int:
    """Send *nominations* and return their number; deleted and recreated pods are skipped."""
    count = 0
    for nomination in nominations:
        with suppress(Conflict, NotFound):
            nominate_pod(nomination, kube)
            count += 1
    return count


def _find_dropped_nominations(node: str, nominations: Iterable[NominatePod], kube: Kube) -> Iterator[NominatePod]:
    """Yield the nominations of pods that are still pending and have no nomination any more, or a different one."""
    settled_pods = _list_pod_names(kube, f"status.nominatedNodeName={node}") | _list_pod_names(
        kube, f"spec.nodeName={node}"
    )
    for nomination in nominations:
        if (nomination.namespace, nomination.name) not in settled_pods and _is_pending(nomination, kube):
            yield nomination


class _ObjectMeta(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""
    resourceVersion: str = ""  # noqa: N815 - Kubernetes' own
    finalizers: tuple[str, ...] = ()
    deletionTimestamp: str = ""  # noqa: N815


class _Spec(msgspec.Struct, frozen=True):
    nodeName: str = ""  # noqa: N815
    taints: tuple[Taint, ...] = ()


class _Object(msgspec.Struct, frozen=True):
    metadata: _ObjectMeta
    spec: _Spec = _Spec()


class _List(msgspec.Struct, frozen=True):
    metadata: dict[str, object] = {}
    items: tuple[_Object, ...] = ()


def _list_objects(kube: Kube, path: str, field_selector: str) -> tuple[_Object, ...]:
    """Return the first page, of at most a thousand objects: no node has more pods.

    Listing is used because functions may list objects that they may not read.
    """
    body = kube.list(path, field_selector=field_selector, limit=1000)
    return msgspec.json.decode(body, type=_List).items


def _list_pod_names(kube: Kube, field_selector: str) -> frozenset[tuple[str, str]]:
    pods = _list_objects(kube, PODS_PATH, field_selector)
    return frozenset((pod.metadata.namespace, pod.metadata.name) for pod in pods)


def _is_pending(nomination: NominatePod, kube: Kube) -> bool:
    path = f"/api/v1/namespaces/{nomination.namespace}/pods"
    return any(not pod.spec.nodeName for pod in _list_objects(kube, path, f"metadata.name={nomination.name}"))


def _write_registration(action: RegisterNode, kube: Kube) -> None:
    """Patch the node at the observed version; on a conflict, apply the same changes to the newer version."""
    try:
        _patch_node(action, kube, action.resource_version)
    except Conflict:
        node = next(iter(_list_objects(kube, COLLECTION_PATHS["Node"], f"metadata.name={action.name}")), None)
        if node is None or not action.observed_taints or node.metadata.deletionTimestamp:
            raise
        _patch_node(_rebase_registration(action, node), kube, node.metadata.resourceVersion)


def _patch_node(action: RegisterNode, kube: Kube, version: str) -> None:
    metadata: dict[str, object] = {
        "labels": dict(action.labels),
        "annotations": dict(action.annotations),
        "finalizers": list(action.finalizers),
        "ownerReferences": [encode_owner_reference(owner) for owner in action.owners],
    }
    spec = {"taints": [encode_taint(taint) for taint in action.taints]}
    patch_object(kube, build_object_path("Node", action.name), version, metadata, spec=spec)


def _rebase_registration(action: RegisterNode, node: _Object) -> RegisterNode:
    """Return *action* adapted to the current *node*: taints that were added or removed since are respected."""
    removed_taints, added_taints = (
        set(action.observed_taints) - set(action.taints),
        set(action.taints) - set(action.observed_taints),
    )
    taints = [taint for taint in node.spec.taints if taint not in removed_taints]
    taints += [taint for taint in action.taints if taint in added_taints and taint not in taints]
    finalizers = dict.fromkeys((*node.metadata.finalizers, *action.finalizers))
    return msgspec.structs.replace(action, taints=tuple(taints), finalizers=tuple(finalizers))
