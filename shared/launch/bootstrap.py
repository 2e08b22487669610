"""What a new machine is told whatever its image family: labels, taints, DNS, the kubelet's settings."""

import json
from collections.abc import Iterable, Mapping
from ipaddress import ip_address, ip_network
from typing import Any, Final

import msgspec

from shared.model.ec2 import ClusterFacts
from shared.model.labels import DO_NOT_SYNC_TAINTS
from shared.model.nodeclasses import EC2NodeClass, Kubelet
from shared.model.objects import Pairs
from shared.model.taints import UNREGISTERED, Taint, taint_object

_FORBIDDEN: Final = ("kubernetes.io", "k8s.io", "node-restriction.kubernetes.io")
_DNS: Final = 10
"""EKS gives its DNS service the tenth address of the service CIDR; nodeadm counts on it too."""


class Bootstrap(msgspec.Struct, frozen=True, kw_only=True):
    """What every family needs to know."""

    facts: ClusterFacts
    labels: Pairs
    taints: tuple[Taint, ...]
    max_pods: int


def node_labels(boot: Bootstrap) -> dict[str, str]:
    """Answer the labels that the kubelet registers with, sorted; those that it may not set on itself are left out."""
    own = {key: value for key, value in boot.labels if not _is_forbidden(key)}
    return dict(sorted((own | {DO_NOT_SYNC_TAINTS: "true"}).items()))


def all_taints(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Answer *taints* and the one that keeps pods away until registration."""
    some = tuple(taints)
    return some if any(taint.is_same(UNREGISTERED) for taint in some) else (*some, UNREGISTERED)


def taint_text(taint: Taint) -> str:
    """Write a taint as a kubelet's flag has it.

    >>> taint_text(Taint(key="team", value="shop", effect="NoSchedule")), taint_text(UNREGISTERED)
    ('team=shop:NoSchedule', 'karpenter.sh/unregistered:NoExecute')
    """
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def cluster_dns(kubelet: Kubelet, facts: ClusterFacts) -> tuple[str, ...]:
    """Answer where pods ask for names: what the node class says, else what EKS makes of the service CIDR.

    Raises:
        ValueError: the service CIDR is none.
    """
    if kubelet.cluster_dns:
        return kubelet.cluster_dns
    return (str(ip_network(facts.service_cidr)[_DNS]),) if facts.service_cidr else ()


def is_ipv6(facts: ClusterFacts) -> bool:
    """Whether the cluster's services, and so its pods, have IPv6 addresses."""
    return ":" in facts.service_cidr


def is_ipv6_address(text: str) -> bool:
    """Whether *text* is an IPv6 address.

    >>> is_ipv6_address("fd00::a"), is_ipv6_address("10.100.0.10"), is_ipv6_address("dns.local")
    (True, False, False)
    """
    try:
        return ip_address(text).version == 6  # noqa: PLR2004 - the protocol's own number
    except ValueError:
        return False


def kubelet_config(node_class: EC2NodeClass, boot: Bootstrap) -> dict[str, object]:
    """Answer a KubeletConfiguration: all that the node class says, in its words, and what only we know."""
    kubelet = node_class.kubelet
    said: Mapping[str, Any] = json.loads(node_class.kubelet_text) if node_class.kubelet_text else _fields(kubelet)
    ours = {
        "maxPods": boot.max_pods,
        "clusterDNS": list(cluster_dns(kubelet, boot.facts)),
        "kubeReserved": dict(kubelet.kube_reserved),
        "systemReserved": dict(kubelet.system_reserved),
        "registerWithTaints": [taint_object(taint) for taint in all_taints(boot.taints)],
    }
    return {name: value for name, value in {**said, **ours}.items() if value is not None and value not in ([], {})}


def _fields(kubelet: Kubelet) -> dict[str, object]:
    return {
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
    }


def _is_forbidden(key: str) -> bool:
    domain = key.rpartition("/")[0]
    return domain in _FORBIDDEN or domain.endswith(tuple(f".{one}" for one in _FORBIDDEN))
