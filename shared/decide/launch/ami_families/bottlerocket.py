"""Bottlerocket's settings in TOML; the user's settings outside of Kubernetes are passed on unchanged."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from shared.decide.launch.ami_families.bootstrap import (
    Bootstrap,
    add_unregistered_taint,
    build_node_labels,
    list_cluster_dns,
)
from shared.decide.launch.ami_families.toml import format_toml
from shared.model.karpenter.node_class import EC2NodeClass

_USER_KEYS_TEXT: Final = (
    "allowed-unsafe-sysctls cloud-provider cluster-domain container-log-max-files container-log-max-size "
    "container-log-max-workers container-log-monitor-interval cpu-manager-policy "
    "cpu-manager-policy-options cpu-manager-reconcile-period credential-providers "
    "device-ownership-from-security-context event-burst event-qps hostname-override-source ids-per-pod "
    "kube-api-burst kube-api-qps log-level memory-manager-policy memory-manager-reserved-memory "
    "node-labels node-taints pod-pids-limit registry-burst registry-qps seccomp-default "
    "server-tls-bootstrap shutdown-grace-period shutdown-grace-period-for-critical-pods "
    "single-process-oom-kill static-pods topology-manager-policy topology-manager-policy-options "
    "topology-manager-scope"
)
USER_KEYS: Final = frozenset(_USER_KEYS_TEXT.split())
"""Keys of settings.kubernetes that the user may set, in addition to the keys that Joiner sets."""
_JOINER_KEYS_TEXT: Final = (
    "api-server cluster-certificate cluster-dns-ip cluster-name cpu-cfs-quota-enforced eviction-hard "
    "eviction-max-pod-grace-period eviction-soft eviction-soft-grace-period "
    "image-gc-high-threshold-percent image-gc-low-threshold-percent kube-reserved max-pods "
    "system-reserved"
)
JOINER_KEYS: Final = frozenset(_JOINER_KEYS_TEXT.split())
_MIN_VERSION_WITHOUT_DIRS: Final = (1, 46, 0)
"""From this release on, the storage command knows which directories to move."""
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:[-+].*)?")
_STORAGE_DIRS: Final = ["--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"]


def build_bottlerocket_settings(node_class: EC2NodeClass, bootstrap: Bootstrap) -> str:
    """Build the settings.

    Raises:
        ValueError: the user's settings are not TOML; the message says where.
    """
    document = parse_settings(node_class.user_data)
    settings = _get_table(document, "settings")
    user_settings = _get_table(settings, "kubernetes")
    kubernetes_settings = {key: value for key, value in user_settings.items() if key in USER_KEYS | JOINER_KEYS}
    kubernetes_settings |= _build_kubernetes_settings(node_class, bootstrap)
    kubernetes_settings["node-labels"] = _get_table(user_settings, "node-labels") | build_node_labels(bootstrap)
    settings = settings | {"kubernetes": kubernetes_settings}
    if node_class.instance_store_policy == "RAID0":
        commands = _get_table(settings, "bootstrap-commands") | {
            "000-mount-instance-storage": _build_mount_command(node_class)
        }
        settings = settings | {"bootstrap-commands": commands}
    return format_toml({**document, "settings": settings})


def parse_settings(user_data: str) -> dict[str, Any]:
    """Parse the user's settings.

    Raises:
        ValueError: they are not TOML.
    """
    try:
        return tomllib.loads(user_data)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(
            f"spec.userData: is not TOML: {error}: write Bottlerocket settings, like `[settings.host-containers.admin]`"
        ) from None


def list_dropped_keys(user_data: str) -> tuple[str, ...]:
    """Return the keys of the user's settings.kubernetes that are not passed on to the node, sorted.

    Raises:
        ValueError: the settings are not TOML.
    """
    user_settings = _get_table(_get_table(parse_settings(user_data), "settings"), "kubernetes")
    return tuple(sorted(key for key in user_settings if key not in USER_KEYS | JOINER_KEYS))


def _build_kubernetes_settings(node_class: EC2NodeClass, bootstrap: Bootstrap) -> dict[str, Any]:
    kubelet, facts = node_class.kubelet, bootstrap.facts
    dns = list_cluster_dns(kubelet, facts)
    taints: dict[str, list[str]] = {}
    for taint in add_unregistered_taint(bootstrap.taints):
        taints.setdefault(taint.key, []).append(f"{taint.value}:{taint.effect}")
    settings: dict[str, Any] = {
        "api-server": facts.endpoint,
        "cluster-certificate": facts.certificate_authority,
        "cluster-name": facts.name,
        "cluster-dns-ip": dns[0] if dns else None,
        "max-pods": bootstrap.max_pods,
        "system-reserved": dict(kubelet.system_reserved),
        "kube-reserved": dict(kubelet.kube_reserved),
        "eviction-hard": dict(kubelet.eviction_hard),
        "eviction-soft": dict(kubelet.eviction_soft),
        "eviction-soft-grace-period": dict(kubelet.eviction_soft_grace_period),
        "eviction-max-pod-grace-period": kubelet.eviction_max_pod_grace_period,
        "image-gc-high-threshold-percent": _format_number(kubelet.image_gc_high_threshold_percent),
        "image-gc-low-threshold-percent": _format_number(kubelet.image_gc_low_threshold_percent),
        "cpu-cfs-quota-enforced": kubelet.cpu_cfs_quota,
        "node-taints": taints,
    }
    return {key: value for key, value in settings.items() if value is not None and value != {}}


def _build_mount_command(node_class: EC2NodeClass) -> dict[str, Any]:
    bind_command = ["apiclient", "ephemeral-storage", "bind"]
    if not _can_mount_all(find_bottlerocket_version(node_class)):
        bind_command += _STORAGE_DIRS
    return {"commands": [["apiclient", "ephemeral-storage", "init"], bind_command], "mode": "always", "essential": True}


def find_bottlerocket_version(node_class: EC2NodeClass) -> str:
    """Return the release of the images, from the alias or from an image name; "" if neither contains it."""
    names = {image.image_id: image.name for image in node_class.resolved_images}
    for term in node_class.image_selectors:
        version = (
            term.alias.partition("@")[2] if term.alias else _find_version_in_names((term.name, names.get(term.id, "")))
        )
        if version:
            return version
    return _find_version_in_names(image.name for image in node_class.resolved_images if "bottlerocket" in image.name)


def _find_version_in_names(names: Iterable[str]) -> str:
    pieces = (piece for name in names for piece in name.split("-"))
    return next((piece for piece in pieces if piece.startswith("v") and "." in piece), "")


def _can_mount_all(version: str) -> bool:
    if version == "latest":
        return True
    matched = _VERSION.fullmatch(version)
    return matched is not None and tuple(map(int, matched.groups())) >= _MIN_VERSION_WITHOUT_DIRS


def _get_table(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    table = document.get(key, {})
    if not isinstance(table, dict):
        raise ValueError(f"spec.userData: {key} is not a table: write [settings.kubernetes] and keys below it")  # noqa: TRY004 - the text is what is wrong
    return table


def _format_number(number: int | None) -> str | None:
    return None if number is None else str(number)
