"""User data: what a new machine is told, in the words of its image family (spec-aws chapter 16).

Labels that node admission forbids a kubelet to set on itself are left out: our controller adds them at registration.
"""

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from shared.model.ec2 import ClusterFacts
from shared.model.labels import DO_NOT_SYNC_TAINTS
from shared.model.nodeclasses import EC2NodeClass, Kubelet
from shared.model.objects import Pairs
from shared.model.taints import UNREGISTERED, Taint, taint_object

_FORBIDDEN: Final = ("kubernetes.io", "k8s.io", "node-restriction.kubernetes.io")
_BOUNDARY: Final = "//"


class Bootstrap(msgspec.Struct, frozen=True, kw_only=True):
    """What every family needs to know."""

    facts: ClusterFacts
    labels: Pairs
    taints: tuple[Taint, ...]
    max_pods: int


def user_data(node_class: EC2NodeClass, boot: Bootstrap) -> str:
    """Answer the text that EC2 is given in base64.

    Raises:
        ValueError: the family is not one that we can bootstrap; the message names it and what to use instead.
    """
    match node_class.ami_family:
        case "AL2023":
            return _al2023(node_class, boot)
        case "Bottlerocket":
            return _bottlerocket(node_class, boot)
        case "Custom":
            return node_class.user_data
        case family:
            raise ValueError(
                f"spec.amiFamily: {family!r} cannot be bootstrapped yet: use AL2023, Bottlerocket or Custom"
            )


def encoded(text: str) -> str:
    """Answer base64, as EC2 wants it."""
    return base64.b64encode(text.encode()).decode()


def node_labels(boot: Bootstrap) -> dict[str, str]:
    """Answer the labels that the kubelet registers with, sorted."""
    own = {key: value for key, value in boot.labels if not _is_forbidden(key)}
    return dict(sorted((own | {DO_NOT_SYNC_TAINTS: "true"}).items()))


def all_taints(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Answer *taints* and the one that keeps pods away until registration."""
    some = tuple(taints)
    return some if any(taint.is_same(UNREGISTERED) for taint in some) else (*some, UNREGISTERED)


def kubelet_config(kubelet: Kubelet, boot: Bootstrap) -> dict[str, object]:
    """Answer KubeletConfiguration fields, those that were set."""
    fields: dict[str, object] = {
        "maxPods": boot.max_pods,
        "clusterDNS": list(kubelet.cluster_dns),
        "podsPerCore": kubelet.pods_per_core,
        "kubeReserved": dict(kubelet.kube_reserved),
        "systemReserved": dict(kubelet.system_reserved),
        "evictionHard": dict(kubelet.eviction_hard),
        "evictionSoft": dict(kubelet.eviction_soft),
        "evictionSoftGracePeriod": dict(kubelet.eviction_soft_grace_period),
        "evictionMaxPodGracePeriod": kubelet.eviction_max_pod_grace_period,
        "imageGCHighThresholdPercent": kubelet.image_gc_high_threshold_percent,
        "imageGCLowThresholdPercent": kubelet.image_gc_low_threshold_percent,
        "cpuCFSQuota": kubelet.cpu_cfs_quota,
        "registerWithTaints": [taint_object(taint) for taint in all_taints(boot.taints)],
    }
    return {name: value for name, value in fields.items() if value is not None and value not in ([], {})}


def _al2023(node_class: EC2NodeClass, boot: Bootstrap) -> str:
    flags = ",".join(f"{key}={value}" for key, value in node_labels(boot).items())
    instance = {"localStorage": {"strategy": "RAID0"}} if node_class.instance_store_policy == "RAID0" else None
    spec: dict[str, object] = {
        "cluster": {
            "name": boot.facts.name,
            "apiServerEndpoint": boot.facts.endpoint,
            "certificateAuthority": boot.facts.certificate_authority,
            "cidr": boot.facts.service_cidr,
        },
        "kubelet": {"config": kubelet_config(node_class.kubelet, boot), "flags": [f'--node-labels="{flags}"']},
    }
    if instance is not None:
        spec["instance"] = instance
    config = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}
    # JSON is YAML, and its bytes are the same in every process.
    return _mime([*_custom_parts(node_class.user_data), ("application/node.eks.aws", json.dumps(config, indent=1))])


def _custom_parts(text: str) -> list[tuple[str, str]]:
    stripped = text.strip()
    if not stripped:
        return []
    if stripped.startswith(("MIME-Version:", "Content-Type: multipart/")):
        return _mime_parts(stripped)
    kind = "application/node.eks.aws" if "kind: NodeConfig" in stripped else 'text/x-shellscript; charset="us-ascii"'
    return [(kind, stripped)]


def _mime_parts(text: str) -> list[tuple[str, str]]:
    from email.parser import Parser  # noqa: PLC0415 - 20 ms of a cold start that few need

    message = Parser().parsestr(text)
    if not message.is_multipart():
        raise ValueError("spec.userData: begins like a MIME archive but has no parts: check its boundary")
    return [(str(part["Content-Type"]), str(part.get_payload())) for part in message.walk() if not part.is_multipart()]


def _mime(parts: Iterable[tuple[str, str]]) -> str:
    head = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{_BOUNDARY}"\n\n'
    body = "".join(f"--{_BOUNDARY}\nContent-Type: {kind}\n\n{text}\n\n" for kind, text in parts)
    return (head + body + f"--{_BOUNDARY}--\n").replace("\r", "")


def _bottlerocket(node_class: EC2NodeClass, boot: Bootstrap) -> str:
    kubelet = node_class.kubelet
    scalars: dict[str, object] = {
        "api-server": boot.facts.endpoint,
        "cluster-certificate": boot.facts.certificate_authority,
        "cluster-name": boot.facts.name,
        "max-pods": boot.max_pods,
    }
    if kubelet.cluster_dns:
        scalars["cluster-dns-ip"] = kubelet.cluster_dns[0]
    taints: dict[str, list[str]] = {}
    for taint in all_taints(boot.taints):
        taints.setdefault(taint.key, []).append(f"{taint.value}:{taint.effect}")
    tables: dict[str, Mapping[str, object]] = {
        "settings.kubernetes": scalars,
        "settings.kubernetes.node-labels": node_labels(boot),
        "settings.kubernetes.node-taints": taints,
        "settings.kubernetes.kube-reserved": dict(kubelet.kube_reserved),
        "settings.kubernetes.system-reserved": dict(kubelet.system_reserved),
        "settings.kubernetes.eviction-hard": dict(kubelet.eviction_hard),
    }
    ours = "\n".join(_table(name, values) for name, values in tables.items() if values)
    custom = node_class.user_data.strip()
    if "[settings.kubernetes" in custom:
        raise ValueError("spec.userData: [settings.kubernetes] is ours to write: set spec.kubelet instead")
    return f"{custom}\n\n{ours}" if custom else ours


def _table(name: str, values: Mapping[str, object]) -> str:
    # A TOML basic string, integer or array of strings is written as JSON writes it.
    lines = (f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in sorted(values.items()))
    return f"[{name}]\n" + "".join(lines)


def _is_forbidden(key: str) -> bool:
    domain = key.rpartition("/")[0]
    return domain in _FORBIDDEN or domain.endswith(tuple(f".{one}" for one in _FORBIDDEN))
