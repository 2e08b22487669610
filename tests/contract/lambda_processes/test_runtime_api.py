"""The Runtime API on the wire, beyond the requests of a well-behaved process."""

from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, RemoteDisconnected

import pytest

from sim.lambda_processes.runtime_api import RuntimeApi

pytestmark = pytest.mark.loopback


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_unknown_path_returns_not_found(method: str) -> None:
    api = RuntimeApi()
    line = HTTPConnection(api.address)
    line.request(method, "/2018-06-01/runtime/restore/next", body=b"{}" if method == "POST" else None)
    assert line.getresponse().status == 404
    line.close()
    api.close()


def test_closing_the_runtime_api_disconnects_waiting_processes() -> None:
    api = RuntimeApi()
    line = HTTPConnection(api.address)

    def ask() -> None:
        line.request("GET", "/2018-06-01/runtime/invocation/next")
        with pytest.raises(RemoteDisconnected):
            line.getresponse()

    with ThreadPoolExecutor(1) as process:
        future = process.submit(ask)
        assert api.messages.get(timeout=600).kind == "next"
        api.close()
        future.result(600)
    line.close()
