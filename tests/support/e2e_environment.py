"""A double of the environment of `tests.e2e_aws`: scripted AWS clients, objects in memory; only waits take time."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from shared.errors import Conflict, NotFound
from sim.playground.kubectl import KubectlClient
from tests.e2e_aws.environment import Version
from tests.e2e_aws.ledger import LEDGER_NAME, Ledger, LedgerDocument

STARTED_AT = datetime(2026, 11, 24, 12, tzinfo=UTC)
Response = Any
"""The response of a call, an exception to raise, or a function of the arguments that returns one of both."""


def make_client_error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "scripted"}}, "Call")


class ScriptedClient:
    """A client whose calls have scripted responses; other calls fail the test."""

    def __init__(self, name: str, responses: Mapping[str, Response], calls: list[str]) -> None:
        """Record the names of calls in *calls*."""
        self._name, self._responses, self._calls = name, responses, calls

    def __getattr__(self, call: str) -> Callable[..., Any]:
        def respond(**arguments: Any) -> Any:
            self._calls.append(call)
            response = self._responses[call]
            response = response(**arguments) if callable(response) else response
            if isinstance(response, Exception):
                raise response
            return response

        return respond

    def get_paginator(self, call: str) -> "ScriptedPaginator":
        return ScriptedPaginator(getattr(self, call))


class ScriptedPaginator:
    """A paginator with one page."""

    def __init__(self, call: Callable[..., Any]) -> None:
        """Take the page from *call*."""
        self._call = call

    def paginate(self, **arguments: Any) -> Iterator[Any]:
        yield self._call(**arguments)


class MemoryKube:
    """Objects by path; `respond_to_create` can answer a POST instead."""

    def __init__(self) -> None:
        """Start without objects."""
        self.objects: dict[str, dict[str, Any]] = {}
        self.respond_to_create: Callable[[str, dict[str, Any]], dict[str, Any] | None] = lambda *_: None
        self.stuck: set[str] = set()
        """Paths of objects that DELETE does not remove."""

    def list(self, path: str, **_: Any) -> bytes:
        items = [item for key, item in sorted(self.objects.items()) if key.rpartition("/")[0] == path]
        if not items and path not in self.objects and "/apis/" in path:
            raise NotFound(path)
        return json.dumps({"items": items, "metadata": {}}).encode()

    def read(self, path: str) -> bytes:
        if path not in self.objects:
            raise NotFound(path)
        return json.dumps(self.objects[path]).encode()

    def create(self, path: str, body: bytes) -> bytes:
        manifest = json.loads(body)
        response = self.respond_to_create(path, manifest)
        if response is None:
            key = f"{path}/{manifest['metadata']['name']}"
            if key in self.objects:
                raise Conflict(key)
            response = self.objects[key] = manifest
        return json.dumps(response).encode()

    def patch(self, path: str, body: bytes) -> bytes:
        del body
        return self.read(path)

    def delete(self, path: str, body: bytes = b"") -> None:
        del body
        if path not in self.objects:
            raise NotFound(path)
        if path not in self.stuck:
            del self.objects[path]


class ScriptedEnvironment:
    """An implementation of `tests.e2e_aws.environment.Environment`."""

    def __init__(self, folder: Path, **clients: Mapping[str, Response]) -> None:
        """Answer calls of each client from *clients*: by service (``service_quotas``), then by method."""
        self.cluster, self.region, self.run_id = "prod", "us-east-1", "run1"
        self.minute, self.idle_minutes = timedelta(minutes=1), 60
        self.deployed_at: datetime | None = STARTED_AT
        document = LedgerDocument(cluster=self.cluster, region=self.region, run_id=self.run_id)
        self.ledger = Ledger(folder / LEDGER_NAME, document)
        self.kube, self.calls = MemoryKube(), list[str]()
        self.now = STARTED_AT
        self.clients: dict[str, dict[str, Response]] = {name: dict(calls) for name, calls in clients.items()}
        self.deploy_output, self.destroy_output = "", ""
        self.on_deploy: Callable[[Version], None] = lambda _: None
        self.audit: dict[str, Any] = {"assets": [], "unreadable": []}

    @property
    def kubectl(self) -> KubectlClient:
        return KubectlClient(self.kube)  # type: ignore[arg-type] # it has no watches

    def get_client(self, service: str) -> Any:
        return ScriptedClient(service, self.clients.get(service.replace("-", "_"), {}), self.calls)

    def get_now(self) -> datetime:
        return self.now

    def wait_until(self, condition: Callable[[], bool], timeout: timedelta) -> bool:
        """Check once now, and once after *timeout*."""
        if condition():
            return True
        self.now += timeout
        return condition()

    def deploy(self, version: Version) -> str:
        self.calls.append(f"deploy {version}")
        self.on_deploy(version)
        return self.deploy_output

    def destroy(self) -> str:
        self.calls.append("destroy")
        return self.destroy_output

    def run_audit(self) -> dict[str, Any]:
        return self.audit
