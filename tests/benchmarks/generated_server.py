"""An API server on loopback that generates the pages of a large cluster, without storing its objects.

It answers lists in pages, heads and watches of pods, nodes, NodeClaims and CSINodes; other lists have no objects. The
objects are those of `population`, with their own names, uids and times. It runs in threads of this process, so that the
reading process is measured alone.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import msgspec

from tests.benchmarks import population

PODS_PER_NODE: Final = 30
LISTED_VERSION: Final = 10**9
"""The resourceVersion of the lists; every change adds one."""
CHANGED_PODS_DIVISOR: Final = 100
"""One pod in so many has changed since the list."""
_NAMESPACES_PATH: Final = "/api/v1/namespaces"
Object = dict[str, Any]


class GeneratedServer(ThreadingHTTPServer):
    """The server; *has_changes* and *is_history_lost* change what the next responses say."""

    daemon_threads = True

    def __init__(self, pods: int) -> None:
        """Serve a cluster of *pods* on a free port."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.endpoint = f"http://127.0.0.1:{self.server_address[1]}"
        self.nodes = pods // PODS_PER_NODE
        self.has_changes = self.is_history_lost = False
        self.counts: dict[str, tuple[int, Callable[[int], Object]]] = {
            "/api/v1/pods": (pods, self._make_pod),
            "/api/v1/nodes": (self.nodes, _make_node),
            "/apis/karpenter.sh/v1/nodeclaims": (self.nodes, _make_node_claim),
            "/apis/storage.k8s.io/v1/csinodes": (self.nodes, _make_csi_node),
            _NAMESPACES_PATH: (1, lambda _: {"metadata": {"name": "kube-system"}}),
        }
        self._pages: dict[tuple[str, int], bytes] = {}

    @property
    def head_version(self) -> int:
        """The newest resourceVersion."""
        changed_pods = self.counts["/api/v1/pods"][0] // CHANGED_PODS_DIVISOR
        return LISTED_VERSION + (changed_pods if self.has_changes else 0) + int(self.is_history_lost)

    def encode_page(self, path: str, start: int, limit: int, *, has_selector: bool) -> bytes:
        """Return a page of the collection at *path*."""
        count, _ = self.counts.get(path, (0, None))
        end = min(start + limit, count)
        metadata: dict[str, object] = {"resourceVersion": str(self.head_version)}
        if end < count:
            metadata["continue"] = str(end)
            if not has_selector:
                metadata["remainingItemCount"] = count - end
        items = b"" if start == end else self._encode_items(path, start, end)
        return b'{"metadata":%b,"items":[%b]}' % (msgspec.json.encode(metadata), items)

    def encode_events(self, path: str) -> bytes:
        """Return the changes since the lists: of pods only, one per resourceVersion."""
        if path != "/api/v1/pods" or not self.has_changes:
            return b""
        lines = []
        for change in range(self.head_version - LISTED_VERSION):
            pod = self._make_object(path, change * CHANGED_PODS_DIVISOR)
            pod["metadata"]["resourceVersion"] = str(LISTED_VERSION + change + 1)
            lines.append(msgspec.json.encode({"type": "MODIFIED", "object": pod}) + b"\n")
        return b"".join(lines)

    def _encode_items(self, path: str, start: int, end: int) -> bytes:
        """Return the objects from *start* to *end*; they are generated once, so that a list costs little here."""
        key = (path, start)
        if key not in self._pages:
            self._pages[key] = b",".join(
                msgspec.json.encode(self._make_object(path, number)) for number in range(start, end)
            )
        return self._pages[key]

    def _make_object(self, path: str, number: int) -> Object:
        generated = self.counts[path][1](number)
        random = Random(f"{path} {number}")  # noqa: S311 - the same objects in every run
        generated["metadata"] |= {
            "uid": str(uuid.UUID(int=random.getrandbits(128))),
            "resourceVersion": str(LISTED_VERSION - random.randrange(10**7)),
            "creationTimestamp": _draw_time(random),
        }
        return generated

    def _make_pod(self, number: int) -> Object:
        random = Random(number)  # noqa: S311 - as above
        pod = population.make_pod(number, self.nodes) | {"status": population.make_pod_status(number)}
        pod["metadata"]["namespace"] = f"team-{number // 2000}"
        pod["status"]["startTime"] = _draw_time(random)
        for condition in pod["status"]["conditions"]:
            condition["lastTransitionTime"] = _draw_time(random)
        return pod


def _make_node(number: int) -> Object:
    return population.make_node(number) | {"status": population.make_node_status(number)}


def _make_node_claim(number: int) -> Object:
    return population.make_node_claim(number) | {"status": population.make_node_claim_status(number)}


def _make_csi_node(number: int) -> Object:
    return population.make_csi_node(number)


def _draw_time(random: Random) -> str:
    return (
        f"2026-11-{random.randrange(1, 21):02d}T{random.randrange(24):02d}:{random.randrange(60):02d}:"
        f"{random.randrange(60):02d}Z"
    )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 20
    disable_nagle_algorithm = True
    server: GeneratedServer

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if "watch" not in query:
            start, limit = int(query.get("continue", "0")), int(query.get("limit", "500"))
            page = self.server.encode_page(url.path, start, limit, has_selector="fieldSelector" in query)
            self._send(200, page)
        elif self.server.is_history_lost:
            self._send(410, b'{"kind":"Status","code":410,"message":"too old resource version"}')
        else:
            events = self.server.encode_events(url.path)
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            if events:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(events), events))
            self.wfile.flush()
            self.rfile.read(1)  # the client closes the connection

    def log_message(self, *_: object) -> None:
        pass

    def _send(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


@contextmanager
def run_generated_server(pods: int) -> Iterator[GeneratedServer]:
    """Run a server for a block."""
    with GeneratedServer(pods) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
