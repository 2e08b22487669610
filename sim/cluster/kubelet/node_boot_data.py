"""Boot data of an instance, and what its kubelet reports: the Node and the status of its pods."""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from sim.cluster.controller_runtime.informer import Obj
from sim.cluster.controller_runtime.object_conditions import format_timestamp, with_conditions
from sim.cluster.kubelet.pod_stages import EXIT_CODE_ANNOTATION

UNINITIALIZED_TAINT: Final = {
    "key": "node.cloudprovider.kubernetes.io/uninitialized",
    "value": "true",
    "effect": "NoSchedule",
}
HEALTHY_CONDITION_REASONS: Final = {
    "MemoryPressure": "KubeletHasSufficientMemory",
    "DiskPressure": "KubeletHasNoDiskPressure",
    "PIDPressure": "KubeletHasSufficientPID",
}
"""Node conditions that are False on a healthy node, with their reasons."""
_KERNEL_ARCHITECTURES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
NOT_READY_TAINT: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class NodeBoot(msgspec.Struct, frozen=True, kw_only=True):
    """An instance that has booted, as its kubelet reports it. Quantities are strings, as in a Node."""

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
    """Labels that the cloud controller adds in addition to instance type, zone and region."""
    zone_id: str = ""
    arch: str = "amd64"
    os: str = "linux"
    internal_ip: str = ""
    kubelet_version: str = "v1.34.0-eks"
    os_image: str = "Amazon Linux 2023"
    register_after: timedelta = timedelta(seconds=20)
    ready_after: timedelta = timedelta(seconds=10)
    """Delay after registration."""
    device_resources: Mapping[str, str] = {}
    """Resources that device plug-ins report later."""
    device_plugin_delay: timedelta = timedelta(seconds=20)
    """Delay after registration."""
    volume_limit: int = 0
    """Maximum number of attached EBS volumes; 0: no CSI driver runs on the node."""


def build_node(boot: NodeBoot, now: datetime) -> Obj:
    """Return the Node as its kubelet registers it: not ready, not yet initialized by the cloud controller."""
    labels = {
        **boot.labels,
        "beta.kubernetes.io/arch": boot.arch,
        "beta.kubernetes.io/os": boot.os,
        "kubernetes.io/arch": boot.arch,
        "kubernetes.io/hostname": boot.node_name,
        "kubernetes.io/os": boot.os,
    }
    addresses = [{"type": "InternalIP", "address": boot.internal_ip}] if boot.internal_ip else []
    name_addresses = [{"type": kind, "address": boot.node_name} for kind in ("InternalDNS", "Hostname")]
    timestamps = {"lastHeartbeatTime": format_timestamp(now), "lastTransitionTime": format_timestamp(now)}
    healthy_conditions = [
        {"type": kind, "status": "False", "reason": reason, **timestamps}
        for kind, reason in HEALTHY_CONDITION_REASONS.items()
    ]
    ready_condition = {
        "type": "Ready",
        "status": "False",
        "reason": "KubeletNotReady",
        "message": "cni plugin not initialized",
        **timestamps,
    }
    return {
        "metadata": {"name": boot.node_name, "labels": labels},
        "spec": {
            "providerID": boot.provider_id,
            "taints": [*(dict(taint) for taint in boot.taints), UNINITIALIZED_TAINT, NOT_READY_TAINT],
        },
        "status": {
            "capacity": dict(boot.capacity),
            "allocatable": dict(boot.allocatable),
            "addresses": [*addresses, *name_addresses],
            "conditions": [*healthy_conditions, ready_condition],
            "nodeInfo": _build_node_info(boot),
        },
    }


def build_csi_node(boot: NodeBoot, uid: str) -> Obj:
    """Return the CSINode with the volume limit of the EBS driver; *uid* is the UID of the Node."""
    driver = {"name": "ebs.csi.aws.com", "nodeID": boot.provider_id.rpartition("/")[2], "topologyKeys": []}
    owner = {"apiVersion": "v1", "kind": "Node", "name": boot.node_name, "uid": uid}
    return {
        "metadata": {"name": boot.node_name, "ownerReferences": [owner]},
        "spec": {"drivers": [driver | {"allocatable": {"count": boot.volume_limit}}]},
    }


def _build_node_info(boot: NodeBoot) -> Obj:
    """Return the `nodeInfo` of the kubelet; the ids of the machine are derived from the instance id."""
    digest = hashlib.blake2b(boot.provider_id.encode(), digest_size=32).hexdigest()
    machine_id, boot_id = f"ec2{digest[:29]}", digest[32:]
    return {
        "architecture": boot.arch,
        "bootID": str(UUID(boot_id)),
        "containerRuntimeVersion": "containerd://2.1.4",
        "kernelVersion": f"6.12.46-66.121.amzn2023.{_KERNEL_ARCHITECTURES.get(boot.arch, boot.arch)}",
        "kubeProxyVersion": "",
        "kubeletVersion": boot.kubelet_version,
        "machineID": machine_id,
        "operatingSystem": boot.os,
        "osImage": boot.os_image,
        "systemUUID": str(UUID(machine_id)),
    }


def build_pod_status(pod: Obj, effect: str, boot: NodeBoot, now: datetime) -> Obj:
    """Return the status that the kubelet reports for *pod* after *effect*: create, run or finish."""
    now_text = format_timestamp(now)
    containers = pod["spec"].get("containers") or []
    if effect == "create":
        new_conditions = _build_pod_conditions("False", "ContainersNotReady")
        state: Obj = {"waiting": {"reason": "ContainerCreating"}}
        status: Obj = {"phase": "Pending", "startTime": now_text, "hostIP": boot.internal_ip}
    elif effect == "run":
        new_conditions = _build_pod_conditions("True", "")
        state = {"running": {"startedAt": now_text}}
        status = {"phase": "Running", "podIP": _compute_pod_ip(pod, boot)}
    else:
        exit_code = int((pod["metadata"].get("annotations") or {}).get(EXIT_CODE_ANNOTATION, "0"))
        new_conditions = _build_pod_conditions("False", "PodFailed" if exit_code else "PodCompleted")
        reason = "Error" if exit_code else "Completed"
        state = {"terminated": {"exitCode": exit_code, "reason": reason, "finishedAt": now_text}}
        status = {"phase": "Failed" if exit_code else "Succeeded"}
    running = effect == "run"
    container_statuses = [
        {"name": container["name"], "ready": running, "started": running, "restartCount": 0, "state": state}
        for container in containers
    ]
    return {**status, "conditions": with_conditions(pod, new_conditions, now), "containerStatuses": container_statuses}


def _build_pod_conditions(ready: str, reason: str) -> list[Obj]:
    reason_field = {"reason": reason} if reason else {}
    return [
        {"type": "PodReadyToStartContainers", "status": "True"},
        {"type": "Initialized", "status": "True"},
        {"type": "Ready", "status": ready, **reason_field},
        {"type": "ContainersReady", "status": ready, **reason_field},
        {"type": "PodScheduled", "status": "True"},
    ]


def _compute_pod_ip(pod: Obj, boot: NodeBoot) -> str:
    if pod["spec"].get("hostNetwork"):
        return boot.internal_ip
    second, third, fourth = hashlib.blake2b(pod["metadata"]["uid"].encode(), digest_size=3).digest()
    return f"100.{64 + second % 64}.{third}.{fourth}"
