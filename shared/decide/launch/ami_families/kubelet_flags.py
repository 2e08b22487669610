"""Kubelet settings as flags, for the AMI families with a bootstrap script that accepts no configuration file."""

from shared.decide.launch.ami_families.bootstrap import (
    Bootstrap,
    add_unregistered_taint,
    build_node_labels,
    format_taint,
)
from shared.model.core.metadata import Pairs
from shared.model.karpenter.node_class import EC2NodeClass


def build_kubelet_flags(node_class: EC2NodeClass, bootstrap: Bootstrap) -> str:
    """Build the flags that are set, in a fixed order; maps are sorted by key."""
    kubelet = node_class.kubelet
    taints = ",".join(map(format_taint, add_unregistered_taint(bootstrap.taints)))
    flags: tuple[tuple[str, object], ...] = (
        ("node-labels", _quote_or_none(_join_pairs(tuple(build_node_labels(bootstrap).items()), "="))),
        ("register-with-taints", _quote_or_none(taints)),
        ("max-pods", bootstrap.max_pods),
        ("pods-per-core", kubelet.pods_per_core),
        ("system-reserved", _quote_or_none(_join_pairs(kubelet.system_reserved, "="))),
        ("kube-reserved", _quote_or_none(_join_pairs(kubelet.kube_reserved, "="))),
        ("eviction-hard", _quote_or_none(_join_pairs(kubelet.eviction_hard, "<"))),
        ("eviction-soft", _quote_or_none(_join_pairs(kubelet.eviction_soft, "<"))),
        ("eviction-soft-grace-period", _quote_or_none(_join_pairs(kubelet.eviction_soft_grace_period, "="))),
        ("eviction-max-pod-grace-period", kubelet.eviction_max_pod_grace_period),
        ("image-gc-high-threshold", kubelet.image_gc_high_threshold_percent),
        ("image-gc-low-threshold", kubelet.image_gc_low_threshold_percent),
        ("cpu-cfs-quota", None if kubelet.cpu_cfs_quota is None else str(kubelet.cpu_cfs_quota).lower()),
    )
    return " ".join(f"--{name}={value}" for name, value in flags if value is not None)


def _join_pairs(key_value_pairs: Pairs, separator: str) -> str:
    return ",".join(f"{key}{separator}{value}" for key, value in key_value_pairs)


def _quote_or_none(text: str) -> str | None:
    return f'"{text}"' if text else None
