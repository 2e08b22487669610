"""The faces of the cloud, for every test of tests/contract/test_ec2*.py, and the real API server for test_kube*.py."""

from collections.abc import Iterator

import pytest

from sim.clock import Clock
from sim.cloud.cloud import Cloud
from tests.contract.account_stage import Stage
from tests.contract.faces import FACES, Speaker
from tests.contract.kube_canned import server
from tests.contract.memory_face import Face
from tests.contract.tls import certificate
from tests.controlplane.fixtures import api_plane, pytest_collection_modifyitems, pytest_configure, real_kube

__all__ = [
    "api_plane",
    "aws",
    "certificate",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "real_kube",
    "server",
]


def _parameter(speaker: Speaker) -> object:
    return pytest.param(speaker, id=speaker.name, marks=[pytest.mark.loopback] if speaker.loopback else [])


@pytest.fixture(params=[_parameter(speaker) for speaker in FACES])
def aws(request: pytest.FixtureRequest) -> Iterator[Face]:
    """One cloud at its beginning, seen through one face."""
    speaker: Speaker = request.param
    with speaker.open(Cloud(Clock())) as face:
        yield face


@pytest.fixture
def stage() -> Iterator[Stage]:
    """An account with nothing in it."""
    made = Stage()
    with made.account:
        yield made
