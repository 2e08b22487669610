"""What several modules look at, made once."""

import pytest

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.kube import InMemoryKube
from sim.lambdas.intrinsics import ACCOUNT
from sim.lambdas.template import ACTIVE, synthesised
from sim.lambdas.wiring import Wiring
from tests.infra.guarded import Guarded, short_life
from tests.infra.installations import Stack
from tests.infra.policies import Template
from tests.infra.stacks import PRIVATE, synthesis


@pytest.fixture(scope="session")
def life() -> Guarded:
    """A cluster's short life with all functions that there are, and every request that was made in it."""
    told = {"joiner:reaction": "watch", "joiner:report-topic": f"arn:aws:sns:us-east-1:{ACCOUNT}:costs"}
    return short_life(synthesised(context={**ACTIVE, **told}))


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return synthesis(str(tmp_path_factory.mktemp("cdk")), {})


@pytest.fixture(scope="session")
def private(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return synthesis(str(tmp_path_factory.mktemp("private")), dict(PRIVATE))


@pytest.fixture(scope="session")
def wiring(template: Template) -> Wiring:
    return Wiring.parse(template)


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
