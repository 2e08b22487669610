"""A live cluster over HTTP, and the kubeconfig that leads to it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.kube import InMemoryKube
from tests.contract.kube_front import Front, serve

TOKEN = "anything"  # noqa: S105 - it opens nothing


class Guarded(Front):
    """An API server that writes down what it is asked, and wants a token."""

    asked: ClassVar[list[tuple[str, str, str]]] = []
    token: ClassVar[str] = ""
    forbidden: ClassVar[str] = "/nothing"

    def parse_request(self) -> bool:
        whole = super().parse_request()
        if whole:
            given = self.headers.get("Authorization", "")
            self.asked.append((self.command, self.path, given))
            code = 401 if self.token and given != f"Bearer {self.token}" else 403 if self.forbidden in self.path else 0
            if code:
                self.send_response(code)
                self.send_header("Content-Length", "0")
                self.end_headers()
                self.wfile.flush()  # whoever answers False is asked nothing more, not even this
                return False
        return whole


def memory() -> InMemoryKube:
    return InMemoryKube(ApiServer(Clock()))


def served(kube: InMemoryKube) -> Iterator[str]:
    """Iterate over the address of one that answers for *kube* and was asked nothing yet."""
    Guarded.kube = kube
    Guarded.asked, Guarded.token, Guarded.forbidden = [], "", "/nothing"
    yield from serve(Guarded)


@contextmanager
def live(folder: Path) -> Iterator[tuple[InMemoryKube, str]]:
    """Serve a cluster; answer it, and the path of its kubeconfig."""
    kube = memory()
    for endpoint in served(kube):
        yield kube, kubeconfig(folder / "kubeconfig", endpoint, token=TOKEN)


def kubeconfig(path: Path, endpoint: str, **user: Any) -> str:
    """Write a kubeconfig with two contexts: `here`, and `away`, where nobody answers."""
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
