"""The faces of the cloud, for every test of tests/contract/test_ec2*.py."""

from collections.abc import Iterator

import pytest

from sim.clock import Clock
from sim.cloud.cloud import Cloud
from tests.contract.faces import FACES, Speaker
from tests.contract.memory_face import Face


def _parameter(speaker: Speaker) -> object:
    return pytest.param(speaker, id=speaker.name, marks=[pytest.mark.loopback] if speaker.loopback else [])


@pytest.fixture(params=[_parameter(speaker) for speaker in FACES])
def aws(request: pytest.FixtureRequest) -> Iterator[Face]:
    """One cloud at its beginning, seen through one face."""
    speaker: Speaker = request.param
    with speaker.open(Cloud(Clock())) as face:
        yield face
