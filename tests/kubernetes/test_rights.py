"""The role of the functions, asked of a real API server: everything they do, and nothing else."""

import re
from pathlib import Path
from typing import Final

import pytest

from shared.errors import Forbidden
from shared.snapshot.kinds import LISTINGS
from shared.snapshot.optional import OPTIONAL
from tests.controlplane.fixtures import FUNCTIONS, STRANGER
from tests.controlplane.plane import ControlPlane
from tests.controlplane.rights import Right, granted, is_allowed, served

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

SITES: Final = Path(__file__).parents[1] / "scenario" / "kill_sites.txt"
SELDOM: Final = frozenset(
    {
        ("delete", "pods"),
        ("get", "events"),
        ("patch", "events"),
        ("patch", "pods"),
        ("patch", "nodeoverlays.karpenter.sh"),
        ("patch", "capacitybuffers.autoscaling.x-k8s.io"),
    }
)
"""Done only when a grace is over, an event repeats itself, pods of several kinds wait together, or a feature is on: not
in the play that was counted."""
VERBS: Final = {"read": "get"}
SITE: Final = re.compile(r"^\w+ kube\.(\w+) (/\S+)", re.MULTILINE)
PATH: Final = re.compile(r"/apis?(?:/([\w.-]+)/v1\w*|/v1)(/\S*)")


def used() -> frozenset[Right]:
    """Answer what functions were seen to do, and what a snapshot lists; status or not is not told apart there."""
    seen = {(VERBS.get(method, method), _resource(path)) for method, path in SITE.findall(SITES.read_text())}
    return frozenset(seen) | frozenset(
        (verb, _resource(listing.path)) for listing in (*LISTINGS, *OPTIONAL) for verb in ("list", "watch")
    )


def _resource(path: str) -> str:
    found = PATH.fullmatch(path)
    assert found, path
    group, rest = found.groups()
    parts = rest.removeprefix("/namespaces/*").strip("/").split("/")
    named = f"{parts[0]}.{group}" if group else parts[0]
    return f"{named}/{parts[2]}" if parts[2:] else named


def whole(rights: frozenset[Right]) -> frozenset[Right]:
    return frozenset((verb, resource.removesuffix("/status")) for verb, resource in rights)


def test_the_role_grants_what_is_used_and_no_more() -> None:
    assert whole(granted()) == used() | SELDOM


def test_what_is_granted_is_served_and_allowed(cluster: ControlPlane) -> None:
    kube = cluster.client()
    assert granted() <= served(kube)
    assert [right for right in sorted(granted()) if not is_allowed(kube, right, *FUNCTIONS.groups)] == []


def test_nothing_else_is_allowed(cluster: ControlPlane) -> None:
    kube = cluster.client()
    others = sorted(served(kube) - granted())
    assert len(others) > 300
    assert [right for right in others if is_allowed(kube, right, FUNCTIONS.groups[0])] == []


def test_a_function_lists_pods_and_cannot_read_secrets(cluster: ControlPlane) -> None:
    kube = cluster.client(cluster.token_of(FUNCTIONS))
    assert b"PodList" in kube.list("/api/v1/pods")
    for path in ("/api/v1/secrets", "/api/v1/namespaces/kube-system/configmaps"):
        with pytest.raises(Forbidden, match="cannot list resource"):
            kube.list(path)


def test_who_is_not_in_the_group_sees_nothing(cluster: ControlPlane) -> None:
    with pytest.raises(Forbidden):
        cluster.client(cluster.token_of(STRANGER)).list("/api/v1/pods")
    with pytest.raises(Forbidden, match="401"):
        cluster.client("no such token").list("/api/v1/pods")
