"""Histories of a cluster, written through the `Kube` port: the same ones happen in memory and on a real API server.

A history is a list of steps: some writes, then something else. All kinds of a snapshot are written to; what the server
refuses is no matter here.
"""

from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import Any, Final

import msgspec
from hypothesis import strategies as st

from shared.errors import Fault
from shared.model.cluster import ClusterSnapshot
from shared.ports.kubernetes import Kube, WatchEvents

Object = dict[str, Any]
Write = tuple[str, str, str, str]
"""What is done, to which kind, to which object of it, and a word that makes a difference."""
Step = tuple[Any, ...]

PODS: Final = "/api/v1/namespaces/default/pods"
_REF: Final = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
_NEED: Final = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
_EVERYWHERE: Final = [{"tags": {"karpenter.sh/discovery": "demo"}}]
_GIB: Final = {"storage": "1Gi"}
_PHASES: Final = {"x": "Failed", "1": "Running", "lots": "Succeeded"}


def build_pod_spec(cpu: str) -> Object:
    """Build the spec of a pod that requests *cpu*."""
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu or "1"}}}]}


def _build_daemon_set(word: str) -> Object:
    labels = {"app": "d"}
    template = {"metadata": {"labels": labels}, "spec": build_pod_spec(word)}
    return {"spec": {"selector": {"matchLabels": labels}, "template": template}}


def _build_volume(word: str) -> Object:
    source = {"driver": "ebs.csi.aws.com", "volumeHandle": word or "v"}
    return {"spec": {"capacity": _GIB, "accessModes": ["ReadWriteOnce"], "csi": source}}


def _build_node_class(word: str) -> Object:
    alias = [{"alias": "al2023@latest"}]
    spec = {"amiSelectorTerms": alias, "subnetSelectorTerms": _EVERYWHERE, "securityGroupSelectorTerms": _EVERYWHERE}
    return {"spec": spec | {"role": word or "role"}}


def _build_csi_node(word: str) -> Object:
    driver = {"name": "ebs.csi.aws.com", "nodeID": "i-1", "allocatable": {"count": 7}}
    return {"spec": {"drivers": [driver] if word else []}}


