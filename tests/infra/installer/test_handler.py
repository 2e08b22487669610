"""The installer's handler as seen by Lambda and CloudFormation."""

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from functions.installer import handler
from shared.errors import Fault, NotFound, Unreachable
from shared.installer.cloudformation import (
    MAX_REASON_CHARS,
    build_response,
    parse_cloudformation_request,
    send_response,
)
from shared.installer.manifests import build_manifest_path
from shared.ports.kubernetes import Kube
from sim.time.virtual_clock import Clock
from tests.infra.installations import Stack, build_event, is_there, make_failing_stack, parse_release_manifests

CONTEXT: Any = SimpleNamespace(
    aws_request_id="request-1", log_stream_name="stream", get_remaining_time_in_millis=lambda: 900_000
)


@pytest.fixture
def responses(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    responses: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(handler, "send_response", lambda url, body: responses.append((url, msgspec.json.decode(body))))
    return responses


def make_request(request: str) -> dict[str, Any]:
    return dict(build_event(request, {"Part": "installed", "Manifests": "manifests.json"}))


def make_raiser(fault: BaseException) -> Callable[..., Any]:
    def raise_fault(*_: object) -> Any:
        raise fault

    return raise_fault


@pytest.mark.parametrize(
    ("request_type", "fault", "status"),
    [
        ("Delete", NotFound("eks:DescribeCluster demo: no such cluster"), "SUCCESS"),
        ("Create", NotFound("eks:DescribeCluster demo: no such cluster"), "FAILED"),
        ("Delete", Unreachable("eks:DescribeCluster demo: DELETING, no endpoint yet"), "FAILED"),
    ],
)
def test_stack_deletion_succeeds_if_the_cluster_no_longer_exists(
    request_type: str, fault: Fault, status: str, responses: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "build_world", make_raiser(fault))
    handler.handler(make_request(request_type), CONTEXT)
    [(url, body)] = responses
    assert url == "https://cloudformation-custom-resource-response/?signed"
    assert (body["Status"], body["Reason"]) == (status, str(fault))


def test_unexpected_exception_is_reported_to_cloudformation(
    responses: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "build_world", make_raiser(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        handler.handler(make_request("Create"), CONTEXT)
    [(_, body)] = responses
    assert (body["Status"], body["Reason"]) == ("FAILED", "see the log stream stream")


def test_create_request_installs_all_manifests(
    stack: Stack, kube: Kube, responses: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "build_world", lambda *_: stack._build_world())  # noqa: SLF001 - its own world
    handler.handler(make_request("Create"), CONTEXT)
    assert [body["Status"] for _, body in responses] == ["SUCCESS"]
    assert all(is_there(kube, build_manifest_path(manifest)) for manifest in parse_release_manifests())


def test_handler_sleeps_between_retries(
    kube: Kube, clock: Clock, responses: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    stack = make_failing_stack(kube, clock, iter([Unreachable("not now")]))
    monkeypatch.setattr(handler, "build_world", lambda *_: stack._build_world())  # noqa: SLF001 - its own world
    monkeypatch.setattr(time, "sleep", slept.append)
    handler.handler(make_request("Create"), CONTEXT)
    assert (slept, responses[0][1]["Status"]) == ([5.0], "SUCCESS")


def test_physical_resource_id_is_stable_and_response_reason_is_truncated() -> None:
    order = parse_cloudformation_request(make_request("Create"))
    [short_response, long_response] = [
        msgspec.json.decode(build_response(order, "FAILED", reason)) for reason in ("", "x" * 5000)
    ]
    assert short_response["PhysicalResourceId"] == long_response["PhysicalResourceId"] == "joiner-installed"
    assert (short_response["Reason"], len(long_response["Reason"])) == ("done", MAX_REASON_CHARS)
    assert {short_response[key] for key in ("StackId", "RequestId", "LogicalResourceId")} == {
        order.stack_id,
        order.request_id,
        order.logical_resource_id,
    }


def test_unknown_cloudformation_request_type_is_rejected() -> None:
    with pytest.raises(msgspec.ValidationError):
        parse_cloudformation_request(make_request("Create") | {"RequestType": "Replace"})


@pytest.mark.loopback
def test_cloudformation_response_has_no_content_type_and_is_retried_on_failure() -> None:
    requests: list[tuple[str, str | None, bytes]] = []

    class Bucket(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            requests.append((self.path, self.headers["Content-Type"], body))
            self.send_response(503 if len(requests) == 1 else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Bucket) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        send_response(f"http://127.0.0.1:{server.server_port}/?signed", b"{}")
        server.shutdown()
        thread.join()
    assert requests == [("/?signed", "", b"{}")] * 2
