"""The face of the cloud that production uses: boto3, over HTTP, to the embedded AWS.

There is one server and one set of clients per process.
"""

import atexit
from functools import cache

from shared.aws.clients import Clients
from sim.aws_http.server import EmbeddedAws
from sim.cloud.cloud import Cloud
from sim.time.virtual_clock import Clock


@cache
def get_embedded_aws() -> EmbeddedAws:
    """Return the server; `reset` gives it another cloud."""
    server = EmbeddedAws(Cloud(Clock())).start()
    atexit.register(server.stop)
    return server


@cache
def get_clients() -> Clients:
    """Return the clients of the server."""
    aws_clients = Clients("us-east-1", endpoint_url=get_embedded_aws().url)
    atexit.register(aws_clients.close)
    return aws_clients
