"""The faces of the cloud: every face has the same ports on one `Cloud` and passes the same tests.

A face is a context manager made from a `Cloud`: what it opened is closed when the test ends. To add a face, add a line
to `FACES`; a face that needs sockets is marked so.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import msgspec

from shared.aws.commitments.savings_plans import BotoSavingsPlans
from shared.aws.ec2.client import BotoEc2
from shared.aws.eks import BotoEks, BotoZonalShift
from shared.aws.on_demand_prices import BotoPricingService
from shared.aws.ssm import BotoParameterStore
from sim.cloud.cloud import Cloud
from tests.contract.http_face import get_clients, get_embedded_aws
from tests.contract.memory_face import Face, build_memory_face


class Speaker(msgspec.Struct, frozen=True, kw_only=True):
    """A named way to open a face."""

    name: str
    open: Callable[[Cloud], AbstractContextManager[Face]]
    loopback: bool = False
    """It talks to a server of its own on loopback."""


@contextmanager
def open_memory_face(cloud: Cloud) -> Iterator[Face]:
    """Open the ports on *cloud* in this process; there is nothing to close."""
    yield build_memory_face(cloud)


@contextmanager
def open_http_face(cloud: Cloud) -> Iterator[Face]:
    """Open the ports on *cloud* over HTTP, as in production; the server and the clients outlive the test."""
    get_embedded_aws().reset(cloud)
    yield Face(
        cloud=cloud,
        ec2=BotoEc2(get_clients(), cloud.clock.get_time),
        parameters=BotoParameterStore(get_clients()),
        prices=BotoPricingService(get_clients()),
        savings_plans=BotoSavingsPlans(get_clients()),
        zonal_shifts=BotoZonalShift(get_clients()),
        eks=BotoEks(get_clients()),
    )


FACES: list[Speaker] = [
    Speaker(name="memory", open=open_memory_face),
    Speaker(name="http", open=open_http_face, loopback=True),
]
