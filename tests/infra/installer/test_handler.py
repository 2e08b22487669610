"""The installer's handler as seen by Lambda and CloudFormation."""

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any, Self

import msgspec
import pytest

from functions.installer import handler
from shared.errors import Fault, Forbidden, NotFound, Unreachable
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

    def record_response(url: str, body: bytes) -> int:
        responses.append((url, msgspec.json.decode(body)))
        return 200

    monkeypatch.setattr(handler, "send_response", record_response)
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
    assert responses[0][1]["Status"] == "SUCCESS"
    [delay] = slept
    assert 2 <= delay <= 4


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


@pytest.mark.parametrize("character", ["x", '"', "\x01", "é", "🙂"])
def test_a_response_has_at_most_the_bytes_that_cloudformation_accepts(character: str) -> None:
    order = parse_cloudformation_request(make_request("Create"))
    assert len(build_response(order, "FAILED", character * 5000)) <= 4096


def test_unknown_cloudformation_request_type_is_rejected() -> None:
    with pytest.raises(msgspec.ValidationError):
        parse_cloudformation_request(make_request("Create") | {"RequestType": "Replace"})


class ResponseBucket:
    """The bucket of CloudFormation's response URL: it answers the PUT requests with *statuses*, one after the other."""

    def __init__(self, *statuses: int) -> None:
        """Listen on a free port; the last status is repeated."""
        self.requests: list[tuple[str, str | None, bytes]] = []
        bucket = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                bucket.requests.append((self.path, self.headers["Content-Type"], body))
                self.send_response(statuses[min(len(bucket.requests), len(statuses)) - 1])
                self.send_header("Content-Length", "12")
                self.end_headers()
                self.wfile.write(b"AccessDenied")

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever)
        self.url = f"http://127.0.0.1:{self._server.server_port}/?signed"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def without_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urllib3.util.retry.Retry.sleep", lambda *_: None)


@pytest.mark.loopback
@pytest.mark.usefixtures("without_backoff")
@pytest.mark.parametrize("first_status", [403, 503])
def test_a_response_is_put_without_a_content_type_and_repeated_after_an_error(first_status: int) -> None:
    with ResponseBucket(first_status, 200) as bucket:
        assert send_response(bucket.url, b"{}") == 200
    assert bucket.requests == [("/?signed", "", b"{}")] * 2


@pytest.mark.loopback
@pytest.mark.usefixtures("without_backoff")
@pytest.mark.parametrize(("status", "fault_type"), [(403, Forbidden), (503, Unreachable), (400, Unreachable)])
def test_a_rejected_response_is_logged_with_its_status_and_fails_the_invocation(
    status: int, fault_type: type[Fault], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(handler, "build_world", make_raiser(Unreachable("not now")))
    with ResponseBucket(status) as bucket:
        request = make_request("Create") | {"ResponseURL": bucket.url}
        with pytest.raises(fault_type, match=f"HTTP {status} AccessDenied"):
            handler.handler(request, CONTEXT)
    log_line = msgspec.json.decode(capsys.readouterr().out)
    assert log_line["level"] == "ERROR"
    assert f"HTTP {status} AccessDenied" in log_line["message"]
    assert "signed" not in log_line["message"]
    assert ("S3 gateway endpoint" in log_line["message"]) == (status == 403)


def test_the_status_of_an_accepted_response_is_logged(
    responses: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(handler, "build_world", make_raiser(Unreachable("not now")))
    handler.handler(make_request("Create"), CONTEXT)
    assert len(responses) == 1
    line = msgspec.json.decode(capsys.readouterr().out)
    assert (line["level"], line["function"]) == ("INFO", "installer")
    assert line["message"] == "PUT of the response to CloudFormation: HTTP 200"
