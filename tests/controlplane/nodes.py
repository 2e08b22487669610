"""Machines of the embedded cloud as Nodes of a real cluster, whose life kwok runs.

A kubelet registers its node, a cloud controller labels it; neither is here, so both are played. From then on kwok
reports the node ready, renews its lease and runs its pods, as long as the Node has its annotation.
"""

import contextlib
from datetime import datetime
from typing import Any

import msgspec

from shared.errors import Conflict, Gone
from shared.ports import Kube
from sim.cluster.kubelet_boot import UNINITIALIZED, Boot, node_of
from tests.controlplane.commands import KWOK_ANNOTATION

NODES = "/api/v1/nodes"


def kwok_node(boot: Boot, now: datetime) -> dict[str, Any]:
    """Answer the Node that *boot* registers at *now*, as it is once the cloud controller has seen it."""
    node = node_of(boot, now)
    cloud = {
        "node.kubernetes.io/instance-type": boot.instance_type,
        "topology.kubernetes.io/region": boot.region,
        "topology.kubernetes.io/zone": boot.zone,
        **({"topology.k8s.aws/zone-id": boot.zone_id} if boot.zone_id else {}),
        **boot.cloud_labels,
    }
    metadata = node["metadata"]
    taints = [taint for taint in node["spec"]["taints"] if taint != UNINITIALIZED]
    return node | {
        "metadata": metadata | {"labels": metadata["labels"] | cloud, "annotations": {KWOK_ANNOTATION: "fake"}},
        "spec": node["spec"] | {"taints": taints},
    }


def register(kube: Kube, boot: Boot, now: datetime) -> None:
    """Create the Node of *boot*; one that is there already keeps its name, and kwok finds it."""
    with contextlib.suppress(Conflict):
        kube.create(NODES, msgspec.json.encode(kwok_node(boot, now)))


def silence(kube: Kube, name: str) -> None:
    """The machine is gone: kwok leaves the Node alone, and nobody renews its lease; no Node is no error."""
    change = {"metadata": {"annotations": {KWOK_ANNOTATION: None}}}
    with contextlib.suppress(Gone):
        kube.patch(f"{NODES}/{name}", msgspec.json.encode(change))


def remove(kube: Kube, name: str) -> None:
    """Delete the Node, as the cloud controller does once the instance is terminated; no Node is no error."""
    with contextlib.suppress(Gone):
        kube.delete(f"{NODES}/{name}")