BODIES: Final[dict[str, tuple[str, str, str, Callable[[str], Object]]]] = {
    "nodes": ("v1", "Node", "/api/v1/nodes", lambda word: {"spec": {"providerID": f"aws:///{word}"}}),
    "node_claims": (
        "karpenter.sh/v1",
        "NodeClaim",
        "/apis/karpenter.sh/v1/nodeclaims",
        lambda _: {"spec": {"nodeClassRef": _REF, "requirements": [_NEED]}},
    ),
    "pods": ("v1", "Pod", PODS, lambda word: {"spec": build_pod_spec(word)}),
    "node_pools": (
        "karpenter.sh/v1",
        "NodePool",
        "/apis/karpenter.sh/v1/nodepools",
        lambda _: {"spec": {"template": {"spec": {"nodeClassRef": _REF, "requirements": [_NEED]}}}},
    ),
    "node_classes": (
        "karpenter.k8s.aws/v1",
        "EC2NodeClass",
        "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
        _build_node_class,
    ),
    "daemon_sets": ("apps/v1", "DaemonSet", "/apis/apps/v1/namespaces/default/daemonsets", _build_daemon_set),
    "budgets": (
        "policy/v1",
        "PodDisruptionBudget",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        lambda word: {"spec": {"maxUnavailable": len(word)}},
    ),
    "namespaces": ("v1", "Namespace", "/api/v1/namespaces", lambda _: {}),
    "volumes": ("v1", "PersistentVolume", "/api/v1/persistentvolumes", _build_volume),
    "volume_claims": (
        "v1",
        "PersistentVolumeClaim",
        "/api/v1/namespaces/default/persistentvolumeclaims",
        lambda word: {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": _GIB}, "volumeName": word}},
    ),
    "storage_classes": (
        "storage.k8s.io/v1",
        "StorageClass",
        "/apis/storage.k8s.io/v1/storageclasses",
        lambda word: {"provisioner": f"{word or 'ebs'}.csi.aws.com"},
    ),
    "csi_nodes": ("storage.k8s.io/v1", "CSINode", "/apis/storage.k8s.io/v1/csinodes", _build_csi_node),
    "volume_attachments": (
        "storage.k8s.io/v1",
        "VolumeAttachment",
        "/apis/storage.k8s.io/v1/volumeattachments",
        lambda word: {
            "spec": {"attacher": "ebs", "nodeName": word or "n", "source": {"persistentVolumeName": word or "v"}}
        },
    ),
}
"""By the field of a Cluster: apiVersion, kind, where it is made, and what is said besides the name."""


def _build_condition_status(word: str) -> Object:
    return {"status": {"conditions": [{"type": "Ready", "status": word or "Unknown", "reason": "R", "message": ""}]}}


STATES: Final[dict[str, Callable[[str], Object]]] = {
    "nodes": lambda word: {"status": _build_condition_status(word)["status"] | {"capacity": {"cpu": word or "4"}}},
    "node_claims": lambda word: {"status": {"providerID": word}},
    "pods": lambda word: {"status": {"phase": _PHASES.get(word, "Pending")}},
    "node_classes": lambda word: {"status": {"instanceProfile": word}},
    "budgets": lambda word: {"status": {"disruptionsAllowed": len(word)}},
    "namespaces": lambda _: {"status": {"phase": "Active"}},
    "volumes": lambda word: {"status": {"phase": "Bound" if word else "Available"}},
    "volume_claims": lambda word: {"status": {"phase": "Bound" if word else "Pending"}},
}
"""What status may say."""
CHANGES: Final[dict[str, Callable[[str], Object]]] = {
    "nodes": lambda word: {"spec": {"taints": [{"key": "t", "value": word, "effect": "NoSchedule"}]}},
    "node_pools": lambda word: {"spec": {"weight": len(word) + 1}},
    "node_classes": lambda word: {"spec": {"userData": word or None}},
    "daemon_sets": lambda word: {"spec": {"template": {"spec": build_pod_spec(word)}}},
    "budgets": lambda word: {"spec": {"maxUnavailable": f"{len(word)}0%"}},
    "storage_classes": lambda word: {"allowVolumeExpansion": bool(word)},
}
"""What may be made of a spec."""


def _build_path(kind: str, name: str) -> str:
    """Return the path of an object."""
    return f"{BODIES[kind][2]}/{name}"


def _patch(kube: Kube, path: str, change: Object) -> None:
    kube.patch(path, msgspec.json.encode(change))


def _create(kube: Kube, kind: str, name: str, word: str) -> None:
    api, kind_name, collection, parts = BODIES[kind]
    body = {"apiVersion": api, "kind": kind_name, "metadata": {"name": name}} | parts(word)
    kube.create(collection, msgspec.json.encode(body))


def _set_label(kube: Kube, kind: str, name: str, word: str) -> None:
    _patch(kube, _build_path(kind, name), {"metadata": {"labels": {"l": word or None}}})


def _change_spec(kube: Kube, kind: str, name: str, word: str) -> None:
    if kind in CHANGES:
        _patch(kube, _build_path(kind, name), CHANGES[kind](word))


def _write_status(kube: Kube, kind: str, name: str, word: str) -> None:
    if kind in STATES:
        _patch(kube, f"{_build_path(kind, name)}/status", STATES[kind](word))


def _remove(kube: Kube, kind: str, name: str, word: str) -> None:
    kube.delete(_build_path(kind, name), b"" if word else b'{"gracePeriodSeconds":0}')


def _bind(kube: Kube, _: str, name: str, word: str) -> None:
    target = {"kind": "Node", "name": f"node-{word or 'a'}"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    kube.create(f"{PODS}/{name}/binding", msgspec.json.encode(body))


def _evict(kube: Kube, _: str, name: str, __: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    kube.create(f"{PODS}/{name}/eviction", msgspec.json.encode(body))


_VERBS: Final[dict[str, Callable[[Kube, str, str, str], None]]] = {
    "make": _create,
    "label": _set_label,
    "change": _change_spec,
    "tell": _write_status,
    "remove": _remove,
    "bind": _bind,
    "evict": _evict,
}
NAMES: Final = "abcd"
_WRITES: Final = st.tuples(
    st.sampled_from(("make", "make", "label", "change", "tell", "remove")),
    st.sampled_from(("pods", "pods", "nodes", *BODIES)),
    st.sampled_from(NAMES),
    st.sampled_from(("", "x", "1", "lots")),
) | st.tuples(st.sampled_from(("bind", "evict")), st.just("pods"), st.sampled_from(NAMES), st.sampled_from(("", "x")))


def generate_writes(min_count: int, max_count: int) -> st.SearchStrategy[Step]:
    """Draw a step of *min_count* to *max_count* writes."""
    return st.lists(_WRITES, min_size=min_count, max_size=max_count).map(lambda some: ("write", *some))


def generate_histories(
    other_steps: st.SearchStrategy[Step], *, max_pairs: int, at_once: int = 8
) -> st.SearchStrategy[list[Step]]:
    """Draw a history: writes and a step of *other_steps* in turn, up to *max_pairs* times."""
    pairs = st.lists(st.tuples(generate_writes(3, at_once), other_steps), min_size=1, max_size=max_pairs)
    return pairs.map(lambda some: [*chain(*some)])


def write(kube: Kube, verb: str, kind: str, name: str, word: str) -> None:
    """Do one write."""
    with suppress(Fault):
        _VERBS[verb](kube, kind, name, word)


def create_three_of_each(kube: Kube) -> None:
    """Make three of each kind."""
    for name in NAMES[:3]:
        for kind in BODIES:
            write(kube, "make", kind, name, "1")


def encode_snapshot(cluster: ClusterSnapshot) -> bytes:
    """Encode *cluster* without problems about forbidden watches: a snapshot made of lists does not have them."""
    problems = tuple(problem for problem in cluster.problems if problem.kind != "Watch")
    return msgspec.json.encode(msgspec.structs.replace(cluster, problems=problems))


class Interrupted:
    """A `Kube` that does something after the first page of a list, once."""

    def __init__(self, kube: Kube) -> None:
        """Pass everything on to *kube*."""
        self._kube = kube
        self.lists = 0
        self.between: Callable[[], object] | None = None

    def list(self, path: str, **options: Any) -> bytes:
        if not options.get("continue_token"):
            self.lists += 1
        body = self._kube.list(path, **options)
        if self.between is not None and b'"continue":' in body:
            between, self.between = self.between, None
            between()
        return body

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], WatchEvents]:
        return self._kube.watch(path, since=since, field_selector=field_selector)
