"""A machine that has been switched on, and what its kubelet reports: the Node, and the status of its pods."""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from sim.cluster.controllers.conditions import text_of, with_conditions
from sim.cluster.controllers.informer import Obj
from sim.cluster.stages import EXIT_CODE

UNINITIALIZED: Final = {
    "key": "node.cloudprovider.kubernetes.io/uninitialized",
    "value": "true",
    "effect": "NoSchedule",
}
FINE: Final = {
    "MemoryPressure": "KubeletHasSufficientMemory",
    "DiskPressure": "KubeletHasNoDiskPressure",
    "PIDPressure": "KubeletHasSufficientPID",
}
"""What a kubelet says is not the matter, and why."""
_MACHINES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class Boot(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that has been switched on. Quantities are strings, as a Node has them."""

    node_name: str
    provider_id: str
    instance_type: str
    zone: str
    region: str
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    labels: Mapping[str, str] = {}
    """From the user data."""
    taints: tuple[Mapping[str, str], ...] = ()
    """From the user data."""
    cloud_labels: Mapping[str, str] = {}
    """What the cloud controller adds besides instance type, zone and region."""
    zone_id: str = ""
    arch: str = "amd64"
    os: str = "linux"
    internal_ip: str = ""
    kubelet_version: str = "v1.34.0-eks"
    os_image: str = "Amazon Linux 2023"
    register_after: timedelta = timedelta(seconds=20)
    ready_after: timedelta = timedelta(seconds=10)
    """Counted from registration."""
    late_resources: Mapping[str, str] = {}
    """What device plug-ins report later."""
    late_after: timedelta = timedelta(seconds=20)
    """Counted from registration."""
    volume_limit: int = 0
    """How many EBS volumes can be attached; 0: no CSI driver runs here."""


def node_of(boot: Boot, now: datetime) -> Obj:
    """Answer the Node as the kubelet of *boot* registers it: not ready, not yet known to the cloud controller."""
    labels = {
        **boot.labels,
        "beta.kubernetes.io/arch": boot.arch,
        "beta.kubernetes.io/os": boot.os,
        "kubernetes.io/arch": boot.arch,
        "kubernetes.io/hostname": boot.node_name,
        "kubernetes.io/os": boot.os,
    }
    addresses = [{"type": "InternalIP", "address": boot.internal_ip}] if boot.internal_ip else []
    names = [{"type": kind, "address": boot.node_name} for kind in ("InternalDNS", "Hostname")]
    at = {"lastHeartbeatTime": text_of(now), "lastTransitionTime": text_of(now)}
    fine = [{"type": kind, "status": "False", "reason": reason, **at} for kind, reason in FINE.items()]
    ready = {
        "type": "Ready",
        "status": "False",
        "reason": "KubeletNotReady",
        "message": "cni plugin not initialized",
        **at,
    }
    return {
        "metadata": {"name": boot.node_name, "labels": labels},
        "spec": {
            "providerID": boot.provider_id,
            "taints": [*(dict(taint) for taint in boot.taints), UNINITIALIZED, NOT_READY],
        },
        "status": {
            "capacity": dict(boot.capacity),
            "allocatable": dict(boot.allocatable),
            "addresses": [*addresses, *names],
            "conditions": [*fine, ready],
            "nodeInfo": _node_info(boot),
        },
    }


def csi_node_of(boot: Boot, uid: str) -> Obj:
    """Answer the CSINode by which the EBS driver says how many volumes the machine takes; *uid* is its Node's."""
    driver = {"name": "ebs.csi.aws.com", "nodeID": boot.provider_id.rpartition("/")[2], "topologyKeys": []}
    owner = {"apiVersion": "v1", "kind": "Node", "name": boot.node_name, "uid": uid}
    return {
        "metadata": {"name": boot.node_name, "ownerReferences": [owner]},
        "spec": {"drivers": [driver | {"allocatable": {"count": boot.volume_limit}}]},
    }


def _node_info(boot: Boot) -> Obj:
    """Answer what the kubelet reports of its machine; what a machine has alone comes from its instance's id."""
    one = hashlib.blake2b(boot.provider_id.encode(), digest_size=32).hexdigest()
    machine, start = f"ec2{one[:29]}", one[32:]
    return {
        "architecture": boot.arch,
        "bootID": str(UUID(start)),
        "containerRuntimeVersion": "containerd://2.1.4",
        "kernelVersion": f"6.12.46-66.121.amzn2023.{_MACHINES.get(boot.arch, boot.arch)}",
        "kubeProxyVersion": "",
        "kubeletVersion": boot.kubelet_version,
        "machineID": machine,
        "operatingSystem": boot.os,
        "osImage": boot.os_image,
        "systemUUID": str(UUID(machine)),
    }


def pod_status(pod: Obj, effect: str, boot: Boot, now: datetime) -> Obj:
    """Answer what the kubelet reports of *pod* after *effect*: create, run or finish."""
    at = text_of(now)
    containers = pod["spec"].get("containers") or []
    if effect == "create":
        fresh = _conditions("False", "ContainersNotReady")
        state: Obj = {"waiting": {"reason": "ContainerCreating"}}
        status: Obj = {"phase": "Pending", "startTime": at, "hostIP": boot.internal_ip}
    elif effect == "run":
        fresh = _conditions("True", "")
        state = {"running": {"startedAt": at}}
        status = {"phase": "Running", "podIP": _pod_ip(pod, boot)}
    else:
        code = int((pod["metadata"].get("annotations") or {}).get(EXIT_CODE, "0"))
        fresh = _conditions("False", "PodFailed" if code else "PodCompleted")
        reason = "Error" if code else "Completed"
        state = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": at}}
        status = {"phase": "Failed" if code else "Succeeded"}
    running = effect == "run"
    entries = [
        {"name": c["name"], "ready": running, "started": running, "restartCount": 0, "state": state} for c in containers
    ]
    return {**status, "conditions": with_conditions(pod, fresh, now), "containerStatuses": entries}


def _conditions(ready: str, reason: str) -> list[Obj]:
    why = {"reason": reason} if reason else {}
    return [
        {"type": "PodReadyToStartContainers", "status": "True"},
        {"type": "Initialized", "status": "True"},
        {"type": "Ready", "status": ready, **why},
        {"type": "ContainersReady", "status": ready, **why},
        {"type": "PodScheduled", "status": "True"},
    ]


def _pod_ip(pod: Obj, boot: Boot) -> str:
    if pod["spec"].get("hostNetwork"):
        return boot.internal_ip
    second, third, fourth = hashlib.blake2b(pod["metadata"]["uid"].encode(), digest_size=3).digest()
    return f"100.{64 + second % 64}.{third}.{fourth}"
