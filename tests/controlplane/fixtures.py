"""pytest's view of a real control plane: started once per session, and only when somebody asks for it.

Asked for by ``-m controlplane`` or JOINER_CONTROLPLANE=1; otherwise the tests that are marked so are deselected. A
conftest.py takes what it needs by name.
"""

import os
from collections.abc import Iterator
from typing import Final

import msgspec
import pytest

from shared.errors import Gone
from shared.kube.client import KubeClient
from shared.ports import Kube
from tests.controlplane.binaries import tell
from tests.controlplane.commands import User
from tests.controlplane.definitions import install
from tests.controlplane.plane import API_ONLY, ControlPlane
from tests.controlplane.rights import grant

MARKER: Final = "controlplane"
ASKED_BY: Final = "JOINER_CONTROLPLANE"

FUNCTIONS: Final = User(name="joiner", groups=("joiner:functions", "system:authenticated"))
"""As EKS sees a function of the stack, by its access entry."""
STRANGER: Final = User(name="stranger", groups=("system:authenticated",))

_SHARED: Final = (
    "/apis/karpenter.sh/v1/nodeclaims",
    "/apis/karpenter.sh/v1/nodepools",
    "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
    "/apis/karpenter.sh/v1alpha1/nodeoverlays",
    "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/capacitybuffers",
    "/api/v1/nodes",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/events",
)
"""Collections in which tests use the same names; whatever else they make lies in namespaces of their own."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", f"{MARKER}: needs a real control plane, which is built and started")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a control plane, unless it is asked for."""
    if os.environ.get(ASKED_BY) or MARKER in config.option.markexpr:
        return
    left_out = [item for item in items if item.get_closest_marker(MARKER)]
    if left_out:
        items[:] = [item for item in items if not item.get_closest_marker(MARKER)]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def api_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """One plane of etcd and kube-apiserver alone, with our definitions: nobody acts but the test."""
    with ControlPlane(parts=API_ONLY) as plane:
        install(plane)
        yield plane
        if request.session.testsfailed:
            tell(f"logs of the control plane: {plane.keep_logs()}")


@pytest.fixture
def real_kube(api_plane: ControlPlane) -> Iterator[KubeClient]:
    """The administrator's client; afterwards the names that tests share are free again."""
    kube = api_plane.client()
    yield kube
    for path in _SHARED:
        empty(kube, path)


def empty(kube: Kube, collection: str) -> None:
    """Remove all objects of *collection*, whatever finalizers and graces they have."""
    for item in msgspec.json.decode(kube.list(collection, limit=0))["items"]:
        path = f"{collection}/{item['metadata']['name']}"
        if item["metadata"].get("finalizers"):
            kube.patch(path, b'{"metadata":{"finalizers":null}}')
        try:
            kube.delete(path, b'{"gracePeriodSeconds":0}')
        except Gone:
            continue


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A whole plane: with scheduler, controllers, kwok, our definitions and our role for `FUNCTIONS`.

    A node that falls silent is lost sooner than elsewhere: tests wait for it.
    """
    with ControlPlane(users=(FUNCTIONS, STRANGER), node_grace_seconds=16) as plane:
        install(plane)
        grant(plane.client())
        functions = plane.client(plane.token_of(FUNCTIONS))
        plane.wait_for(lambda: bool(functions.list("/api/v1/pods", limit=1)), "the role of the functions")
        yield plane
        if request.session.testsfailed:
            tell(f"logs of the control plane: {plane.keep_logs()}")
