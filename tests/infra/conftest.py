"""What several modules look at, made once."""

import pytest

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.kube import InMemoryKube
from sim.lambdas.template import synthesised
from tests.infra.guarded import Guarded, short_life
from tests.infra.installations import Stack


@pytest.fixture(scope="session")
def life() -> Guarded:
    """A cluster's short life with all functions that there are, and every request that was made in it."""
    return short_life(synthesised(context={"joiner:reaction": "watch"}))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kube(clock: Clock) -> InMemoryKube:
    """A cluster in which nobody has installed anything, and nobody acts."""
    return InMemoryKube(ApiServer(clock, definitions=()))


@pytest.fixture
def stack(kube: InMemoryKube, clock: Clock) -> Stack:
    return Stack(kube, clock)
