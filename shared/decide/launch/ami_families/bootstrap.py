"""Bootstrap data that is common to all AMI families: labels, taints, DNS, kubelet configuration."""

import json
from collections.abc import Iterable, Mapping
from ipaddress import ip_address, ip_network
from typing import Any, Final

import msgspec

from shared.model.core.labels import DO_NOT_SYNC_TAINTS
from shared.model.core.metadata import Pairs
from shared.model.core.taints import UNREGISTERED, Taint, encode_taint
from shared.model.ec2.account import ControlPlaneFacts
from shared.model.karpenter.node_class import EC2NodeClass, KubeletConfiguration

_FORBIDDEN_LABEL_DOMAINS: Final = ("kubernetes.io", "k8s.io", "node-restriction.kubernetes.io")
_DNS_ADDRESS_OFFSET: Final = 10
"""EKS assigns its DNS service the tenth address of the service CIDR; nodeadm relies on it too."""


class Bootstrap(msgspec.Struct, frozen=True, kw_only=True):
    """Input of the bootstrap of every AMI family."""

    facts: ControlPlaneFacts
    labels: Pairs
    taints: tuple[Taint, ...]
    max_pods: int


def build_node_labels(bootstrap: Bootstrap) -> dict[str, str]:
    """Return the labels that the kubelet registers with, sorted, without those that it may not set on itself."""
    allowed_labels = {key: value for key, value in bootstrap.labels if not _is_forbidden(key)}
    return dict(sorted((allowed_labels | {DO_NOT_SYNC_TAINTS: "true"}).items()))


def add_unregistered_taint(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Return *taints* and the taint that keeps pods off the node until registration."""
    taint_list = tuple(taints)
    return taint_list if any(taint.is_same(UNREGISTERED) for taint in taint_list) else (*taint_list, UNREGISTERED)


def format_taint(taint: Taint) -> str:
    """Format a taint as a value of the kubelet's flag.

    >>> format_taint(Taint(key="team", value="shop", effect="NoSchedule")), format_taint(UNREGISTERED)
    ('team=shop:NoSchedule', 'karpenter.sh/unregistered:NoExecute')
    """
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def list_cluster_dns(kubelet: KubeletConfiguration, facts: ControlPlaneFacts) -> tuple[str, ...]:
    """Return the cluster DNS addresses: those of the node class, else EKS's default in the service CIDR.

    Raises:
        ValueError: the service CIDR is invalid.
    """
    if kubelet.cluster_dns:
        return kubelet.cluster_dns
    return (str(ip_network(facts.service_cidr)[_DNS_ADDRESS_OFFSET]),) if facts.service_cidr else ()


def is_ipv6(facts: ControlPlaneFacts) -> bool:
    """Return whether the cluster's services, and so its pods, have IPv6 addresses."""
    return ":" in facts.service_cidr


def is_ipv6_address(text: str) -> bool:
    """Return whether *text* is an IPv6 address.

    >>> is_ipv6_address("fd00::a"), is_ipv6_address("10.100.0.10"), is_ipv6_address("dns.local")
    (True, False, False)
    """
    try:
        return ip_address(text).version == 6  # noqa: PLR2004 - the protocol's own number
    except ValueError:
        return False


def build_kubelet_config(node_class: EC2NodeClass, bootstrap: Bootstrap) -> dict[str, object]:
    """Build a KubeletConfiguration: all fields of the node class as written, and the fields that Joiner sets."""
    kubelet = node_class.kubelet
    written_config: Mapping[str, Any] = (
        json.loads(node_class.kubelet_text) if node_class.kubelet_text else _build_kubelet_fields(kubelet)
    )
    joiner_config = {
        "maxPods": bootstrap.max_pods,
        "clusterDNS": list(list_cluster_dns(kubelet, bootstrap.facts)),
        "kubeReserved": dict(kubelet.kube_reserved),
        "systemReserved": dict(kubelet.system_reserved),
        "registerWithTaints": [encode_taint(taint) for taint in add_unregistered_taint(bootstrap.taints)],
    }
    return {
        name: value
        for name, value in {**written_config, **joiner_config}.items()
        if value is not None and value not in ([], {})
    }


def _build_kubelet_fields(kubelet: KubeletConfiguration) -> dict[str, object]:
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
    return domain in _FORBIDDEN_LABEL_DOMAINS or domain.endswith(
        tuple(f".{domain_suffix}" for domain_suffix in _FORBIDDEN_LABEL_DOMAINS)
    )
