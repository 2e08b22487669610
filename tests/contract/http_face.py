"""The true face of the cloud: boto3, over HTTP, to the embedded AWS. One server and one set of clients per process."""

import atexit
from functools import cache

from shared.aws.clients import Clients
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from sim.http.server import EmbeddedAws


@cache
def embedded_aws() -> EmbeddedAws:
    """The server; `reset` gives it another cloud."""
    server = EmbeddedAws(Cloud(Clock())).start()
    atexit.register(server.stop)
    return server


@cache
def clients() -> Clients:
    """The clients, which all speak to it."""
    made = Clients("us-east-1", endpoint_url=embedded_aws().url)
    atexit.register(made.close)
    return made
