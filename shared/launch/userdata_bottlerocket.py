"""Bottlerocket: settings in TOML; what the user says of other things than Kubernetes passes through untouched."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from shared.launch.bootstrap import Bootstrap, all_taints, cluster_dns, node_labels
from shared.launch.toml import toml_text
from shared.model.nodeclasses import EC2NodeClass

_USERS_OWN_TEXT: Final = (
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
USERS_OWN: Final = frozenset(_USERS_OWN_TEXT.split())
"""Keys of settings.kubernetes that the user may set, besides those that are ours."""
_OURS_TEXT: Final = (
    "api-server cluster-certificate cluster-dns-ip cluster-name cpu-cfs-quota-enforced eviction-hard "
    "eviction-max-pod-grace-period eviction-soft eviction-soft-grace-period "
    "image-gc-high-threshold-percent image-gc-low-threshold-percent kube-reserved max-pods "
    "system-reserved"
)
OURS: Final = frozenset(_OURS_TEXT.split())
_MOUNTS_ALL: Final = (1, 46, 0)
"""From this release on the storage command knows itself which folders to move."""
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:[-+].*)?")
_DIRS: Final = ["--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"]


def bottlerocket_settings(node_class: EC2NodeClass, boot: Bootstrap) -> str:
    """Answer the settings.

    Raises:
        ValueError: the user's own are not TOML; the message says where.
    """
    document = parsed(node_class.user_data)
    settings = _table(document, "settings")
    own = _table(settings, "kubernetes")
    kept = {key: value for key, value in own.items() if key in USERS_OWN | OURS}
    kept |= _kubernetes(node_class, boot)
    kept["node-labels"] = _table(own, "node-labels") | node_labels(boot)
    settings = settings | {"kubernetes": kept}
    if node_class.instance_store_policy == "RAID0":
        commands = _table(settings, "bootstrap-commands") | {"000-mount-instance-storage": _mounting(node_class)}
        settings = settings | {"bootstrap-commands": commands}
    return toml_text({**document, "settings": settings})


def parsed(user_data: str) -> dict[str, Any]:
    """Read the user's own settings.

    Raises:
        ValueError: they are not TOML.
    """
    try:
        return tomllib.loads(user_data)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(
            f"spec.userData: is not TOML: {error}: Bottlerocket reads settings, as `[settings.host-containers.admin]`"
        ) from None


def dropped(user_data: str) -> tuple[str, ...]:
    """Answer the keys of the user's settings.kubernetes that do not reach the machine, sorted.

    Raises:
        ValueError: the settings are not TOML.
    """
    own = _table(_table(parsed(user_data), "settings"), "kubernetes")
    return tuple(sorted(key for key in own if key not in USERS_OWN | OURS))


def _kubernetes(node_class: EC2NodeClass, boot: Bootstrap) -> dict[str, Any]:
    kubelet, facts = node_class.kubelet, boot.facts
    dns = cluster_dns(kubelet, facts)
    taints: dict[str, list[str]] = {}
    for taint in all_taints(boot.taints):
        taints.setdefault(taint.key, []).append(f"{taint.value}:{taint.effect}")
    said: dict[str, Any] = {
        "api-server": facts.endpoint,
        "cluster-certificate": facts.certificate_authority,
        "cluster-name": facts.name,
        "cluster-dns-ip": dns[0] if dns else None,
        "max-pods": boot.max_pods,
        "system-reserved": dict(kubelet.system_reserved),
        "kube-reserved": dict(kubelet.kube_reserved),
        "eviction-hard": dict(kubelet.eviction_hard),
        "eviction-soft": dict(kubelet.eviction_soft),
        "eviction-soft-grace-period": dict(kubelet.eviction_soft_grace_period),
        "eviction-max-pod-grace-period": kubelet.eviction_max_pod_grace_period,
        "image-gc-high-threshold-percent": _text(kubelet.image_gc_high_threshold_percent),
        "image-gc-low-threshold-percent": _text(kubelet.image_gc_low_threshold_percent),
        "cpu-cfs-quota-enforced": kubelet.cpu_cfs_quota,
        "node-taints": taints,
    }
    return {key: value for key, value in said.items() if value is not None and value != {}}


def _mounting(node_class: EC2NodeClass) -> dict[str, Any]:
    bind = ["apiclient", "ephemeral-storage", "bind"]
    if not _mounts_all(version_of(node_class)):
        bind += _DIRS
    return {"commands": [["apiclient", "ephemeral-storage", "init"], bind], "mode": "always", "essential": True}


def version_of(node_class: EC2NodeClass) -> str:
    """Answer the release of the images: the alias says it, or the name of the image does; "" if nobody does."""
    names = {image.image_id: image.name for image in node_class.resolved_images}
    for term in node_class.image_selectors:
        said = term.alias.partition("@")[2] if term.alias else _version_in((term.name, names.get(term.id, "")))
        if said:
            return said
    return _version_in(image.name for image in node_class.resolved_images if "bottlerocket" in image.name)


def _version_in(names: Iterable[str]) -> str:
    pieces = (piece for name in names for piece in name.split("-"))
    return next((piece for piece in pieces if piece.startswith("v") and "." in piece), "")


def _mounts_all(version: str) -> bool:
    if version == "latest":
        return True
    matched = _VERSION.fullmatch(version)
    return matched is not None and tuple(map(int, matched.groups())) >= _MOUNTS_ALL


def _table(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = document.get(key, {})
    if not isinstance(found, dict):
        raise ValueError(f"spec.userData: {key} is no table: write [settings.kubernetes] and keys below it")  # noqa: TRY004 - the text is what is wrong
    return found


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
