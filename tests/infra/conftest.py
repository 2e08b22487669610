"""Fixtures that several modules share, built once."""

import pytest

from sim.authorization.template_policies import Template
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.lambda_runtime.stack_template.generated_references import ACCOUNT_ID
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from sim.lambda_runtime.stack_wiring import StackWiring
from sim.time.virtual_clock import Clock
from tests.infra.guarded import Guarded, run_short_life
from tests.infra.installations import Stack
from tests.infra.stacks import PRIVATE, synthesize_stack


@pytest.fixture(scope="session")
def life() -> Guarded:
    """A cluster's short life with all functions, and every request that was made in it."""
    more_settings = {"reaction": "watch", "report-topic": f"arn:aws:sns:us-east-1:{ACCOUNT_ID}:costs"}
    return run_short_life(synthesize_template(settings={**ACTIVE_SETTINGS, **more_settings}))


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return synthesize_stack(str(tmp_path_factory.mktemp("cdk")), {})


@pytest.fixture(scope="session")
def private(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return synthesize_stack(str(tmp_path_factory.mktemp("private")), dict(PRIVATE))


@pytest.fixture(scope="session")
def wiring(template: Template) -> StackWiring:
    return StackWiring.parse(template)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kube(clock: Clock) -> InMemoryKube:
    """A cluster without any installation and without any controller."""
    return InMemoryKube(ApiServer(clock, definitions=()))


@pytest.fixture
def stack(kube: InMemoryKube, clock: Clock) -> Stack:
    return Stack(kube, clock)
