"""The role of the functions, asked of a real API server: everything they do, and nothing else."""

import re
from pathlib import Path
from typing import Final

import pytest

from shared.errors import Forbidden
from shared.take.kubernetes.optional_resources import OPTIONAL_KINDS
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS
from tests.controlplane.fixtures import FUNCTIONS, STRANGER
from tests.controlplane.plane import ControlPlane
from tests.controlplane.rights import (
    Permission,
    is_allowed,
    list_granted_permissions,
    list_optional_permissions,
    list_served_permissions,
)

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

SITES: Final = Path(__file__).parents[2] / "scenario" / "kill_sites.txt"
RARELY_USED_RIGHTS: Final = frozenset(
    {
        ("delete", "pods"),
        ("get", "events"),
        ("get", "nodeclaims.karpenter.sh"),
        ("patch", "events"),
        ("patch", "pods"),
        ("patch", "nodeoverlays.karpenter.sh"),
        ("patch", "capacitybuffers.autoscaling.x-k8s.io"),
    }
)
"""Used only when a grace period is over, an event repeats, an instance has no NodeClaim in the snapshot, pods of
several kinds are pending together, or a feature is enabled: not in the recorded play.
"""
VERBS: Final = {"read": "get"}
SITE: Final = re.compile(r"^\w+ kube\.(\w+) (/\S+)", re.MULTILINE)
PATH: Final = re.compile(r"/apis?(?:/([\w.-]+)/v1\w*|/v1)(/\S*)")


def list_used_rights() -> frozenset[Permission]:
    """Return the rights observed in use and those for the lists of a snapshot, without `/status`."""
    observed_rights = {
        (VERBS.get(method, method), _parse_resource(path)) for method, path in SITE.findall(SITES.read_text())
    }
    return frozenset(observed_rights) | frozenset(
        (verb, _parse_resource(listing.path))
        for listing in (*RESOURCE_KINDS, *OPTIONAL_KINDS)
        for verb in ("list", "watch")
    )


def _parse_resource(path: str) -> str:
    path_match = PATH.fullmatch(path)
    assert path_match, path
    group, resource_path = path_match.groups()
    parts = resource_path.removeprefix("/namespaces/*").strip("/").split("/")
    resource = f"{parts[0]}.{group}" if group else parts[0]
    return f"{resource}/{parts[2]}" if parts[2:] else resource


def strip_status_subresources(rights: frozenset[Permission]) -> frozenset[Permission]:
    return frozenset((verb, resource.removesuffix("/status")) for verb, resource in rights)


def test_cluster_role_grants_exactly_the_permissions_that_are_used() -> None:
    granted_rights = strip_status_subresources(list_granted_permissions())
    feature_rights = strip_status_subresources(list_optional_permissions())
    used_rights = list_used_rights() | RARELY_USED_RIGHTS
    assert granted_rights <= used_rights
    assert used_rights - granted_rights <= feature_rights


def test_granted_permissions_are_served_and_allowed(cluster: ControlPlane) -> None:
    kube = cluster.get_client()
    assert list_granted_permissions() <= list_served_permissions(kube)
    assert [
        right for right in sorted(list_granted_permissions()) if not is_allowed(kube, right, *FUNCTIONS.groups)
    ] == []


def test_permissions_that_are_not_granted_are_denied(cluster: ControlPlane) -> None:
    kube = cluster.get_client()
    ungranted_rights = sorted(list_served_permissions(kube) - list_granted_permissions())
    assert len(ungranted_rights) > 300
    assert [right for right in ungranted_rights if is_allowed(kube, right, FUNCTIONS.groups[0])] == []


def test_functions_can_list_pods_but_not_read_secrets(cluster: ControlPlane) -> None:
    kube = cluster.get_client(cluster.get_token(FUNCTIONS))
    assert b"PodList" in kube.list("/api/v1/pods")
    for path in ("/api/v1/secrets", "/api/v1/namespaces/kube-system/configmaps"):
        with pytest.raises(Forbidden, match="cannot list resource"):
            kube.list(path)


def test_user_outside_the_group_is_denied(cluster: ControlPlane) -> None:
    with pytest.raises(Forbidden):
        cluster.get_client(cluster.get_token(STRANGER)).list("/api/v1/pods")
    with pytest.raises(Forbidden, match="401"):
        cluster.get_client("no such token").list("/api/v1/pods")
