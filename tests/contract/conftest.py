"""Fixtures of the contract tests: the implementations of the cloud, and the real API server."""

from collections.abc import Iterator

import pytest

from sim.cloud.cloud import Cloud
from sim.time.virtual_clock import Clock
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


def _make_parameter(speaker: Speaker) -> object:
    return pytest.param(speaker, id=speaker.name, marks=[pytest.mark.loopback] if speaker.loopback else [])


@pytest.fixture(params=[_make_parameter(speaker) for speaker in FACES])
def aws(request: pytest.FixtureRequest) -> Iterator[Face]:
    """A new cloud, accessed through one implementation of the ports."""
    speaker: Speaker = request.param
    with speaker.open(Cloud(Clock())) as face:
        yield face


@pytest.fixture
def stage() -> Iterator[Stage]:
    """An account with nothing in it."""
    new_stage = Stage()
    with new_stage.account:
        yield new_stage
