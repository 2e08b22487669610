"""Who speaks for the cloud: every face has the same ports on one `Cloud`, and is held to the same suite.

A face is a context manager made from a `Cloud`: what it opened is closed when the test ends. Another face is one more
line in `FACES`; one that needs sockets says so.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import msgspec

from shared.aws.ec2 import BotoEc2
from shared.aws.eks import BotoEks
from shared.aws.pricing import BotoPrices
from shared.aws.ssm import BotoParameters
from sim.cloud.cloud import Cloud
from tests.contract.http_face import clients, embedded_aws
from tests.contract.memory_face import Face, in_memory


class Speaker(msgspec.Struct, frozen=True, kw_only=True):
    """How a face is opened."""

    name: str
    open: Callable[[Cloud], AbstractContextManager[Face]]
    loopback: bool = False
    """It talks to a server of its own on this machine."""


@contextmanager
def memory(cloud: Cloud) -> Iterator[Face]:
    """Speak for *cloud* in this process; there is nothing to close."""
    yield in_memory(cloud)


@contextmanager
def http(cloud: Cloud) -> Iterator[Face]:
    """Speak for *cloud* over HTTP, as production does; the server and the clients outlive the test."""
    embedded_aws().reset(cloud)
    yield Face(
        cloud=cloud,
        ec2=BotoEc2(clients(), cloud.clock.now),
        parameters=BotoParameters(clients()),
        prices=BotoPrices(clients()),
        eks=BotoEks(clients()),
    )


FACES: list[Speaker] = [Speaker(name="memory", open=memory), Speaker(name="http", open=http, loopback=True)]
