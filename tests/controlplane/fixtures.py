"""pytest fixtures for a real control plane, which is started once per session and only on request.

It is requested with ``-m controlplane`` or JOINER_CONTROLPLANE=1; otherwise tests with that marker are deselected. A
conftest.py imports the fixtures it needs by name.
"""

import os
from collections.abc import Iterator
from typing import Final

import msgspec
import pytest

from shared.errors import NotFound
from shared.kubernetes.client import KubeClient
from shared.ports.kubernetes import Kube
from tests.controlplane.binaries import print_line
from tests.controlplane.commands import User
from tests.controlplane.definitions import install_crds
from tests.controlplane.plane import API_ONLY, ControlPlane
from tests.controlplane.rights import grant_functions_role

MARKER: Final = "controlplane"
REQUEST_VARIABLE: Final = "JOINER_CONTROLPLANE"

FUNCTIONS: Final = User(name="joiner", groups=("joiner:functions", "system:authenticated"))
"""The user that EKS maps a function of the stack to, by its access entry."""
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
"""Collections in which tests use the same names; all other objects of tests are in namespaces of their own."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", f"{MARKER}: needs a real control plane, which is built and started")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that need a control plane, unless it is requested."""
    if os.environ.get(REQUEST_VARIABLE) or MARKER in config.option.markexpr:
        return
    left_out = [item for item in items if item.get_closest_marker(MARKER)]
    if left_out:
        items[:] = [item for item in items if not item.get_closest_marker(MARKER)]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def api_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane of etcd and kube-apiserver alone, with Joiner's CRDs: nothing acts but the test."""
    with ControlPlane(parts=API_ONLY) as plane:
        install_crds(plane)
        yield plane
        if request.session.testsfailed:
            print_line(f"logs of the control plane: {plane.keep_logs()}")


@pytest.fixture
def real_kube(api_plane: ControlPlane) -> Iterator[KubeClient]:
    """The administrator's client; after the test the shared collections are emptied."""
    kube = api_plane.get_client()
    yield kube
    for path in _SHARED:
        clear_collection(kube, path)


def clear_collection(kube: Kube, collection: str) -> None:
    """Remove all objects of *collection*, regardless of finalizers and grace periods."""
    for item in msgspec.json.decode(kube.list(collection, limit=0))["items"]:
        path = f"{collection}/{item['metadata']['name']}"
        if item["metadata"].get("finalizers"):
            kube.patch(path, b'{"metadata":{"finalizers":null}}')
        try:
            kube.delete(path, b'{"gracePeriodSeconds":0}')
        except NotFound:
            continue


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane with scheduler, controllers, kwok, Joiner's CRDs and the ClusterRole for `FUNCTIONS`.

    A node without heartbeats is lost sooner than usual, because tests wait for it.
    """
    with ControlPlane(users=(FUNCTIONS, STRANGER), node_grace_seconds=16) as plane:
        install_crds(plane)
        grant_functions_role(plane.get_client())
        functions = plane.get_client(plane.get_token(FUNCTIONS))
        plane.wait_until(lambda: bool(functions.list("/api/v1/pods", limit=1)), "the role of the functions")
        yield plane
        if request.session.testsfailed:
            print_line(f"logs of the control plane: {plane.keep_logs()}")
