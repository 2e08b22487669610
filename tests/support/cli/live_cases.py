"""A live cluster over HTTP and the kubeconfig for it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.time.virtual_clock import Clock
from tests.contract.kube_front import Front, run_server

TOKEN = "anything"  # noqa: S105 - it opens nothing


class Guarded(Front):
    """An API server that records requests and requires a token."""

    requests: ClassVar[list[tuple[str, str, str]]] = []
    token: ClassVar[str] = ""
    forbidden: ClassVar[str] = "/nothing"

    def parse_request(self) -> bool:
        is_parsed = super().parse_request()
        if is_parsed:
            authorization = self.headers.get("Authorization", "")
            self.requests.append((self.command, self.path, authorization))
            code = (
                401
                if self.token and authorization != f"Bearer {self.token}"
                else 403
                if self.forbidden in self.path
                else 0
            )
            if code:
                self.send_response(code)
                self.send_header("Content-Length", "0")
                self.end_headers()
                self.wfile.flush()  # whoever answers False is asked nothing more, not even this
                return False
        return is_parsed


def make_kube() -> InMemoryKube:
    return InMemoryKube(ApiServer(Clock()))


def serve_kube(kube: InMemoryKube) -> Iterator[str]:
    """Yield the address of a server for *kube* that has recorded no requests yet."""
    Guarded.kube = kube
    Guarded.requests, Guarded.token, Guarded.forbidden = [], "", "/nothing"
    yield from run_server(Guarded)


@contextmanager
def serve_cluster(folder: Path) -> Iterator[tuple[InMemoryKube, str]]:
    """Serve a cluster; yield it and the path of its kubeconfig."""
    kube = make_kube()
    for endpoint in serve_kube(kube):
        yield kube, write_kubeconfig(folder / "kubeconfig", endpoint, token=TOKEN)


def write_kubeconfig(path: Path, endpoint: str, **user: Any) -> str:
    """Write a kubeconfig with two contexts: `here`, and `away`, where no server responds."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "here", "cluster": {"server": endpoint}},
            {"name": "away", "cluster": {"server": "http://127.0.0.1:1"}},
        ],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "me"}} for name in ("here", "away")],
        "current-context": "here",
    }
    path.write_text(json.dumps(config))
    return str(path)
