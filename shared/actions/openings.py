"""Nodes are opened with their places taken: pods are told, it is seen that they were, and only then others may come.

kube-scheduler drops the hint of a pod that it tries in vain, at any moment while the node is closed. So what counts is
how little time there is between the last look at the hints and the opening: a list by field, and a patch.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

import msgspec

from shared.actions.kube_writes import COLLECTIONS, patch_object, path_of
from shared.errors import Conflict, Gone, Invalid
from shared.kube.objects import owner_object
from shared.model.action import NominatePod, RegisterNode
from shared.model.taints import Taint, taint_object
from shared.ports import Kube

PODS: Final = "/api/v1/pods"
ROUNDS: Final = 3
"""How often hints that were dropped are given again before the node is opened all the same."""


def register_node(action: RegisterNode, kube: Kube) -> None:
    """Tell the pods that the node was made for; write everything that registration changes in one patch.

    Raises:
        Conflict: the node is going, or somebody else keeps changing it.
    """
    if action.hints:
        held = _names(kube, f"status.nominatedNodeName={action.name}")
        _tell((hint for hint in action.hints if (hint.namespace, hint.name) not in held), kube)
        for _ in range(ROUNDS):
            if not _tell(_dropped(action.name, action.hints, kube), kube):
                break
    _write(action, kube)
    if action.hints:
        _tell(_dropped(action.name, action.hints, kube), kube)


def nominate_pod(action: NominatePod, kube: Kube) -> None:
    """Merge the node's name into the status of this very pod.

    Raises:
        Conflict: the pod of this name is another one.
    """
    body = {"metadata": {"uid": action.uid}, "status": {"nominatedNodeName": action.node}}
    try:
        path = f"/api/v1/namespaces/{action.namespace}/pods/{action.name}/status"
        kube.patch(path, msgspec.json.encode(body))
    except Invalid as refused:
        raise Conflict(str(refused)) from refused


def _tell(hints: Iterable[NominatePod], kube: Kube) -> int:
    """Give *hints*, and answer how many: pods that are gone, or have a successor of their name, need none."""
    count = 0
    for hint in hints:
        with suppress(Conflict, Gone):
            nominate_pod(hint, kube)
            count += 1
    return count


def _dropped(node: str, hints: Iterable[NominatePod], kube: Kube) -> Iterator[NominatePod]:
    """Answer the hints of pods that still wait and have no hint any more, or another."""
    settled = _names(kube, f"status.nominatedNodeName={node}") | _names(kube, f"spec.nodeName={node}")
    for hint in hints:
        if (hint.namespace, hint.name) not in settled and _waits(hint, kube):
            yield hint


class _Meta(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""
    resourceVersion: str = ""  # noqa: N815 - Kubernetes' own
    finalizers: tuple[str, ...] = ()
    deletionTimestamp: str = ""  # noqa: N815


class _Spec(msgspec.Struct, frozen=True):
    nodeName: str = ""  # noqa: N815
    taints: tuple[Taint, ...] = ()


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta
    spec: _Spec = _Spec()


class _List(msgspec.Struct, frozen=True):
    metadata: dict[str, object] = {}
    items: tuple[_Object, ...] = ()


def _list(kube: Kube, path: str, field_selector: str) -> tuple[_Object, ...]:
    """Answer the first page, of a thousand: no node has more pods. Functions may list what they may not read."""
    found = kube.list(path, field_selector=field_selector, limit=1000)
    return msgspec.json.decode(found, type=_List).items


def _names(kube: Kube, field_selector: str) -> frozenset[tuple[str, str]]:
    found = _list(kube, PODS, field_selector)
    return frozenset((one.metadata.namespace, one.metadata.name) for one in found)


def _waits(hint: NominatePod, kube: Kube) -> bool:
    pods = f"/api/v1/namespaces/{hint.namespace}/pods"
    return any(not one.spec.nodeName for one in _list(kube, pods, f"metadata.name={hint.name}"))


def _write(action: RegisterNode, kube: Kube) -> None:
    """Write at the version that was seen; if there is a newer one, do to that what was decided to do to the other."""
    try:
        _patch(action, kube, action.resource_version)
    except Conflict:
        node = next(iter(_list(kube, COLLECTIONS["Node"], f"metadata.name={action.name}")), None)
        if node is None or not action.seen or node.metadata.deletionTimestamp:
            raise
        _patch(_merged(action, node), kube, node.metadata.resourceVersion)


def _patch(action: RegisterNode, kube: Kube, version: str) -> None:
    metadata: dict[str, object] = {
        "labels": dict(action.labels),
        "annotations": dict(action.annotations),
        "finalizers": list(action.finalizers),
        "ownerReferences": [owner_object(owner) for owner in action.owners],
    }
    spec = {"taints": [taint_object(taint) for taint in action.taints]}
    patch_object(kube, path_of("Node", action.name), version, metadata, spec=spec)


def _merged(action: RegisterNode, node: _Object) -> RegisterNode:
    """Answer *action* for what has become of *node*: taints that came stay, those that went are gone."""
    gone, come = set(action.seen) - set(action.taints), set(action.taints) - set(action.seen)
    taints = [taint for taint in node.spec.taints if taint not in gone]
    taints += [taint for taint in action.taints if taint in come and taint not in taints]
    finalizers = dict.fromkeys((*node.metadata.finalizers, *action.finalizers))
    return msgspec.structs.replace(action, taints=tuple(taints), finalizers=tuple(finalizers))
