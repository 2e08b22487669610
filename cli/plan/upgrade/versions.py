"""Kubernetes versions: the next minor version, and kubelets that are too old for a control plane."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from cli.terminal.errors import InputError

MAX_KUBELET_SKEW: Final = 3
"""Minor versions that a kubelet may be older than the API server (version skew policy of Kubernetes)."""
_VERSION_PATTERN: Final = re.compile(r"v?1\.(?P<minor>\d{1,3})(?:[.+-].*)?")
_TARGET_PATTERN: Final = re.compile(r"1\.\d{1,3}")


class KubeletVersions(msgspec.Struct, frozen=True, kw_only=True):
    """The kubelets of a cluster, compared with the new version of the control plane."""

    nodes_by_version: Mapping[str, int]
    """Number of nodes by minor version, like ``1.34``."""
    too_old: tuple[str, ...]
    """Names of nodes whose kubelet would be too old, sorted."""
    unknown_count: int = 0


def parse_target_version(text: str) -> str:
    """Return *text* if it is a version like 1.35.

    Raises:
        ValueError: it is not.
    """
    if not _TARGET_PATTERN.fullmatch(text):
        raise ValueError(f"{text!r} is not a Kubernetes version: write major and minor version, like 1.35")
    return text


def get_minor(version: str) -> int | None:
    """Return the minor version in a version of Kubernetes 1; None if *version* is not one.

    >>> get_minor("v1.34.2-eks-abc"), get_minor("1.35"), get_minor("")
    (34, 35, None)
    """
    match = _VERSION_PATTERN.fullmatch(version)
    return None if match is None else int(match["minor"])


def check_next_version(current: str, target: str) -> None:
    """Check that EKS can upgrade a control plane from version *current* to *target*; "" is an unknown version.

    Raises:
        InputError: *target* is not the next minor version.
    """
    current_minor, target_minor = get_minor(current), get_minor(target) or 0
    if current_minor is None or target_minor == current_minor + 1:
        return
    if target_minor <= current_minor:
        raise InputError(f"--upgrade {target}: the control plane already has 1.{current_minor}; EKS has no downgrade")
    raise InputError(
        f"--upgrade {target}: the control plane has 1.{current_minor}, and EKS upgrades one minor version at a time: "
        f"plan --upgrade 1.{current_minor + 1} first"
    )


def compare_kubelets(
    kubelet_by_node: Mapping[str, str], node_names: Iterable[str], target_version: str
) -> KubeletVersions:
    """Compare the kubelets of *node_names* with *target_version* of the control plane."""
    target_minor = get_minor(target_version) or 0
    minors = {name: get_minor(kubelet_by_node.get(name, "")) for name in node_names}
    known_minors = {name: minor for name, minor in minors.items() if minor is not None}
    counts: dict[str, int] = {}
    for minor in sorted(known_minors.values()):
        counts[f"1.{minor}"] = counts.get(f"1.{minor}", 0) + 1
    return KubeletVersions(
        nodes_by_version=counts,
        too_old=tuple(sorted(name for name, minor in known_minors.items() if minor < target_minor - MAX_KUBELET_SKEW)),
        unknown_count=len(minors) - len(known_minors),
    )
